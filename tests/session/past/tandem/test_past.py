"""What a tandem trace tells gdb: registers by all their names, and which bytes of memory."""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import AdditionalState, Instr, StateId, TandemParameters
from rvtrace_gdb.decode.tandem.wording import regno_of
from rvtrace_gdb.session.past.tandem.past import TandemPast
from rvtrace_gdb.session.proxy.protocol.target_xml import TargetXml
from rvtrace_gdb.session.replay.timeline import Timeline
from rvtrace_gdb.support.errors import silent
from tests.decode.program.elves import build
from tests.decode.tandem.groups import INIT, RESET, Line, csr, f, priv, store, sw, x
from tests.session.replay.test_timeline import places_in

PROGRAM = """
    .text
    .globl f
f:  nop
    ret
    .section .rodata
    .globl table
table: .quad 0x1122334455667788
    .data
    .globl counter
counter: .quad 4
"""
LW = Instr(0x0003_2283, 4)  # lw t0, 0(t1)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("a0", 0x100A), ("x10", 0x100A), ("fp", 0x1008), ("s0", 0x1008), ("ft0", 0x1020), ("f31", 0x103F),
        ("fa0", 0x102A),
        ("mstatus", 0x300), ("csr768", 0x300), ("csr2048", 0x800), ("sptbr", 0x180), ("csr4096", None), ("csrx", None),
        ("trace_pos", None), ("v0", None),
    ],
)  # fmt: skip
def test_names(name: str, number: int | None) -> None:
    """Numbers of the Debug Specification, 3.6 "Abstract Register Numbers"; of CSRs gdb's and OpenOCD's names, too."""
    assert regno_of(name) == number


def test_registers_at_each_place() -> None:
    line = Line()
    line.add(RESET, priv(3))
    line(x(10, 1))
    line(x(10, 2), csr(0x341, 0x80), csr(0x801, 9))
    line(f(3, 0x3FF0_0000_0000_0000))
    line()
    line.add(RESET, priv(3))
    line()
    found = line.decoded()
    past = places_in(found.history)
    past.enter(0, silent)
    seen = []
    for position in range(len(found.history) + 1):
        past.go_to(0, position)
        registers = past.registers(0)
        seen.append([registers.get(name) for name in ("a0", "x10", "mepc", "csr2049", "ft3", "priv", "x0", "sp")])
        assert registers["pc"] == 0x8000_0000 + 4 * position
        assert dict(registers)["pc"] == registers["pc"] and len(registers) == len(dict(registers))
    assert (
        seen
        == [
            [None, None, None, None, None, 3, 0, None],
            [1, 1, None, None, None, 3, 0, None],
            [2, 2, 0x80, 9, None, 3, 0, None],
            [2, 2, 0x80, 9, 0x3FF0_0000_0000_0000, 3, 0, None],
            [None, None, None, None, None, 3, 0, None],  # the instruction behind the reset
            [None, None, None, None, None, 3, 0, None],
        ]
        or seen[3][:2] == [2, 2]
    )
    assert seen[-1][:5] == [None] * 5
    stay_known = TandemPast(found, ContextImages(Image(64))).values_stay_known
    assert stay_known(4, ["x0"]) and not stay_known(1, ["a0"]) and not stay_known(5, ["a0"])


def test_single_precision_is_boxed_where_registers_are_wider() -> None:
    """RISC-V ISA, "NaN Boxing of Narrower Values"."""
    line = Line()
    line.add(RESET, priv(3))
    line(f(1, 0x3F80_0000))
    past = places_in(line.decoded(TandemParameters(64, 32)).history)
    past.enter(0, silent)
    past.go_to(0, 1)
    for flen, expected in ((32, "0000803f"), (64, "0000803fffffffff")):
        told = past.traced_registers(0)
        assert told is not None and told.flen == 32
        description = TargetXml.of_hart(64, told._replace(flen=flen))
        number = description.by_name["ft1"].number
        assert description.value(number, past.registers(0)) == expected.encode()


def test_the_description_of_a_trace_alone() -> None:
    line = Line()
    line.add(RESET, priv(3), csr(0x801, 1), csr(0x105, 2))
    line()
    past = places_in(line.decoded(TandemParameters(32, 0)).history)
    told = past.traced_registers(0)
    description = TargetXml.of_hart(32, told)
    names = description.by_name
    assert {"zero", "pc", "stvec", "csr2049", "mstatus", "mcause", "priv"} <= set(names)
    assert names["stvec"].number == 65 + 0x105 and names["priv"].number == 4161  # gdb's riscv-tdep.h
    assert "ft0" not in names and names["mstatus"].size == 4
    assert "ft0" in TargetXml.of_hart(32).by_name


def memory_in(line: Line, image: Image) -> Timeline:
    past = places_in(line.decoded().history, program=image)
    past.enter(0, silent)
    return past


def test_memory_stored_and_loaded_and_constant(tmp_path: Path) -> None:
    """Stores first; then what was loaded, in the program's sections alone; then what the program does not write."""
    image = Image.from_elf(build(tmp_path, PROGRAM, "-Wl,-Ttext=0x80000000", "-Wl,-Tdata=0x80001000"))
    table = next(address for address in range(0x8000_0000, 0x8001_0000) if image.constant(address, 2) == b"\x88\x77")
    line = Line()
    line.add(RESET, priv(3))
    line(store(table + 2, 2, 0xBEEF), instr=sw())
    line(x(5, 0x0403_0201), AdditionalState(StateId.EFFECTIVE_ADDRESS, 0x8000_1000), instr=LW)
    line(x(5, 0x0403_0201), AdditionalState(StateId.EFFECTIVE_ADDRESS, 0x1000_0000), instr=LW)
    line(store(0x8000_1002, 1, 0x99), instr=sw())
    line(store(0x9000_0000, 4, 0x12345678), instr=sw())
    past = memory_in(line, image)
    seen = []
    for position in range(6):
        past.go_to(0, position)
        places = (table, 0x8000_1000, 0x1000_0000, 0x8FFF_FFFF, 0x9000_0000)
        seen.append([past.memory(0, address, 8).hex() for address in places])
    table_before, table_after = "8877665544332211", "8877efbe44332211"
    assert seen == [
        [table_before, "", "", "", ""],
        [table_after, "", "", "", ""],
        [table_after, "01020304", "", "", ""],
        [table_after, "01020304", "", "", ""],  # a device is not known to answer the same again
        [table_after, "01029904", "", "", ""],
        [table_after, "01029904", "", "", "78563412"],
    ]


def test_constants_that_were_written_may_be_overwritten(tmp_path: Path) -> None:
    image = Image.from_elf(build(tmp_path, PROGRAM, "-Wl,-Ttext=0x80000000", "-Wl,-Tdata=0x80001000"))
    table = next(address for address in range(0x8000_0000, 0x8001_0000) if image.constant(address, 2) == b"\x88\x77")
    line = Line()
    line.add(RESET, priv(3))
    line(store(table + 2, 2, 0xBEEF), instr=sw())
    line(instr=sw())  # nobody knows where to
    past = memory_in(line, image)
    past.go_to(0, len(past.selected(0).history))
    assert past.memory(0, table, 8).hex() == "8877"
    assert past.memory(0, table + 4, 4).hex() == "44332211"


def test_breakpoints_of_a_debugger_are_not_seen(tmp_path: Path) -> None:
    """It puts an ebreak into the code; the program's own writes there are seen."""
    image = Image.from_elf(build(tmp_path, PROGRAM, "-Wl,-Ttext=0x80000000", "-Wl,-Tdata=0x80001000"))
    code = image.constant(0x8000_0000, 4)
    line = Line()
    line.add(RESET, priv(3))
    line()
    line.add(INIT, store(0x8000_0000, 4, 0x0010_0073))
    line.add(INIT, store(0x8000_1000, 4, 0x0010_0073))
    line()
    line(store(0x8000_0000, 4, 0x0010_0073), instr=sw())
    past = memory_in(line, image)
    past.go_to(0, 2)
    assert past.memory(0, 0x8000_0000, 4) == code and past.memory(0, 0x8000_0002, 1) == code[2:3]
    assert past.memory(0, 0x8000_1000, 4).hex() == "73001000"
    past.go_to(0, 3)
    assert past.memory(0, 0x8000_0000, 4).hex() == "73001000"


def test_what_others_changed(tmp_path: Path) -> None:
    """A load that reads something else than was stored: memory that another hart wrote, or a device."""
    image = Image.from_elf(build(tmp_path, PROGRAM, "-Wl,-Ttext=0x80000000", "-Wl,-Tdata=0x80001000"))
    line = Line()
    line.add(RESET, priv(3))
    for address in (0x8000_1000, 0x1000_0000):
        line(store(address, 4, 0x0101_0101), instr=sw())
        line(x(5, 0x0101_0101), AdditionalState(StateId.EFFECTIVE_ADDRESS, address), instr=LW)
        line(x(5, 0x0101_0201), AdditionalState(StateId.EFFECTIVE_ADDRESS, address), instr=LW)
    past = memory_in(line, image)
    past.go_to(0, 2)
    assert past.memory(0, 0x8000_1000, 4).hex() == "01010101"
    past.go_to(0, 5)
    assert past.memory(0, 0x8000_1000, 4).hex() == "01020101" and past.memory(0, 0x1000_0000, 4).hex() == "01010101"
    past.go_to(0, 6)
    assert past.memory(0, 0x1000_0000, 4).hex() == "01" and past.memory(0, 0x1000_0002, 2).hex() == "0101"
