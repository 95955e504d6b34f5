"""An Espressif chip's trace through the real gdb and the real OpenOCD, out of the simulated target's memory."""

import subprocess
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.decode.etrace.esp32 import images as made
from tests.decode.etrace.esp32.images import Described
from tests.endtoend.retired_instructions import listed_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb

ROOT, BUFFER = 0x8001_0000, 0x8002_0000


def firmware(folder: Path, memory: dict[int, bytes]) -> Path:
    """A program that does nothing and has *memory* as its data."""
    source, options = [".globl _start", "_start: j _start"], []
    for address, data in memory.items():
        (folder / f"{address:x}.bin").write_bytes(data)
        source += [f'.section .at{address:x}, "aw"', f'.incbin "{folder}/{address:x}.bin"']
        options.append(f"-Wl,--section-start=.at{address:x}={address:#x}")
    (folder / "firmware.S").write_text("\n".join(source) + "\n")
    command = ["riscv64-unknown-elf-gcc", "-march=rv32imac_zicsr", "-mabi=ilp32", "-nostdlib", "-Wl,-n"]
    options.append("-Wl,-Ttext=0x80000000")
    subprocess.run([*command, *options, str(folder / "firmware.S"), "-o", str(folder / "firmware.elf")], check=True)
    return folder / "firmware.elf"


def test_a_trace_in_the_memory_of_a_target(tmp_path: Path) -> None:
    """The program that was traced is not the one in the target: only what is in memory counts."""
    trace = made.stream("pt10")
    core = Described(trace + bytes(48), len(trace), state=made.STOPPED, address=BUFFER)
    elf = firmware(tmp_path, made.memory([core], at=ROOT))
    commands = [f"trace snapshot {ROOT:#x}", "trace history /a 1,100000"]
    with Rig(elf, tmp_path / "rig", "--target", "esp32") as rig:
        out = run_gdb(made.ELF, [SOURCE, f"target extended-remote :{rig.gdb_port}", *commands])
    assert "ESP32-C6 v0.2" in out[commands[0]]
    assert listed_pcs(out[commands[1]]) == made.executed()
