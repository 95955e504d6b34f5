"""The pairs that NEORV32's own RTL recorded, against what the same RTL logged (tests/data/neorv32/README.md)."""

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.branches.neorv32 import (
    BEGIN,
    EBREAK,
    END,
    ENTRY,
    LAST,
    BadPairs,
    DeltaPair,
    PairEncoder,
    history_of,
    is_text,
    items_of,
    pairs_in_text,
)
from rvtrace_gdb.decode.executed.encoder_ingress import blocks_from_pcs
from rvtrace_gdb.decode.history.events import EventKind, Stop, StopReason, Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType

DATA = Path(__file__).resolve().parents[2] / "data" / "neorv32"
ELF = DATA / "traced.elf"
ECALL, ILLEGAL, HANDLER, START, STOPPED = 0x106, 0x10A, 0x174, 0x68, 0x6C
ZERO_CASE, STRAIGHT, OTHER = 0x162, 0x100, 0x16E


class Logged(NamedTuple):
    """A line of the RTL's log. *after_halt*: a debugger had halted the hart before."""

    pc: int
    enters_trap: bool
    after_halt: bool = False


def logged(name: str = "neorv32.tracer0.log.gz") -> list[Logged]:
    """What the RTL logged between the instructions that start and stop TRACER, both left out but for the last one."""
    found, halted = [], False
    for line in gzip.decompress((DATA / name).read_bytes()).decode().splitlines():
        if line.split()[4] == "D":
            halted = True
        else:
            found.append(Logged(int(line.split()[2], 16), "<TRAP_ENTRY>" in line, halted))
            halted = False
    pcs = [one.pc for one in found]
    return found[pcs.index(START) : pcs.index(STOPPED) + 1]


def retired(rows: list[Logged] | None = None) -> list[int]:
    """The same without the two instructions that raised an exception, and without the ebreak of a breakpoint."""
    rows = logged() if rows is None else rows
    ebreaks = {at for at in range(len(rows) - 1) if rows[at + 1].after_halt and rows[at].pc == rows[at + 1].pc}
    return [one.pc for at, one in enumerate(rows) if one.pc not in (ECALL, ILLEGAL) and at not in ebreaks]


def encoded(rows: list[Logged], encoder: PairEncoder) -> Iterator[list[DeltaPair]]:
    """Yield the entries that each of these instructions makes."""
    program = image()
    for one in rows:
        if one.after_halt:
            encoder.resumed()
        if one.enters_trap:
            list(encoder.trapped(None))
        instruction = None if one.pc == ILLEGAL else program.instruction(one.pc)
        jumps = instruction is not None and instruction.itype not in (IType.NONE, IType.NOT_TAKEN)
        yield list(encoder.executed(one.pc, 2 if instruction is None else instruction.length, jumps=jumps))


def raw(name: str) -> bytes:
    return pairs_in_text((DATA / name).read_bytes())


@cache
def image() -> Image:
    return Image.from_elf(ELF)


def test_the_path_is_what_the_rtl_logged() -> None:
    histories = history_of(raw("pairs.txt"), image())
    history = histories.histories[0]
    assert list(history.pcs()) == retired() and len(retired()) == 459
    assert history.gaps == 0 and histories.accounting == (1088, 1088, 0, 0)
    entered = [at for at, one in enumerate(logged()) if one.enters_trap]
    traps = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [event.position for event in traps] == [at - sum(one <= at for one in entered[1:]) for at in entered]
    assert [event.fact for event in traps] == [Trap(TrapKind.UNKNOWN), *[Trap(TrapKind.EXCEPTION)] * 2]
    assert [event.last_pc for event in traps] == [None, ECALL, ILLEGAL]
    assert {event.next_pc for event in traps} == {HANDLER}


def test_a_small_buffer_has_the_end() -> None:
    history = history_of(raw("pairs-32.txt"), image(), wrapped=True).histories[0]
    pcs = list(history.pcs())
    assert len(pcs) == 63 and retired()[-63:] == pcs and history.gaps == 0


@pytest.mark.parametrize(
    ("pairs", "log", "stop"),
    [
        ("pairs.txt", "neorv32.tracer0.log.gz", None),
        ("pairs-halts.txt", "neorv32.tracer0-halts.log.gz", None),
        ("pairs-breaks.txt", "neorv32.tracer0-breaks.log.gz", None),
        ("pairs-stop.txt", "neorv32.tracer0.log.gz", ZERO_CASE),
        ("pairs-stop-32.txt", "neorv32.tracer0.log.gz", STRAIGHT),
    ],
)
def test_the_encoder_records_what_the_rtl_recorded(pairs: str, log: str, stop: int | None) -> None:
    """Of what the RTL logged. The log begins one instruction after the one that starts TRACER."""
    encoder = PairEncoder() if stop is None else PairEncoder(stop)
    found = b"".join(pair.raw for of_one in encoded(logged(log), encoder) for pair in of_one)
    recorded = raw(pairs)
    assert found[-len(recorded) :] == recorded
    assert pairs == "pairs-stop-32.txt" or found == recorded
    assert encoder.running == (stop is None)


def test_halts_and_single_steps_leave_no_gap() -> None:
    """The RTL was halted eight times, and stepped through twelve instructions."""
    rows = logged("neorv32.tracer0-halts.log.gz")
    assert sum(one.after_halt for one in rows) == 21
    history = history_of(raw("pairs-halts.txt"), image()).histories[0]
    assert list(history.pcs()) == retired(rows) and history.gaps == 0


def test_a_breakpoint_is_not_executed_twice() -> None:
    """In place of an instruction there was an ebreak, three times, and the hart went on at the same address."""
    rows = logged("neorv32.tracer0-breaks.log.gz")
    pcs = retired(rows)
    assert [one.pc for one in rows].count(OTHER) == 6 and pcs.count(OTHER) == 3
    history = history_of(raw("pairs-breaks.txt"), image()).histories[0]
    assert list(history.pcs()) == pcs and history.gaps == 0


@pytest.mark.parametrize(("name", "stop"), [("pairs-stop.txt", ZERO_CASE), ("pairs-stop-32.txt", STRAIGHT)])
def test_a_stop_address_is_the_end(name: str, stop: int) -> None:
    """Where it is the target of a transfer, and where it is in straight code, of a buffer that was full."""
    whole = retired()[: retired().index(stop) + 1]
    wrapped = "32" in name
    history = history_of(raw(name), image(), {LAST: stop}, wrapped=wrapped).histories[0]
    pcs = list(history.pcs())
    assert pcs[-1] == stop and whole[-len(pcs) :] == pcs and (wrapped or pcs == whole)
    assert [event.fact for event in history.events if event.kind is EventKind.TRACE_OFF] == [
        Stop(StopReason.TRACE_DISABLED)
    ]
    shorter = history_of(raw(name), image(), wrapped=wrapped).histories[0]
    assert len(pcs) - len(shorter) == (1 if stop == STRAIGHT else 0)


def test_a_halt_anywhere_is_the_end_or_said_not_to_be_known() -> None:
    """Halted before each instruction: nothing is listed that did not run, and what is said to be the end is it."""
    rows, certain = logged(), 0
    encoder, pairs = PairEncoder(), b""
    for at, (row, of_row) in enumerate(zip(rows, encoded(rows, encoder), strict=True)):
        whole = retired(rows[:at])
        found = history_of(pairs, image(), {BEGIN: START, END: row.pc}).histories[0]
        pcs = list(found.pcs())
        assert pcs == whole[: len(pcs)] and found.gaps == 0
        if pcs and found.events[-1].fact == Stop(StopReason.DEBUG_MODE):
            assert pcs == whole
            certain += 1
        by_breakpoint = pairs + b"".join(pair.raw for pair in of_row)
        assert row.pc in (ECALL, ILLEGAL) or _listed(by_breakpoint, row.pc) == whole
        pairs = by_breakpoint
    assert certain > 0.75 * len(rows)


def _listed(pairs: bytes, pc: int) -> list[int]:
    """What is listed where a breakpoint has halted the hart."""
    settings = {BEGIN: START, END: pc, EBREAK: 1}
    return list(history_of(pairs, image(), settings).histories[0].pcs())


def test_two_ways_to_a_halt_are_not_certain() -> None:
    """A loop of one instruction and a branch: halted at the branch's target it ran once, or not at all."""
    code = Image(32)
    loop = [0x00000013, 0xFE000EE3, 0x00000013, 0x00008067]  # nop; beqz zero, back; nop; ret
    code.add_code(0x100, b"".join(word.to_bytes(4, "little") for word in loop))
    pairs = DeltaPair(0x10C, 0x100, first=True).raw
    once = history_of(pairs, code, {END: 0x100}).histories[0]
    assert list(once.pcs()) == [0x10C, 0x100, 0x104]
    through = history_of(pairs, code, {END: 0x108}).histories[0]
    assert list(through.pcs()) == [0x10C, 0x100, 0x104]
    assert through.events[-1].fact == Stop(StopReason.DEBUG_MODE)
    skipping = [0x00000463, 0x00000013, 0x00000013, 0x00008067]  # beqz zero, two further; nop; nop; ret
    other = Image(32)
    other.add_code(0x100, b"".join(word.to_bytes(4, "little") for word in skipping))
    unclear = history_of(pairs, other, {END: 0x108}).histories[0]
    assert list(unclear.pcs()) == [0x10C, 0x100]
    assert unclear.events[-1].fact == Stop(StopReason.END_NOT_RECORDED)


def test_a_beginning_that_does_not_lead_to_the_first_entry_is_left_out() -> None:
    history = history_of(raw("pairs.txt"), image(), {BEGIN: ECALL}).histories[0]
    assert list(history.pcs()) == retired() and history.gaps == 0
    early = history_of(raw("pairs.txt"), image(), {BEGIN: START - 4}).histories[0]
    assert list(early.pcs()) == [START - 4, *retired()]


def test_an_encoder_stops_at_its_address() -> None:
    encoder = PairEncoder(stop_pc=0x11C)
    list(encoder.pairs_of(blocks_from_pcs(retired(), image())))
    assert not encoder.running


@pytest.mark.parametrize("missing", [7, 21, 42, 70, 91])
def test_a_missing_pair_is_a_gap(missing: int) -> None:
    """Code that is not straight cannot have run: what is certain stays, nothing else is listed."""
    data = raw("pairs.txt")
    cut = data[: 8 * missing] + data[8 * missing + 8 :]
    history = history_of(cut, image()).histories[0]
    assert history.gaps == 1
    gap = next(event for event in history.events if event.is_loss)
    assert gap.offset == 8 * missing
    pcs = [pc for pc in history.pcs() if pc >= 0]
    whole = retired()
    before = pcs[: gap.position]
    assert before == whole[: gap.position]
    after = pcs[gap.position :]
    assert whole[-len(after) :] == after


def test_other_code_is_noticed() -> None:
    other = Image(32)
    other.add_code(0, b"\x13\0\0\0" * 200)
    history = history_of(raw("pairs.txt"), other).histories[0]
    assert history.gaps > 100
    empty = history_of(raw("pairs.txt"), Image(32)).histories[0]
    assert empty.instructions == 0


def test_a_trace_that_was_started_again() -> None:
    data = raw("pairs.txt")
    history = history_of(data + data, image()).histories[0]
    assert list(history.pcs()) == [*retired(), GAP, *retired()]
    starts = [event for event in history.events if event.kind is EventKind.SYNC]
    assert len(starts) == 2


def test_a_halt_of_a_debugger_leaves_a_pair_to_the_next_instruction() -> None:
    """In debug mode nothing is recorded; resuming is a transfer to where the hart was."""
    program = image()
    first = history_of(DeltaPair(START, 0xE4, first=True).raw + DeltaPair(0xE4, 0xE6).raw, program).histories[0]
    assert list(first.pcs()) == [START, 0xE4, 0xE6] and first.gaps == 0


def test_texts_and_bytes() -> None:
    text = b"Trace log:\n[0] SRC: 0x68 -> DST: 0xe4 <TRACE_START>\n[1] SRC: 0x106 -> DST: 0x174 <TRAP_ENTRY>\nend\n"
    expected = ENTRY.pack(0x69, 0xE4) + ENTRY.pack(0x106, 0x175)
    assert is_text(text) and pairs_in_text(text) == expected and not is_text(expected)
    assert [item.text for item in items_of(text)] == [
        "Pair src=0x00000068 dst=0x000000e4 first", "Pair src=0x00000106 dst=0x00000174 trap",
    ]  # fmt: skip
    with pytest.raises(BadPairs, match="line 2 is not a pair of DELTA_SRC and DELTA_DST: 0000"):
        pairs_in_text(b"00000069 000000e4\n0000\n")


def test_bytes_that_are_no_pair() -> None:
    histories = history_of(raw("pairs.txt") + b"\x01\x02", image())
    assert histories.accounting == (1090, 1088, 0, 2)
    assert next(items_of(b"\x01\x02")).problem
