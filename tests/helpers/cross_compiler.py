"""Compiling the programs the tests run, with the real cross compiler."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
EXAMPLES = HOME / "examples"
ABI = {"rv64imac_zicsr": "lp64", "rv64gc": "lp64d", "rv32imac_zicsr": "ilp32", "rv32gc": "ilp32d"}
ABI |= {"rv64ima_zicsr": "lp64", "rv32ima_zicsr": "ilp32"}  # every instruction has four bytes


def compile_program(folder: Path, *sources: Path, march: str = "rv64imac_zicsr", options: tuple[str, ...] = ()) -> Path:
    """Compile *sources* to a bare-metal ELF in *folder*, with the start-up and the memory layout of examples/."""
    elf = folder / f"{sources[0].stem}-{march}.elf"
    command = ["riscv64-unknown-elf-gcc", f"-march={march}", f"-mabi={ABI[march]}", "-mcmodel=medany", "-Og", "-g"]
    command += ["-specs=picolibc.specs", "-nostartfiles", "-T", str(EXAMPLES / "link.ld"), *options]
    command += [str(EXAMPLES / "start.S"), *map(str, sources)]
    elf.write_bytes(_compiled(tuple(command), tuple(source.read_bytes() for source in sources)))
    return elf


@cache
def _compiled(command: tuple[str, ...], sources: tuple[bytes, ...]) -> bytes:
    """Return the ELF that *command* makes of *sources*, its last words. It is cached, as many tests need the same."""
    with tempfile.TemporaryDirectory() as folder:
        elf = Path(folder, "program.elf")
        subprocess.run([*command, "-o", str(elf)], check=True, capture_output=True)
        return elf.read_bytes()


def demo(folder: Path, march: str = "rv64imac_zicsr") -> Path:
    """Compile the program of `make demo`."""
    return compile_program(folder, EXAMPLES / "demo.c", march=march)
