"""Control Transfer Records: any entries, with what any registers say of them."""

from __future__ import annotations

import random

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES, CtrEntry, pack
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.session.capture.model import Capture, CapturedRecords
from tests.decode.ctr.random_harts import ALL, Hart, Program, recorded
from tests.fuzz.kinds.trace_checks import Trace, Traces

_CASES = 12
_STEPS = 40
_DEPTHS = (16, 32, 64, 128, 256)


class Records(Traces):
    """Programs by number; both versions of the registers."""

    def __init__(self) -> None:
        super().__init__({str(number): ctr_of(number) for number in range(_CASES)})

    def run(self, variant: str, data: bytes) -> None:
        super().run(variant, data[: len(data) - len(data) % ENTRY_BYTES])  # captures hold whole ones


def ctr_of(number: int) -> Trace:
    """The records of a program's run, both by number."""
    rng = random.Random(number)
    program = Program(rng, rng.randint(8, 30))
    hart = Hart(program, rng)
    hart.run(_STEPS)
    records, _ = recorded(hart.events, ALL)
    entries = [
        CtrEntry(record.source | 1, record.target | (number % 2), int(record.kind) | rng.choice((0, 0x8000 | 5 << 16)))
        for record in records
        if record.source is not None and record.target is not None
    ]
    version, xlen = ("1.0", 64) if number % 3 else ("0.1.4", 64)
    control, status = rng.choice((0x8000000087, 0x87, (1 << 64) - 1, rng.getrandbits(64))), rng.getrandbits(32)
    trace_options = CtrRegisterValues(
        "ctr0", version, xlen, _DEPTHS[number % 5], control, rng.choice((0, 3)), status,
        rng.choice((None, hart.pc)), rng.choice((None, 3, 7)), rng.choice((None, 0x8000000000141101)),
    )  # fmt: skip
    return Trace(pack(entries), ContextImages(program.image()), trace_options)


def records_of(number: int) -> Capture:
    """The same as a capture."""
    trace = ctr_of(number)
    assert isinstance(trace.trace_options, CtrRegisterValues)
    return Capture(
        "2025-01-02T03:04:05Z", "rvtrace 0.1.0", "board", 64, None, (), (), tuple(trace.program.base.code),
        records=(CapturedRecords(0, trace.trace_options, trace.data[: ENTRY_BYTES * trace.trace_options.depth]),),
    )  # fmt: skip
