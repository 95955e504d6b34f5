"""Compiling the programs the tests run, with the real cross compiler."""

from functools import cache
from pathlib import Path

from rvtrace_gdb.decode.program.elf import Symbol
from rvtrace_gdb.decode.program.image import read_elf
from tests.helpers.compiled import elf_bytes

HOME = Path(__file__).resolve().parents[2]
EXAMPLES = HOME / "examples"
ABI = {"rv64imac_zicsr": "lp64", "rv64gc": "lp64d", "rv32imac_zicsr": "ilp32", "rv32gc": "ilp32d"}
ABI |= {"rv64ima_zicsr": "lp64", "rv32ima_zicsr": "ilp32"}  # every instruction has four bytes


def compile_program(
    folder: Path, *sources: Path, march: str = "rv64imac_zicsr", options: tuple[str, ...] = (),
    start: Path = EXAMPLES / "start.S",
) -> Path:  # fmt: skip
    """Compile *sources* to a bare-metal ELF in *folder*, with the start-up and the memory layout of examples/."""
    elf = folder / f"{sources[0].stem}-{march}.elf"
    command = ["riscv64-unknown-elf-gcc", f"-march={march}", f"-mabi={ABI[march]}", "-mcmodel=medany", "-Og", "-g"]
    command += ["-specs=picolibc.specs", "-nostartfiles", "-T", str(EXAMPLES / "link.ld"), *options]
    command += [str(start), *map(str, sources)]
    elf.write_bytes(elf_bytes(command, [start, *sources]))
    return elf


def demo(folder: Path, march: str = "rv64imac_zicsr") -> Path:
    """Compile the program of `rvtrace demo`."""
    return compile_program(folder, EXAMPLES / "demo.c", march=march)


@cache
def symbol_address(elf: Path, name: str) -> int:
    """Return the address of a symbol of the program."""
    return next(symbol.address for symbol in _symbols(elf) if symbol.name == name)


@cache
def symbol_size(elf: Path, name: str) -> int:
    """Return how many bytes a function of the program has."""
    return next(symbol.size for symbol in _symbols(elf) if symbol.name == name)


def _symbols(elf: Path) -> list[Symbol]:
    return [symbol for section in read_elf(str(elf)).sections for symbol in section.symbols]
