"""Builds the hart's test programs with the real cross compiler."""

import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[3] / "programs" / "hart"
_ABI = {"rv64imac": "lp64", "rv64imafdc": "lp64d", "rv64ima": "lp64", "rv32imac": "ilp32", "rv32imafdc": "ilp32d",
        "rv32ima": "ilp32"}  # fmt: skip


def build(folder: Path, *sources: str | Path, march: str, origin: int = 0x8000_0000) -> Path:
    """A bare-metal ELF in *folder*, linked to *origin*, from sources of tests/programs/hart or elsewhere.

    Zicsr and Zifencei are part of I here (ISA specification 2.2), so that *march* names a library GCC has.
    """
    paths = [SOURCES / source for source in sources]
    elf = folder / f"{paths[-1].stem}-{march}.elf"
    command = ["riscv64-unknown-elf-gcc", f"-march={march}", "-misa-spec=2.2", f"-mabi={_ABI[march]}"]
    command += ["-mcmodel=medany", "-O2", "-nostdlib", "-ffreestanding", f"-I{SOURCES}", "-T", str(SOURCES / "hart.ld")]
    command.append(f"-Wl,--defsym=__origin={origin:#x}")
    words = (*command, *map(str, paths), "-lgcc")
    elf.write_bytes(_built(words, tuple(path.read_bytes() for path in paths)))
    return elf


@cache
def _built(command: tuple[str, ...], sources: tuple[bytes, ...]) -> bytes:
    """The ELF that *command* makes of *sources*, which it names; many tests want the same."""
    with tempfile.TemporaryDirectory() as folder:
        elf = Path(folder, "program.elf")
        finished = subprocess.run([*command, "-o", str(elf)], capture_output=True, check=False)
        assert finished.returncode == 0, finished.stderr.decode()
        return elf.read_bytes()


def assemble(folder: Path, name: str, text: str, march: str, origin: int = 0x8000_0000) -> Path:
    """As `build`, from generated assembly; it is preprocessed and can include hart.inc."""
    source = folder / f"{name}.S"
    source.write_text(text)
    return build(folder, source, march=march, origin=origin)
