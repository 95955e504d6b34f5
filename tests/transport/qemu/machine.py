"""Programs on QEMU with rvtrace's recorder, and what ran by QEMU's own log of a second run, one instruction a block.

What is expected is read from that log here, without rvtrace's readers: QEMU's documentation of -d exec, nochain, int.
"""

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rvtrace_gdb.console.bench.rig import held_port
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.formats import sinks
from rvtrace_gdb.session.program import LoadedProgram
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import HOME, compile_program
from tests.helpers.qemu10 import QEMU10
from tests.helpers.started_python import python_stub, rvtrace

TICKS = HOME / "tests" / "programs" / "qemu" / "ticks.c"
_ICOUNT = ["-icount", "shift=0,sleep=off"]  # a nanosecond an instruction: interrupts come at the same place each time
_PATIENCE = 120  # seconds
_EXEC = re.compile(r"Trace (\d+): \S+ \[[0-9a-f]+/([0-9a-f]+)/")
_TRAP = re.compile(r"riscv_cpu_do_interrupt: hart:(\d+), async:(\d), cause:([0-9a-f]+), epc:0x([0-9a-f]+)")


@dataclass(frozen=True)
class Ran:
    """*traps*: (how many had retired before, interrupt, cause)."""

    pcs: list[int]
    traps: list[tuple[int, bool, int]]


def ticks(folder: Path, march: str = "rv64imac_zicsr", *options: str) -> Path:
    return compile_program(folder, TICKS, march=march, options=options)


def arguments(elf: Path, *more: str, icount: bool = True, machine: str = "virt") -> list[str]:
    """The program and its arguments."""
    qemu = QEMU10.replace("riscv64", "riscv32") if "rv32" in elf.name else QEMU10
    command = [qemu, "-M", machine, "-m", "64", "-bios", "none", "-kernel", str(elf), "-display", "none"]
    command += ["-serial", "null", "-monitor", "none", "-nodefaults"]
    return [*command, *(_ICOUNT if icount else []), *more]


def recorded(
    elf: Path, folder: Path, *options: str, more: Sequence[str] = (), machine: str = "virt"
) -> tuple[sinks.HartHistories, str]:
    """What `rvtrace qemu -o` has recorded of a whole run, and what it said."""
    file = folder / "recorded.rvt"
    file.unlink(missing_ok=True)
    words = arguments(elf, *more, machine=machine)
    done = rvtrace("qemu", *options, "-o", str(file), "--elf", str(elf), "--", *words)
    assert done.returncode == 0, done.stderr
    return histories(file), done.stderr


def histories(file: Path) -> sinks.HartHistories:
    capture = capture_file.load(file)
    assert capture.elf is not None
    program = LoadedProgram(
        capture.elf.path, code=capture.code, patched=capture.patched, images=capture.images
    )
    return sinks.decode(capture.captured, capture.encoders, program.in_contexts(program.image()))


def logged(elf: Path, *more: str, machine: str = "virt") -> list[Ran]:
    """What ran on each hart, by QEMU's log of a run of its own."""
    return _logged(elf.name, elf.read_bytes(), more, machine)


@cache
def _logged(name: str, program: bytes, more: tuple[str, ...], machine: str) -> list[Ran]:
    """It is the same each time, as the clock goes by instructions."""
    with tempfile.TemporaryDirectory() as folder:
        elf, log = Path(folder, name), Path(folder, "one.log")
        elf.write_bytes(program)
        one = ["-accel", "tcg,one-insn-per-tb=on,thread=single", "-d", "exec,nochain,int", "-D", str(log)]
        subprocess.run(
            [*arguments(elf, *more, machine=machine), *one], stdin=subprocess.DEVNULL, timeout=_PATIENCE, check=True
        )
        return ran(log)


def ran(log: Path) -> list[Ran]:
    found = [Ran([], []) for _ in range(8)]
    newest = 0
    for line in log.read_text(encoding="latin-1").splitlines():
        if match := _EXEC.match(line):
            newest = int(match[1])
            found[newest].pcs.append(int(match[2], 16))
        elif line.startswith(("Stopped execution", "cpu_io_recompile: rewound")):
            found[newest].pcs.pop()
        elif match := _TRAP.match(line):
            newest = int(match[1])
            pcs, epc = found[newest].pcs, int(match[4], 16)
            if match[2] == "0" and pcs and pcs[-1] == epc:
                pcs.pop()  # it did not retire
            found[newest].traps.append((len(pcs), match[2] == "1", int(match[3], 16) & 0xFF))
    return [one for one in found if one.pcs]


def told(history: History) -> tuple[list[int], list[int]]:
    """What ran, and how many had retired before each trap. Nothing may be missing."""
    assert not history.gaps
    pcs = [pc for i in range(len(history)) if (pc := history.pc(i)) is not None]
    return pcs, [event.position for event in history.events if event.kind is EventKind.TRAP]


def same(history: History, expected: Ran, *, to: int, beyond: bool = True) -> None:
    """A history is what the log has, to its last instruction; that at *to* is in it: a program that waits for QEMU to
    end runs longer or shorter. Not *beyond*: what comes after *to* depends on the moment.
    """
    pcs, traps = told(history)
    both = min(len(pcs), len(expected.pcs))
    assert to in pcs[:both], f"{len(pcs)} of {len(expected.pcs)}"
    both = both if beyond else expected.pcs.index(to) + 1
    other = [at for at in range(both) if pcs[at] != expected.pcs[at]][:3]
    assert not other, [(at, hex(pcs[at]), hex(expected.pcs[at])) for at in other]
    assert [before for before in traps if before < both] == [it[0] for it in expected.traps if it[0] < both]


@contextmanager
def waiting(
    elf: Path, folder: Path, *options: str, more: Sequence[str] = (), icount: bool = True
) -> Iterator[tuple[int, Path]]:
    """`rvtrace qemu` with the program at reset: the port of QEMU's gdb stub and the target description."""
    target = folder / "target.toml"
    target.unlink(missing_ok=True)
    words = ["qemu", *options, "--write-target", str(target), "--"]
    words += [*arguments(elf, *more, icount=icount), "-S", "-gdb"]
    command = [python_stub(), "-m", "rvtrace_gdb", *words]
    with (
        held_port() as port,
        subprocess.Popen(
            [*command, f"tcp:127.0.0.1:{port}"], cwd=HOME, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as child,
    ):
        try:
            deadline = time.monotonic() + _PATIENCE
            while not target.exists() and child.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            assert target.exists()
            yield port, target
        finally:
            child.terminate()


def gdb(
    elf: Path, folder: Path, commands: Sequence[str], *options: str,
    connect: str = "target remote", more: Sequence[str] = (), icount: bool = True,
) -> dict[str, str]:  # fmt: skip
    """What gdb said, connected at reset."""
    with waiting(elf, folder, *options, more=more, icount=icount) as (port, target):
        begin = [SOURCE, f"set trace target {target}", f"{connect} :{port}"]
        return run_gdb(elf, [*begin, *commands, "kill"])
