"""What an Espressif chip's firmware traced, looked at in the real gdb: of a live chip and in core dumps."""

import hashlib
import re
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.esp32.snapshot import CHIPS
from tests.decode.etrace.esp32 import images as made
from tests.decode.etrace.esp32.images import Described
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.gdbext.memory_stub import serving
from tests.helpers.amounts import thorough

PT10 = Described(made.stream("pt10"), head=len(made.stream("pt10")), mode=made.LINEAR)
STOPPED = replace(PT10, state=made.STOPPED)
ALL, LAST = "trace history 1,100000", "trace history 18001,100000"
"""The last is enough where the same trace comes in another way."""


def ran(history: str) -> list[int]:
    """The addresses in a listing."""
    return [int(pc, 16) for pc in re.findall(r"^\d+\t(?:=> |   )0x([0-9a-f]+)", history, re.M)]


def with_symbol(folder: Path) -> Path:
    """The program as ESP-IDF links it: its ELF knows where the snapshot is."""
    elf = folder / "app.elf"
    root = folder / "root.bin"
    root.write_bytes(bytes(32))
    section = [f"--add-section=.dram0.bss={root}", "--set-section-flags=.dram0.bss=alloc"]
    section += [f"--change-section-address=.dram0.bss={made.ROOT:#x}"]
    section += ["--add-symbol=g_esp_riscv_trace_snapshot=.dram0.bss:0,global,object"]
    subprocess.run(["riscv64-unknown-elf-objcopy", *section, str(made.ELF), str(elf)], check=True, capture_output=True)
    before, entry, after = elf.read_bytes().rpartition(struct.pack("<2I", made.ROOT, 0))  # its st_value and st_size
    elf.write_bytes(before + entry[:4] + (32).to_bytes(4, "little") + after)
    return elf


def test_a_live_chip(tmp_path: Path) -> None:
    elf, saved = with_symbol(tmp_path), tmp_path / "x.rvt"
    with serving(made.memory([STOPPED], sha256=hashlib.sha256(elf.read_bytes()).digest())) as port:
        commands = [f"target remote :{port}", "trace snapshot", ALL, "trace status", f"trace save {saved}"]
        out = run_gdb(elf, [SOURCE, *commands, f"trace open {saved}", f"{LAST} "])
    assert "warning" not in out["trace snapshot"]
    assert ran(out[ALL]) == made.executed()
    assert "ESP32-C6 v0.2" in out["trace snapshot"]
    assert "20000 instructions" in out["trace status"]
    assert ran(out[f"{LAST} "]) == made.executed()[18000:]


@thorough("test_a_live_chip")
def test_a_trace_that_runs_ends_where_the_encoder_writes(tmp_path: Path) -> None:
    """The encoder's registers are in no memory map that OpenOCD gives to gdb."""
    running = replace(PT10, state=made.CAPTURING, head_valid=0)
    registers = {CHIPS[made.C6].encoders[0]: made.encoder_registers(running, current=running.address + 6000)}
    memory = made.memory([running], registers=registers)
    with serving(memory, range(0x4080_0000, 0x4088_0000)) as port:
        commands = [f"target remote :{port}", "trace snapshot", ALL, "show mem inaccessible-by-default"]
        out = run_gdb(with_symbol(tmp_path), [SOURCE, *commands])
    executed, shown = made.executed(), ran(out[ALL])
    assert 5000 < len(shown) < len(executed) and shown == executed[: len(shown)]
    assert "core 0: the newest packets were still in the encoder" in out["trace snapshot"]
    setting = out["show mem inaccessible-by-default"].strip()
    assert setting == "Unknown memory addresses will be treated as inaccessible."


def test_the_address_can_be_given() -> None:
    with serving(made.memory([STOPPED])) as port:
        snapshot = f"trace snapshot {made.ROOT:#x}"
        out = run_gdb(made.ELF, [SOURCE, f"target remote :{port}", "trace snapshot", snapshot, LAST])
    assert "has no g_esp_riscv_trace_snapshot" in out["trace snapshot"]
    assert ran(out[LAST]) == made.executed()[18000:]


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    elf = with_symbol(tmp_path)
    with serving(made.memory([STOPPED], magic=bytes(4))) as port:
        commands = ["trace snapshot", f"target remote :{port}", "trace snapshot ", "trace snapshot 0x10"]
        out = run_gdb(elf, [SOURCE, *commands, "trace snapshot nowhere"])
    assert out["trace snapshot"].startswith("gdb is not connected to the chip")
    assert "there is no trace snapshot" in out["trace snapshot "]
    assert "no 32 bytes of memory at 0x00000010" in out["trace snapshot 0x10"]
    assert out["trace snapshot nowhere"].strip() == 'trace snapshot: No symbol "nowhere" in current context.'


@pytest.mark.parametrize("command", ["trace open {core}", "trace snapshot"])
def test_a_core_dump(command: str, tmp_path: Path) -> None:
    core = tmp_path / "core.elf"
    core.write_bytes(made.elf_core([PT10]))
    command = command.format(core=core)
    out = run_gdb(made.ELF, [SOURCE, f"core {core}", command, LAST])
    assert ran(out[LAST]) == made.executed()[18000:]
    assert "tracing ended when the program panicked" in out[command]


def test_help() -> None:
    out = run_gdb(None, [SOURCE, "help trace snapshot", "help trace"])
    assert "Usage: trace snapshot [ADDRESS]" in out["help trace snapshot"]
    assert "trace snapshot -- Show the trace that an Espressif chip's firmware recorded" in out["help trace"]
