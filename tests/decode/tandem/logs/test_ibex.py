"""Ibex's text traces: lines as its tracer formats them, of what Spike did, and lines of its manual's kind.

Source of the format strings: ibex, rtl/ibex_tracer.sv, printbuffer_dumpline: "Time\\tCycle\\tPC\\tInsn\\tDecoded
instruction\\tRegister and memory contents", then " %s:0x%08x" of what was read, " %s=0x%08x" of what was written,
" PA:0x%08x", " store:0x%08x", " load:0x%08x".
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.decode.executed.readers import LogError
from rvtrace_gdb.decode.history.events import EventKind
from tests.decode.tandem.corpus import Step, golden_steps, program_of
from tests.decode.tandem.logs.read_logs import read_log, written

HEADER = "Time\tCycle\tPC\tInsn\tDecoded instruction\tRegister and memory contents"


def tracer_line(number: int, step: Step, contents: str) -> str:
    word = f"{step.word or 0:08x}" if (step.word or 0) & 3 == 3 else f"{step.word or 0:04x}    "
    return f"{2 * number:>15}\t{number:10}\t{step.pc:08x}\t{word}\tsomething\tx1,x2,3\t{contents}"


def traced(steps: list[Step]) -> Iterator[str]:
    """The lines of the tracer; reads of x1 to x31 are those of the fields rs1 and rs2 where these are registers."""
    yield HEADER
    held: dict[int, int] = {}
    for number, step in enumerate(steps):
        word, contents = step.word or 0, ""
        if word & 0x7F in (0x33, 0x23, 0x63):
            for register in (word >> 15 & 31, word >> 20 & 31):
                if register in held:
                    contents += f" x{register}:0x{held[register]:08x}"
        for register, value in step.x.items():
            contents += f" x{register}=0x{value:08x}"
        for address, data in step.stores:
            contents += f" PA:0x{address:08x} store:0x{int.from_bytes(data, 'little'):08x} load:0xffffffff"
        held |= step.x
        yield tracer_line(number, step, contents)


@pytest.mark.parametrize(
    "name", ["piccolo_rv32ui-p-add", "piccolo_rv32ui-p-sb", "piccolo_rv32um-p-div", "piccolo_rv32mi-p-scall"]
)
def test_what_the_tracer_says_of_what_spike_did(name: str, tmp_path: Path) -> None:
    steps = [step for step in golden_steps(name) if step.cause is None][:600]
    path = written(tmp_path / "trace_core_00000000.log", *traced(steps))
    reader, found = read_log(path, 32, program_of(name))
    assert not reader.mismatch and not found.index.breaks
    assert list(found.history.pcs()) == [step.pc for step in steps]
    held: dict[int, int] = {}
    stored: dict[int, int] = {}
    for position, step in enumerate(steps):
        state = found.before(position)
        assert {n: state.x(n) for n in held} == held
        assert all(state.memory(address, 1) == [value] for address, value in stored.items())
        held |= step.x
        for address, data in step.stores:
            stored |= {address + at: byte for at, byte in enumerate(data)}
    traps = sum(step.cause is not None for step in list(golden_steps(name))[:600])
    told = [event for event in found.history.events if event.kind is EventKind.TRAP]
    assert len(told) == traps
    assert all(found.before(event.position).csr(0x342) is None for event in told)


def test_lines_as_in_the_manual(tmp_path: Path) -> None:
    """One column less, padded; a store of 8 digits has the size of its instruction."""
    path = written(
        tmp_path / "it.log",
        "           Time\t          Cycle\tPC      \tInsn    \tDecoded instruction  \tRegister and memory contents",
        "            130\t             61\t00000150\t4481    \tc.li     x9,0         \t x9=0x00000000",
        "            132\t             62\t00000152\t00008437\tlui      x8,0x8       \t x8=0x00008000",
        "            134\t             63\t00000156\tfff40413\taddi     x8,x8,-1     \t x8:0x00008000 x8=0x00007fff",
        "            142\t             67\t0000015a\tc622    \tc.swsp   x8,12(x2)    \t x2:0x00002000 x8:0x00007fff"
        " PA:0x0000200c store:0x00007fff load:0xffffffff",
        "            144\t             68\t0000015c\t00810723\tsb       x8,14(x2)    \t x2:0x00002000 x8:0x00007fff"
        " PA:0x0000200e store:0x000000ff",
        "            146\t             69\t00000160\t00000013\taddi     x0,x0,0      \t",
    )  # fmt: skip
    _, found = read_log(path, 32)
    assert list(found.history.pcs()) == [0x150, 0x152, 0x156, 0x15A, 0x15C, 0x160]
    assert found.before(0).x(2) == 0x2000, "it is read before anything wrote it"
    assert found.before(0).x(8) is None
    assert found.before(5).memory(0x200C, 4) == [0xFF, 0x7F, 0xFF, 0]
    assert found.before(3).memory(0x200C, 1) == [None]


def test_capabilities(tmp_path: Path) -> None:
    """CHERIoT-Ibex: the address of a capability is the register's value; its store has 8 bytes; ? are no digits."""
    path = written(
        tmp_path / "it.log", HEADER,
        "10\t5\t80000100\t00b12023\tsw\tx11,0(x2)\t x2:0x20001000+0x1700000c4 x11:0x00001234+0x000000000"
        " PA:0x20001000 store:0x00001234",
        "12\t6\t80000104\t00b11423\tsh\tx11,8(x2)\t x2:0x20001000+0x1700000c4 x11:0x00001234+0x000000000"
        " PA:0x20001008 store:0x????1234",
        "14\t7\t80000108\t00c13823\tcsc\tx12,16(x2)\t x2:0x20001000+0x1700000c4 x12:0x20003000+0x17f000c44"
        " PA:0x20001010 store:0x20003000+0x17f000c44",
        "16\t8\t8000010c\t01013683\tclc\tx13,16(x2)\t x2:0x20001000+0x1700000c4 x13=0x20003000+0x17f000c44"
        " PA:0x20001010 load:0x20003000+0x17f000c44",
        "18\t9\t80000110\t00000073\t-->ecall\t\t",
        "20\t10\t80000400\t00000013\taddi\tx0,x0,0\t",
    )  # fmt: skip
    reader, found = read_log(path, 32)
    assert list(found.history.pcs()) == [0x8000_0100, 0x8000_0104, 0x8000_0108, 0x8000_010C, 0x8000_0400]
    last = found.before(4)
    assert last.memory(0x2000_1000, 4) == [0x34, 0x12, 0, 0] and last.memory(0x2000_1008, 3) == [0x34, 0x12, None]
    assert last.memory(0x2000_1010, 8) == list((0x7F00_0C44_2000_3000).to_bytes(8, "little"))
    assert last.x(13) == 0x2000_3000 and last.privilege == 3
    assert [(trap.epc, trap.handler) for trap in found.index.traps] == [(None, 0x8000_0400)]
    assert reader.notes == ["1 trap is not in the log: their causes are unknown"]


def test_an_interrupt_and_a_load_that_failed(tmp_path: Path) -> None:
    """What follows is elsewhere: a load that wrote nothing has trapped, an addition has retired before an interrupt."""
    path = written(
        tmp_path / "it.log", HEADER,
        "10\t5\t00000100\t00108093\taddi\tx1,x1,1\t x1:0x00000001 x1=0x00000002",
        "12\t6\t00000200\t30200073\tmret\t\t",
        "14\t7\t00000104\t0000a103\tlw\tx2,0(x1)\t x1:0x00000002 PA:0x00000002",
        "16\t8\t00000200\t30200073\tmret\t\t",
        "18\t9\t00000104\t00000013\taddi\tx0,x0,0\t",
    )  # fmt: skip
    _, found = read_log(path, 32)
    assert list(found.history.pcs()) == [0x100, 0x200, 0x200, 0x104]
    assert [event.position for event in found.history.events if event.kind is EventKind.TRAP] == [1, 2]
    assert found.before(3).privilege is None, "where mret leads is in mstatus, which is not in the trace"


def test_registers_that_something_else_wrote(tmp_path: Path) -> None:
    """A register is read with another value than it was left with: what was known is not, but for what was read."""
    path = written(
        tmp_path / "it.log", HEADER,
        "10\t5\t00000100\t00108093\taddi\tx1,x1,1\t x1:0x00000001 x1=0x00000002",
        "12\t6\t00000104\t00100113\taddi\tx2,x0,1\t x2=0x00000001",
        "14\t7\t00000108\t00108093\taddi\tx1,x1,1\t x1:0x00000009 x1=0x0000000a",
        "16\t8\t0000010c\t00000013\taddi\tx0,x0,0\t",
    )  # fmt: skip
    _, found = read_log(path, 32)
    assert found.before(2).x(1) == 9 and found.before(2).x(2) is None and found.before(1).x(1) == 2
    assert found.before(3).x(1) == 10


@pytest.mark.parametrize(
    "line",
    [
        "12\t6\t0000010\t00000013\taddi\tx0,x0,0\t", "12\t6\t00000104\t0000001\taddi\tx0,x0,0\t",
        "12\t6\t00000104\t00000013\taddi\tx0,x0,0\t x1=0x0000",
        "12\t6\t00000104\t00000013\taddi\t\t x1=0x00000001 x2=0x00000001",
        "12\t6\t00000104\t00000013\taddi\t\t store:0x00000001", "something",
    ],
)  # fmt: skip
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    good = "10\t5\t00000100\t00108093\taddi\tx1,x1,1\t x1=0x00000002"
    with pytest.raises(LogError, match=r"it\.log, line 3: expected a line of the Ibex tracer"):
        read_log(written(tmp_path / "it.log", HEADER, good, line, good), 32)


def test_a_line_that_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "it.log"
    path.write_text(f"{HEADER}\n10\t5\t00000100\t00108093\taddi\tx1,x1,1\t x1=0x00000002\n12\t6\t0000")
    reader, found = read_log(path, 32)
    assert found.history.instructions == 1 and reader.notes == ["the last line is cut off and was ignored"]
