"""The programs that rvtrace starts, or is used with, and what their versions lack."""

import re
import shutil
import subprocess
from collections.abc import Callable
from typing import NamedTuple

from rvtrace_gdb.console.commands.doctor.finding import Finding, Packages, Usability

PATIENCE = 30  # seconds for a program to say its version
VersionNumbers = tuple[int, ...]


class Lack(NamedTuple):
    """What versions before one lack. *unusable*: rvtrace cannot use them at all."""

    before: VersionNumbers
    text: str
    unusable: bool = False


class KnownProgram(NamedTuple):
    """A program. *commands*: its names, the first that is there is taken; *lacks*: of old versions."""

    name: str
    commands: tuple[str, ...]
    gives: str
    packages: Packages
    lacks: tuple[Lack, ...] = ()


OPENOCD = KnownProgram(
    "OpenOCD", ("openocd",),
    "the target of `trace connect`: a chip behind a JTAG adapter, and the simulated target (`--sim`)",
    Packages("openocd", "openocd"),
    (Lack((0, 12), "before 0.12 OpenOCD has no read_memory and get_reg; some vendors' 0.11 have them"),),
)  # fmt: skip
QEMU = KnownProgram(
    "QEMU", ("qemu-system-riscv64", "qemu-system-riscv32"),
    "programs traced without hardware: `rvtrace qemu`, `rvtrace console --qemu`",
    Packages("qemu-system-riscv64", "qemu-system-riscv"),  # Debian: provided by one package of each release
    (
        Lack((6, 1), "before 6.1 its log cannot be recorded", unusable=True),
        Lack((9, 1), "before 9.1 it has no plugins that record: its log is read, a hundred times slower"),
        Lack((10,), "before 10 it has no Control Transfer Records (`trace ctr`)"),
    ),
)  # fmt: skip
CROSS_COMPILER = KnownProgram(
    "RISC-V compiler",
    (
        "riscv64-unknown-elf-gcc", "riscv64-elf-gcc", "riscv-none-elf-gcc", "riscv32-unknown-elf-gcc",
        "riscv64-linux-gnu-gcc",
    ),
    "the programs of the tutorials (`make examples`), which need picolibc, too; programs that are compiled need none",
    Packages("gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf", "gcc-riscv64-linux-gnu"),
)  # fmt: skip
COMPILER = KnownProgram(
    "C compiler", ("gcc", "cc", "clang"),
    "QEMU's recorder as a plugin, compiled when it is first used; the compiled kernel where no wheel has it",
    Packages("gcc python3-dev", "gcc python3-devel"),
)  # fmt: skip
OBJDUMP = KnownProgram(
    "objdump",
    ("riscv64-unknown-elf-objdump", "riscv64-linux-gnu-objdump", "riscv32-unknown-elf-objdump", "llvm-objdump"),
    "the text of instructions at the shell where no gdb has it",
    Packages("binutils-riscv64-unknown-elf", "binutils-riscv64-linux-gnu"),
)  # fmt: skip
DTC = KnownProgram(
    "dtc", ("dtc",), "`rvtrace import-dt` from the source of a device tree (.dts)",
    Packages("device-tree-compiler", "dtc"),
)  # fmt: skip
GTKWAVE = KnownProgram(
    "GTKWave", ("gtkwave",), "`trace waves gtkwave`, waveforms beside gdb; its vcd2fst, `rvtrace export --to fst`",
    Packages("gtkwave", "gtkwave"),
)  # fmt: skip
_NUMBER = re.compile(r"(\d+(?:\.\d+)+)\S*")


def version_of(text: str) -> VersionNumbers:
    """Return the numbers of a version, as (0, 12) of "0.12.0-01004"."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[^0-9.]", text)[0]))


def printed_by(command: list[str]) -> str:
    """Return what a program prints on both of its streams. Raises OSError, subprocess.SubprocessError."""
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE,
        check=False,
    )  # fmt: skip
    return done.stdout.decode(errors="replace")


def program_check(program: KnownProgram) -> Callable[[], Finding]:
    """Return what looks for a program, and asks it for its version."""
    return lambda: found_program(program)


def found_program(program: KnownProgram) -> Finding:
    """Look for a program, and ask it for its version."""
    path = next((found for name in program.commands if (found := shutil.which(name))), None)
    if path is None:
        return Finding(program.name, Usability.MISSING, program.gives, packages=program.packages)
    try:
        said = printed_by([path, "--version"])
    except (OSError, subprocess.SubprocessError) as error:
        why = "it does not say its version" if isinstance(error, subprocess.TimeoutExpired) else str(error)
        return Finding(program.name, Usability.UNUSABLE, program.gives, "", path, (), (why,), program.packages)
    version = _NUMBER.search(said)
    if version is None:
        return Finding(program.name, Usability.OK, program.gives, path=path)
    lacking = [lack for lack in program.lacks if version_of(version[1]) < lack.before]
    state = Usability.LIMITED if lacking else Usability.OK
    if any(lack.unusable for lack in lacking):
        state = Usability.UNUSABLE
    return Finding(
        program.name, state, program.gives, version[1], path, (), tuple(lack.text for lack in lacking), program.packages
    )
