"""The pairs that NEORV32's own RTL recorded, against what the same RTL logged (tests/data/neorv32/README.md)."""

import gzip
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.branches.neorv32 import (
    ENTRY,
    BadPairs,
    DeltaPair,
    PairEncoder,
    history_of,
    is_text,
    items_of,
    pairs_in_text,
)
from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image

DATA = Path(__file__).resolve().parents[2] / "data" / "neorv32"
ELF = DATA / "traced.elf"
ECALL, ILLEGAL, HANDLER, START, STOPPED = 0x106, 0x10A, 0x174, 0x68, 0x6C


class Logged(NamedTuple):
    """A line of the RTL's log."""

    pc: int
    enters_trap: bool


def logged() -> list[Logged]:
    """What the RTL logged between the instructions that start and stop TRACER, both left out but for the last one."""
    lines = gzip.decompress((DATA / "neorv32.tracer0.log.gz").read_bytes()).decode().splitlines()
    found = [Logged(int(line.split()[2], 16), "<TRAP_ENTRY>" in line) for line in lines]
    pcs = [one.pc for one in found]
    return found[pcs.index(START) : pcs.index(STOPPED) + 1]


def retired() -> list[int]:
    """The same without the two instructions that raised an exception."""
    return [one.pc for one in logged() if one.pc not in (ECALL, ILLEGAL)]


def raw(name: str) -> bytes:
    return pairs_in_text((DATA / name).read_bytes())


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


def test_the_encoder_records_what_the_rtl_recorded() -> None:
    """Of what the RTL logged. The log begins one instruction after the one that starts TRACER."""
    encoder, program = PairEncoder(), image()
    found: list[DeltaPair] = []
    run: list[int] = []
    for one in logged():
        if one.enters_trap:
            raised = run.pop() if run[-1] in (ECALL, ILLEGAL) else None
            found += encoder.pairs_of(blocks_from_pcs(run, program))
            trap = IngressTrap(raised or 0, interrupt=raised is None, cause=0, tval=0, handler=one.pc)
            found += encoder.pairs_of([trap])
            run = []
        run.append(one.pc)
    found += encoder.pairs_of(blocks_from_pcs(run, program))
    assert b"".join(pair.raw for pair in found) == raw("pairs.txt")


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
