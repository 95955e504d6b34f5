"""Rows that cannot be encoded again: the interval is left unchecked."""

import pytest

from rvtrace_gdb.decode.check.comparison import CheckedPart
from rvtrace_gdb.decode.check.etrace_comparison import can_encode
from rvtrace_gdb.decode.check.rows import CheckedRows
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, Setup
from rvtrace_gdb.decode.history.builder import IncrementalBuilder
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm

_CODE = 0x1000


class Interval:
    """In place of the checker: an open interval."""

    def __init__(self) -> None:
        self.is_open = True
        self.parts: list[CheckedPart] = []
        self.lost: bool | None = None

    def part(self, part: CheckedPart) -> None:
        self.parts.append(part)

    def drop(self, *, lost: bool) -> None:
        self.is_open, self.lost = False, lost


def image() -> Image:
    found = Image(64)
    found.add_code(_CODE, asm.C_NOP * 4)
    return found


@pytest.mark.parametrize("addresses", [(0x5000,), (_CODE, 0x5000), (_CODE, 0x5000, _CODE + 2)])
def test_there_is_no_code(addresses: tuple[int, ...]) -> None:
    """A synchronization that damage has made may have any address."""
    builder, interval = IncrementalBuilder(), Interval()
    rows = CheckedRows(interval, builder, lambda: None)  # type: ignore[arg-type]
    builder.append(Path((addresses,)))
    piece = builder.take()
    rows.add(piece.history, piece.begin, piece.end, image())
    rows.flush(image())
    assert (interval.is_open, interval.lost) == (False, False)
    assert rows.first(0x5000, image()) is None


def test_rows_without_number() -> None:
    """A count of billions in one message is not encoded: nobody could wait for that."""
    builder, interval = IncrementalBuilder(), Interval()
    rows = CheckedRows(interval, builder, lambda: None)  # type: ignore[arg-type]
    for _ in range(3):
        builder.append(Path([Path(((_CODE,) * 1000,))] * 10_000))
    piece = builder.take()
    rows.add(piece.history, piece.begin, piece.end, image(), [])
    assert (interval.is_open, interval.parts) == (False, [])


def test_a_support_packet_that_no_encoder_sends() -> None:
    """One of a damaged trace may say any modes: of pulp's packets none has room for the branch predictor."""
    options = Options(Parameters(), Modes(), dialect=Dialect.PULP)
    assert not can_encode(options, Setup(Parameters(bpred_size=3), Modes(branch_prediction=True)))
    standard = Options(Parameters(), Modes())
    assert can_encode(standard, Setup(Parameters(bpred_size=3), Modes(branch_prediction=True)))
