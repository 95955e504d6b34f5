"""Builds the hart's test programs with the real cross compiler."""

from pathlib import Path

from tests.helpers.compiled import elf_bytes

SOURCES = Path(__file__).resolve().parents[3] / "programs" / "hart"
_ABI = {"rv64imac": "lp64", "rv64imafdc": "lp64d", "rv64ima": "lp64", "rv32imac": "ilp32", "rv32imafdc": "ilp32d",
        "rv32ima": "ilp32"}  # fmt: skip


def build(
    folder: Path, *sources: str | Path, march: str, origin: int = 0x8000_0000, options: tuple[str, ...] = ()
) -> Path:
    """A bare-metal ELF in *folder*, linked to *origin*, from sources of tests/programs/hart or elsewhere.

    Zicsr and Zifencei are part of I here (ISA specification 2.2), so that *march* names a library GCC has.
    """
    paths = [SOURCES / source for source in sources]
    elf = folder / f"{paths[-1].stem}-{march}.elf"
    command = ["riscv64-unknown-elf-gcc", f"-march={march}", "-misa-spec=2.2", f"-mabi={_ABI[march]}"]
    command += ["-mcmodel=medany", "-O2", "-nostdlib", "-ffreestanding", f"-I{SOURCES}", "-T", str(SOURCES / "hart.ld")]
    command += [f"-Wl,--defsym=__origin={origin:#x}", *options]
    elf.write_bytes(elf_bytes([*command, *map(str, paths), "-lgcc"], paths))
    return elf


def with_macros(folder: Path, name: str, **macros: int) -> Path:
    """A source of tests/programs/hart with these macros set."""
    source = folder / name
    source.write_text("".join(f"#define {n} {v}\n" for n, v in macros.items()) + f'#include "{SOURCES / name}"\n')
    return source


def assemble(folder: Path, name: str, text: str, march: str, origin: int = 0x8000_0000) -> Path:
    """As `build`, from generated assembly; it is preprocessed and can include hart.inc."""
    source = folder / f"{name}.S"
    source.write_text(text)
    return build(folder, source, march=march, origin=origin)
