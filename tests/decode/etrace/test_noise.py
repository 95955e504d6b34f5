"""Bytes that look like a synchronization and are none: a gap that says so, and no row.

What is expected follows from the few instructions of the program: from each address it has one way to go.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.decoder import StreamDecoder, decode
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters
from rvtrace_gdb.decode.history.events import GAP_KINDS, EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.etrace.packets import write
from tests.decode.etrace.vectors import framed
from tests.decode.etrace.worked_examples import TRACE_LOST, Fields, branches, start, support, trap
from tests.decode.etrace.worked_examples import address as to
from tests.decode.ntrace.messages import image_of

NOWHERE = 0x8000
"""No code is there."""
PROGRAM = image_of(
    (0x100, [asm.C_NOP, asm.c_jr(6)]),
    (0x200, [asm.C_NOP, asm.C_NOP, asm.c_j(-4)]),
    (0x300, [asm.C_NOP, asm.C_NOP, asm.c_jr(6)]),
    (0x400, [asm.c_beqz(4), asm.C_NOP, asm.c_jr(6)]),
)
PARAMETERS = Parameters(iaddress_width=32, iaddress_lsb=0, privilege_width=3, ecause_width=7, context_width=8)
FULL = Modes(full_address=True)
OPTIONS = Options(PARAMETERS, FULL, pinned=True)
QSORT = Path(__file__).parents[2] / "data" / "ntrace-reference" / "qsort.elf"
STREAM = bytes.fromhex(
    "011f057300000020041141f40202810101010421400002020504010101010101010101010101010101010101010101010305c7fc"
    "05f350040020010101010101010101010101010101010101010101010101010101010101010102050305f3500400200101010101"
    "01010101010101020103010101010101010101010101010101010101020510057356040020010101010101010101010101010101"
    "01010101010645000000c000014f"
)
"""Of our own encoder: the program of the reference encoder of N-Trace whose origin stands beside it."""
LOST = support(FULL, TRACE_LOST)
CLEAN = [start(0x300, context=0), to(0x100), to(0x300), to(0x100)]
CLEAN_PCS = [0x300, 0x302, 0x304, 0x100, 0x102, 0x300, 0x302, 0x304, 0x100]


def stream(packets: Sequence[Fields]) -> bytes:
    return framed([write(packet, PARAMETERS, FULL) for packet in packets])


def decoded(packets: Sequence[Fields], *, whole: bool = True) -> History:
    """*whole*: whether the program is all there is."""
    return decode(stream(packets), PROGRAM if whole else ContextImages(PROGRAM), OPTIONS, Encapsulation())


def at(address: int, **more: int) -> Fields:
    return start(address, context=0, **more)


def taken(handler: int, cause: int, *, interrupt: int = 0, **more: int) -> Fields:
    return trap(handler, 1, cause, interrupt=interrupt, context=0, **({} if interrupt else {"tval": 0}), **more)


def gaps(history: History) -> list[str]:
    """What is said of them."""
    return [event.text for event in history.events if event.kind in GAP_KINDS]


@pytest.mark.parametrize(
    ("packet", "why"),
    [
        (at(0x200, privilege=2), "te_inst format 3 subformat 0: privilege 2 is reserved"),
        (at(0x200, privilege=7), "te_inst format 3 subformat 0: privilege 7 is reserved"),
        (taken(0x200, 2, privilege=2), "te_inst format 3 subformat 1: privilege 2 is reserved"),
        (taken(0x200, 14), "te_inst format 3 subformat 1: ecause 14 is reserved"),
        (taken(0x200, 40), "te_inst format 3 subformat 1: ecause 40 is reserved"),
        (taken(0x200, 64), "te_inst format 3 subformat 1: ecause 64 is reserved"),
        (at(0x201), "te_inst format 3 subformat 0: an instruction at the odd address 0x201"),
        (taken(NOWHERE, 2), f"at 0x{NOWHERE:x}: there is no code"),
        (taken(NOWHERE, 9, interrupt=1), f"at 0x{NOWHERE:x}: there is no code"),
        (at(NOWHERE), f"at 0x{NOWHERE:x}: there is no code"),
    ],
)
def test_what_cannot_be_is_a_gap_and_no_row(packet: Fields, why: str) -> None:
    """No trap that nobody took, no mode that there is not."""
    history = decoded([at(0x200), packet, *CLEAN])
    assert list(history.pcs()) == [0x200, GAP, *CLEAN_PCS]
    assert any(why in said for said in gaps(history)), gaps(history)
    assert not [event for event in history.events if event.kind is EventKind.TRAP]
    assert history.context_at(0) == history.context_at(2)


@pytest.mark.parametrize("cause", [0, 10, 15, 16, 18, 24, 31, 48, 63])
def test_causes_that_are_defined_or_free_for_use_are_believed(cause: int) -> None:
    """10 was ecall from VS-mode, 24 to 31 and 48 to 63 are for custom use."""
    history = decoded([at(0x200), taken(0x300, cause)])
    assert list(history.pcs()) == [0x200, 0x300] and not gaps(history)


def test_a_trap_into_code_that_was_not_supplied_was_taken() -> None:
    """Where much runs that nobody has an ELF of, as firmware under a system, that is not noise; nor is it a row."""
    history = decoded([at(0x200), taken(NOWHERE, 9, interrupt=1), *CLEAN], whole=False)
    assert list(history.pcs()) == [0x200, GAP, *CLEAN_PCS]
    (event,) = (event for event in history.events if event.kind is EventKind.TRAP)
    assert event.next_pc == NOWHERE and event.text.startswith("interrupt 9")


CONTRADICTED: list[list[Fields]] = [
    [at(0x200), to(0x100)],
    [at(0x300), branches(0, to=0x200)],
    [at(0x300), to(0x200), to(0x100)],
    [taken(0x200, 3), to(0x300)],
    [at(0x300), {"format": 1, "branches": 1, "branch_map": 0, "address": NOWHERE}],
]
"""From 0x200 no code leads to another address, and from 0x300 none over a branch."""


@pytest.mark.parametrize("doubted", CONTRADICTED)
def test_a_synchronization_that_the_packets_after_it_contradict(doubted: list[Fields]) -> None:
    history = decoded([at(0x200), LOST, *doubted, *CLEAN])
    assert list(history.pcs()) == [0x200, GAP, *CLEAN_PCS]
    why = f"te_inst format 3 subformat {doubted[0]['subformat']} is ignored: what follows it in the trace"
    assert [said for said in gaps(history) if why in said]
    assert not [event for event in history.events if event.kind is EventKind.TRAP]


def test_what_contradicts_the_program_is_damage() -> None:
    history = decoded([at(0x300), branches(*[1] * 31), at(0x200), to(0x100), *CLEAN])
    assert list(history.pcs()) == [0x300, 0x302, 0x304, GAP, *CLEAN_PCS]


def test_code_that_goes_round_is_not_listed_for_outcomes_it_has_no_branch_for() -> None:
    history = decoded([at(0x200), branches(*[1] * 31), *CLEAN])
    assert list(history.pcs()) == [0x200, GAP, *CLEAN_PCS]


def test_what_is_not_believed_is_said_once_for_a_gap() -> None:
    history = decoded([at(0x200), LOST, *[at(0x200), to(0x100)] * 5, *CLEAN])
    assert len([said for said in gaps(history) if "is ignored" in said]) == 1
    assert list(history.pcs()) == [0x200, GAP, *CLEAN_PCS]
    again = decoded([at(0x200), *[LOST, at(0x200), to(0x100), *CLEAN] * 2])
    assert len([said for said in gaps(again) if "is ignored" in said]) == 2


def test_a_synchronization_that_contradicts_the_flow_is_in_doubt_itself() -> None:
    """A bit of its address was flipped, say: what is listed goes on at the next one."""
    history = decoded([at(0x200), at(0x300), branches(0, to=0x200), *CLEAN])
    assert list(history.pcs()) == [0x200, GAP, *CLEAN_PCS]


def test_one_synchronization_says_nothing_of_another() -> None:
    """Where packets between them were lost, both are right."""
    history = decoded([at(0x200), LOST, at(0x200), at(0x300), at(0x200), at(0x100)])
    assert list(history.pcs()) == [0x200, GAP, 0x200, GAP, 0x300, 0x302, 0x304, 0x200, GAP, 0x100]


def test_a_program_that_differs_in_one_place_is_not_taken_for_noise() -> None:
    """Code that was patched, say: whatever leads there ran, each time."""
    history = decoded([at(0x300), to(0x200), to(0x100), *[at(0x300), to(0x200), to(0x100)] * 3])
    assert list(history.pcs()) == [0x300, 0x302, 0x304, 0x200, GAP] * 4


@pytest.mark.parametrize("kept", range(1, len(CLEAN) + 1))
def test_at_the_end_of_the_trace_what_nothing_contradicts_is_listed(kept: int) -> None:
    rows = {1: 1, 2: 4, 3: 6, 4: 9}[kept]
    history = decoded([at(0x200), LOST, *CLEAN[:kept]])
    assert list(history.pcs()) == [0x200, GAP, *CLEAN_PCS[:rows]]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7])
def test_pieces_of_any_size_give_the_same(size: int) -> None:
    """What is in doubt waits for the packets after it; nothing else waits."""
    data = stream([at(0x200), LOST, at(0x200), to(0x100), *CLEAN, at(0x200), at(0x200)])
    decoder = StreamDecoder(PROGRAM, OPTIONS, Encapsulation(), split=False)
    for first in range(0, len(data), size):
        decoder.feed(data[first : first + size])
    in_pieces, at_once = decoder.finish_one(), decode(data, PROGRAM, OPTIONS, Encapsulation())
    assert list(in_pieces.pcs()) == list(at_once.pcs()) and in_pieces.events == at_once.events
    assert in_pieces.accounting == at_once.accounting


def test_two_packets_are_looked_at_however_the_trace_arrives() -> None:
    """The third one is none, and says nothing of the synchronization."""
    data = stream([at(0x200), LOST, *CLEAN[:3]]) + framed([bytes(2)]) + stream(CLEAN)
    whole = decode(data, PROGRAM, OPTIONS, Encapsulation())
    assert list(whole.pcs()) == [0x200, GAP, *CLEAN_PCS[:6], GAP, *CLEAN_PCS]
    for cut in range(len(data)):
        decoder = StreamDecoder(PROGRAM, OPTIONS, Encapsulation(), split=False)
        decoder.feed(data[:cut])
        decoder.feed(data[cut:])
        assert list(decoder.finish_one().pcs()) == list(whole.pcs()), cut


def test_the_stream_that_listed_instructions_at_0() -> None:
    """Rows at 0x0 and 0x50f305e, and interrupt 9, were none of the program's."""
    image, options = Image.from_elf(QSORT), Options(Parameters(iaddress_width=64))
    clean = decode(STREAM, image, options, Encapsulation())
    damaged = STREAM[:38] + STREAM[39:]
    history = decode(damaged, image, options, Encapsulation())
    pcs, truth = list(history.pcs()), list(clean.pcs())
    assert clean.gaps == 0 and history.gaps == 1
    first = pcs.index(GAP)
    last = pcs[first + 1 :]
    assert last == truth[-len(last) :] and len(last) > 3000
    assert set(pcs[:first]) <= set(truth)
    assert not [event for event in history.events if event.kind is EventKind.TRAP]
