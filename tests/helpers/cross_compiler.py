"""Compiling the programs the tests run, with the real cross compiler."""

from pathlib import Path

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
    """Compile the program of `make demo`."""
    return compile_program(folder, EXAMPLES / "demo.c", march=march)
