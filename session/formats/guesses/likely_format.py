"""Guesses the format of raw bytes that cannot be read as the one they were said to have.

Every other format is tried with its default options, and the program: a trace of it tells what ran, noise does not.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.branches.gem5.packets import MAGIC as GEM5
from rvtrace_gdb.decode.branches.neorv32 import is_text, pairs_in_text
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.tandem.plausibility import is_tandem_trace
from rvtrace_gdb.session.capture.etrace_settings import etrace_of
from rvtrace_gdb.session.capture.model import BranchPort
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.format import TraceOptions
from rvtrace_gdb.session.formats.imports.raw_import import is_dense
from rvtrace_gdb.support.errors import Progress, RvtraceError

_LOOKED_AT = 1 << 16  # bytes
_MUCH = 8  # so many instructions for each contradiction, or more
_WRONG = (EventKind.MISMATCH, EventKind.LOSS)
_CTXP = (b"CTXP", b"HDR:format=accemic//ctxp-txt")


class _TriedFormat(NamedTuple):
    """*option*: of the command line. *prepared*: what the bytes become before they are decoded."""

    option: str
    options: TraceOptions
    prepared: Callable[[bytes], bytes] = bytes


def likely_format(data: bytes, program: Program, xlen: int, progress: Progress, *, wrapped: bool = False) -> str | None:
    """Return the option of the format that *data* have, e.g. "--tacit"; None if they have none. Raises only what
    *progress* raises.
    """
    if data.startswith(_CTXP):
        return "--ctxp"
    if data.startswith(GEM5):
        return "--gem5"
    if is_tandem_trace(data):
        return "--tandem"
    tried = {it.option: _explained(data, program, it, progress, wrapped=wrapped) for it in _formats(xlen)}
    best = max(tried, key=lambda option: tried[option])
    return best if tried[best] else None


def _formats(xlen: int) -> Iterator[_TriedFormat]:
    yield _TriedFormat("--ntrace", Options())
    yield _TriedFormat("--etrace", etrace_of({"iaddress_width": xlen}))
    yield _TriedFormat("--tacit", BranchPort("tacit", "tacit"))
    if xlen == 32:
        yield _TriedFormat("--neorv32", BranchPort("tracer", "neorv32"), _pairs)


def _pairs(data: bytes) -> bytes:
    return pairs_in_text(data) if is_text(data) else data


def _explained(data: bytes, program: Program, tried: _TriedFormat, progress: Progress, *, wrapped: bool) -> int:
    """Return how many instructions ran according to this format, 0 if that is not evident."""
    try:
        data = tried.prepared(data[:_LOOKED_AT])
        made = registry.format_of(tried.options).decoding(
            data, program, tried.options, wrapped=wrapped, stop_at_error=False
        )
        histories = made.result(progress).histories.values()
    except RvtraceError:
        return 0
    instructions = sum(history.instructions for history in histories)
    wrong = sum(history.kind_counts.get(kind, 0) for history in histories for kind in _WRONG)
    return instructions if is_dense(instructions, len(data)) and wrong * _MUCH <= instructions else 0
