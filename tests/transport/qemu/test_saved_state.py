"""What is saved of a QEMU with a trace: registers and memory, as gdb has them from QEMU's stub."""

import re
from pathlib import Path

from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.capture.model import SavedAt, SavedRegisters
from rvtrace_gdb.session.sources.qemu.saved import parsed
from tests.helpers.cross_compiler import HOME, compile_program
from tests.transport.qemu.machine import gdb, ticks

RAM, SIZE = 0x8000_0000, 0x8000


def test_both_ends_are_as_gdb_has_them(tmp_path: Path) -> None:
    elf, file, dumped = ticks(tmp_path), tmp_path / "x.rvt", tmp_path / "memory"
    dump = f"dump binary memory {dumped} {RAM:#x} {RAM + SIZE:#x}"
    names = ["pc", "sp", "a0", "a5", "s1", "mstatus", "mtvec", "mepc", "mcause"]
    said = gdb(
        elf, tmp_path,
        ["trace start", "break finish", "continue", f"trace save {file}", *(f"p/x ${it}" for it in names), dump,
         "trace status"],
    )  # fmt: skip
    shown = {it: int(said[f"p/x ${it}"].rpartition("= ")[2], 16) for it in names}
    capture = load(file)
    began, ended = capture.registers
    assert (began.at, began.pc, began.registers[0x1002]) == (SavedAt.START, 0x1000, 0), "in QEMU's boot ROM"
    numbers = {
        "sp": 0x1002, "a0": 0x100A, "a5": 0x100F, "s1": 0x1009, "mstatus": 0x300, "mtvec": 0x305, "mepc": 0x341,
        "mcause": 0x342,
    }  # fmt: skip
    assert (ended.at, ended.pc) == (SavedAt.STOP, shown["pc"])
    assert {name: ended.registers[number] for name, number in numbers.items()} == {it: shown[it] for it in numbers}
    [at_stop] = (it for it in capture.memory if it.at is SavedAt.STOP)
    assert at_stop.data[RAM - at_stop.address :][:SIZE] == dumped.read_bytes()
    [at_start] = (it for it in capture.memory if it.at is SavedAt.START)
    assert at_start.data[RAM - at_start.address :][:16] == dumped.read_bytes()[:16], "code"
    assert at_start.data[:SIZE] != at_stop.data[:SIZE]
    assert re.search(r"^saved: +registers and 4 MiB of memory at the start, ", said["trace status"], re.M)


def test_several_harts_share_their_memory(tmp_path: Path) -> None:
    """So it is not believed, and not saved; registers are, of each hart."""
    elf, file = compile_program(tmp_path, HOME / "tests" / "programs" / "qemu" / "four.c"), tmp_path / "x.rvt"
    gdb(elf, tmp_path, ["trace start", "break main", "continue", f"trace save {file}"], more=["-smp", "2"])
    capture = load(file)
    assert sorted((it.hart, it.at) for it in capture.registers) == [
        (0, SavedAt.START), (0, SavedAt.STOP), (1, SavedAt.START), (1, SavedAt.STOP),
    ]  # fmt: skip
    assert capture.memory == ()


def test_a_list_of_rv32() -> None:
    """As QEMU 10 prints it, shortened."""
    text = (
        "\r\nCPU#0\r\n V      =   0\r\n pc       80000008\r\n mhartid  00000000\r\n mtvec    80000100\r\n"
        " x0/zero  00000000 x1/ra    8000000c x2/sp    80008000\r\n"
        " f0/ft0   ffffffff3f800000 f1/ft1   0000000000000001\r\n"
    )
    values = {0x305: 0x8000_0100, 0x1001: 0x8000_000C, 0x1002: 0x8000_8000, 0x1020: 0xFFFF_FFFF_3F80_0000, 0x1021: 1}
    assert parsed(text, 1, SavedAt.STOP) == SavedRegisters(1, SavedAt.STOP, 0x8000_0008, values)
    assert parsed("Error: no such CPU", 0, SavedAt.STOP) is None
