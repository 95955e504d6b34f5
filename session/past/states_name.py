"""The name of the file in which the states of a hart are kept: a hash of all that they follow from."""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import replace

from rvtrace_gdb.session.capture.model import Capture, CapturedSink
from rvtrace_gdb.session.kept_files import DECODERS, sources_of
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.version import tool

_FORMAT = 1
_CODE = (*DECODERS, "session/past")


def states_name(capture: Capture, sink: CapturedSink, selected: SelectedHistory, facts: HartFacts) -> str | None:
    """Return the name for a history that was decoded from a sink of a capture; None if its program may become more than
    it is now.
    """
    code = selected.program.code_parts()
    if code is None:
        return None
    found = hashlib.blake2b(digest_size=20)
    for part in (*_trace_parts(capture, sink, selected), *code, *_facts_parts(facts)):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


def _trace_parts(capture: Capture, sink: CapturedSink, selected: SelectedHistory) -> Iterator[bytes]:
    """Yield the trace, what its bytes mean, and what else is in the history: a check adds losses to it, say."""
    history = selected.history
    yield repr((_FORMAT, tool(), sys.byteorder, sources_of(*_CODE))).encode()
    yield repr((replace(sink, data=b""), capture.encoders, capture.traps, selected.hart)).encode()
    counts = sorted((kind.name, count) for kind, count in history.kind_counts.items())
    yield repr((len(history), history.gaps, counts, *history.doubtful_events)).encode()
    yield sink.data


def _facts_parts(facts: HartFacts) -> Iterator[bytes]:
    beginning, stop = facts.beginning, facts.stop
    yield repr((facts.machine, facts.halts, facts.memory, facts.shared)).encode()
    yield repr(None if stop is None else (stop.pc, stop.x, stop.f, stop.csrs)).encode()
    yield repr(None if beginning is None else beginning._replace(memory=())).encode()
    for address, content in () if beginning is None else beginning.memory:
        yield address.to_bytes(8, "little")
        yield content
