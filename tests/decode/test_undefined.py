"""What a document calls undefined, reserved or ignored changes nothing. docs/undefined.md has the table."""

import random

import pytest

from rvtrace_gdb.controlregs.ctr.entries import CtrEntry
from rvtrace_gdb.decode.etrace.options import Parameters
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from tests.decode import assembler as asm
from tests.decode.etrace.worked_examples import Example, start, trap
from tests.decode.etrace.worked_examples import address as to
from tests.decode.ntrace.messages import decoded, image_of, message, started, stopped

CODE = image_of(
    (0x100, [asm.C_NOP, asm.c_jr(6)]), (0x200, [asm.C_NOP, asm.C_NOP]), (0x300, [asm.C_NOP, asm.C_NOP, asm.C_NOP])
)


def facts(history: History) -> list[object]:
    """What a history says, apart from the bytes it comes from."""
    events = [event._replace(offset=0, end=None) for event in history.events]
    return [list(history.pcs()), events, history.contexts]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("implicit_return", [False, True])
def test_what_an_interrupt_reports_before_its_handler_runs(seed: int, implicit_return: bool) -> None:
    """E-Trace, format 3 subformat 1 with thaddr 0: the address, and so whether there is a branch and its mode."""
    rng = random.Random(seed)
    example = Example(CODE, Parameters(iaddress_width=32, return_stack_size=2 * implicit_return))

    def history(address: int, branch: int, privilege: int) -> History:
        hit = trap(address, thaddr=0, ecause=7, interrupt=1, branch=branch, privilege=privilege)
        return example.history([start(0x100), to(2), hit, start(0x300), to(2), start(0x200)])

    plain = history(0, 1, 3)
    assert [event.last_pc for event in plain.events if event.kind is EventKind.TRAP] == [None]
    for address in (0x100, 0x102, 0x200, 0x300, 2 * rng.randrange(1 << 31)):
        assert facts(history(address, rng.randrange(2), rng.choice((0, 1, 3)))) == facts(plain)


@pytest.mark.parametrize("bit", [*range(4, 15), *range(32, 64)])
def test_undefined_bits_of_ctrdata(bit: int) -> None:
    """Control Transfer Records: "software should ignore any fields that it does not recognize"."""
    plain = CtrEntry(0x8000_0001, 0x8000_0010, 9 | 1 << 15 | 77 << 16)
    other = plain._replace(data=plain.data | 1 << bit)
    for one in (plain, other):
        assert (one.type, one.cycles, one.source_pc, one.target_pc) == (9, 77, 0x8000_0000, 0x8000_0010)


@pytest.mark.parametrize("count", [0, 1, 77, (1 << 16) - 1])
def test_a_cycle_count_that_is_not_valid(count: int) -> None:
    """Control Transfer Records: "if CCV=0, the CC value may not hold the correct count"."""
    entry = CtrEntry(0x8000_0001, 0x8000_0010, 9 | count << 16)
    assert (entry.cycles, entry.saturated) == (None, False)


@pytest.mark.parametrize("ecode", [0, 1, 2, 4, 0x44, 0xFF, 1 << 40])
def test_reserved_bits_of_ecode(ecode: int) -> None:
    """N-Trace, table of Error: whatever was lost, the flow is lost up to the next synchronization, and no further."""
    history = decoded(CODE, started(), message("Error", etype=0, ecode=ecode), started(0x200), stopped(2))
    assert list(history.pcs()) == [0x200, 0x202]
    (lost,) = (event for event in history.events if event.kind is EventKind.OVERFLOW)
    assert lost.text == f"the encoder lost messages (ECODE 0x{ecode:x})"
