"""What is saved of a QEMU with a trace: registers and memory, as gdb has them from QEMU's stub."""

import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.capture.model import SavedAt, SavedRegisters
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources.qemu.saved import parsed
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.helpers.qemu10 import NAMES, X, register_dumps
from tests.transport.qemu.machine import arguments, gdb, recorded, ticks

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


@pytest.mark.parametrize("source", ["plugin", "log"] if LONG else ["log"])
def test_a_whole_run_has_every_register(tmp_path: Path, source: str) -> None:
    """`rvtrace qemu -o` saves the state at reset: each register, at each instruction, is that of QEMU's log of another
    run, with interrupts and exceptions.
    """
    elf, log = ticks(tmp_path), tmp_path / "registers.log"
    recorded(elf, tmp_path, "--source", source)
    one = ["-accel", "tcg,one-insn-per-tb=on,thread=single", "-d", "exec,nochain,int,cpu", "-D", str(log)]
    subprocess.run(arguments(elf, *one), stdin=subprocess.DEVNULL, timeout=120, check=True)
    session = Session()
    session.open(tmp_path / "recorded.rvt", None)
    selected = session.selected(Context())
    past, dumps = past_of(session, selected), iter(register_dumps(log.read_text(encoding="latin-1")))
    assert past is not None and past.has_memory
    known = asked = 0
    for position, pc in enumerate(selected.history.pcs(0, len(selected.history) if LONG else 6000)):
        if pc == symbol_address(elf, "finish"):
            break
        before = next(it for it in dumps if it["pc"] == pc)  # others were begun, and did not retire
        if position % 5:
            continue
        registers = past.registers(position)
        for name, number in zip(NAMES, X, strict=True):
            assert registers.get(name, before[number]) == before[number], (position, name)
            known, asked = known + (name in registers), asked + 1
    assert known > 0.95 * asked > 30_000  # what the timer said is not known


def test_where_a_debugger_may_come_nothing_is_saved(tmp_path: Path) -> None:
    """It may write anything."""
    elf = ticks(tmp_path)
    recorded(elf, tmp_path, more=["-gdb", f"unix:{tmp_path}/stub,server=on,wait=off"])
    capture = load(tmp_path / "recorded.rvt")
    assert capture.registers == () and capture.memory == ()


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
    values = {0xF14: 0, 0x305: 0x8000_0100, 0x1001: 0x8000_000C, 0x1002: 0x8000_8000}
    values |= {0x1020: 0xFFFF_FFFF_3F80_0000, 0x1021: 1}
    assert parsed(text, 1, SavedAt.STOP) == SavedRegisters(1, SavedAt.STOP, 0x8000_0008, values)
    assert parsed("Error: no such CPU", 0, SavedAt.STOP) is None
