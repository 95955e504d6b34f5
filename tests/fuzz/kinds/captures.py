"""Capture files: the container, the description in it, the bytes of its sinks; opened, shown, and written again."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.file import dump, parse
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.formats.guesses.detect_options import guess
from rvtrace_gdb.session.formats.imports.raw_import import RawImport, capture_of, tandem_capture
from rvtrace_gdb.session.queries.hardware import registers
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.views import text_rows
from tests.decode.tandem.corpus import trace_bytes
from tests.fuzz.damage import containers
from tests.fuzz.exercise import Exercise, Input, refused
from tests.fuzz.kinds.branches import KINDS, branches_capture_of
from tests.fuzz.kinds.ctr import records_of
from tests.fuzz.kinds.etrace import etrace_of
from tests.fuzz.kinds.ntrace import ntrace_of
from tests.fuzz.kinds.trace_checks import ROWS, Disassembled
from tests.session.captures import FULL, SMALL, WITH_RECORDS, WITH_VALUES

_FILE = "x.rvt"


class CaptureFile(Exercise):
    """A variant is a way to look at one."""

    def __init__(self) -> None:
        super().__init__()
        for capture in (SMALL, FULL, WITH_RECORDS, WITH_VALUES):
            self.seeds += [Input(way, dump(capture)) for way in ("registers", "rewrite")]  # they have no program
        for capture in captures():
            self.seeds += [Input(way, dump(capture)) for way in _WAYS]

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        return containers.mutated_zip(rng, data)

    def run(self, variant: str, data: bytes) -> None:
        _WAYS[variant](parse(data, _FILE))


def captures() -> Iterator[Capture]:
    """A small one of each sort, with its program."""
    for number in range(3):
        trace = ntrace_of(number)
        yield capture_of(RawImport("x.nex", trace.data, trace.trace_options, trace.program.base, (), trace.wrapped))  # type: ignore[arg-type]
        trace = etrace_of(number)
        yield capture_of(RawImport("x.bin", trace.data, trace.trace_options, trace.program.base, (), trace.wrapped))  # type: ignore[arg-type]
        yield records_of(number)
    yield from map(branches_capture_of, KINDS)
    for name, xlen in (("flute_rv64-irq", 64), ("piccolo_rv32-irq", 32)):
        yield tandem_capture(
            "x.tvt", trace_bytes(name)[:300], TandemParameters(xlen), Image(xlen), hart=0, wrapped=False
        )


def _open(capture: Capture) -> None:
    session = Session()
    session.open_capture(capture, _FILE, None)
    session.status(Context())
    decoded = session.harts()
    report.histories(decoded.harts)
    session.warnings()
    for hart, history in decoded.harts.histories.items():
        rows = text_rows.Modifiers(), 1, min(len(history), ROWS) + 1
        list(text_rows.lines(history, Disassembled(decoded.program), decoded.image.xlen, rows[1], rows[2], rows[0]))
        with refused:
            session.history("", 10, Context(hart=hart))


def _registers(capture: Capture) -> None:
    report.opened(capture)
    for name in registers.captured_names(capture):
        registers.captured_lines(capture, name, everything=True)


def _rewrite(capture: Capture) -> None:
    assert parse(dump(capture), _FILE) == capture, "what is saved is not what is loaded"


def _messages(capture: Capture) -> None:
    session = Session()
    session.open_capture(capture, _FILE, None)
    for encoder in capture.encoders[:4]:
        with refused:
            listed = session.dump("", ROWS, Context(hart=encoder.hart))
            session.messages(listed.begin, listed.end, raw=True)


def _guess(capture: Capture) -> None:
    session = Session()
    session.open_capture(capture, _FILE, None)
    guess(capture, session.harts())


_WAYS: Mapping[str, Callable[[Capture], None]] = {
    "open": _open, "registers": _registers, "rewrite": _rewrite, "messages": _messages, "guess": _guess,
}  # fmt: skip
