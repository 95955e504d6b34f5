"""QEMU 10, the first with Control Transfer Records, and what it executed as events for tests.ctr_model.model.

    with running(elf, folder) as machine, Rsp(machine.port) as stub: ...
    model.run(machine.events(writes(elf)))

Sources: QEMU's documentation of -d exec, nochain, int and of one-insn-per-tb; the mode an instruction ran in stands in
the flags of -d exec (target/riscv/cpu.h of QEMU 10.0: TB_FLAGS, VIRT_ENABLED bit 21, PRIV bits 23:22).
"""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from elftools.elf.elffile import ELFFile

from rvtrace_gdb.console.bench.rig import held_port
from tests.ctr_model.model import Event, Instruction, Trap, Write
from tests.ctr_model.transfers import TRAP_RETURNS, Code

_HOME = Path(__file__).resolve().parents[2]
QEMU10 = os.environ.get("RVTRACE_QEMU10") or str(_HOME / ".tools" / "qemu10" / "qemu-system-riscv64")
CPU = "smctr=true,ssctr=true,smcsrind=true,sscsrind=true"
RV32_CPU = f"rv32,{CPU}"

_EXEC = re.compile(r"Trace (?P<hart>\d+): \S+ \[[0-9a-f]+/(?P<pc>[0-9a-f]+)/(?P<flags>[0-9a-f]+)/")
_TRAP = re.compile(
    r"riscv_cpu_do_interrupt: hart:(?P<hart>\d+), async:(?P<interrupt>\d), "
    r"cause:(?P<cause>[0-9a-f]+), epc:0x(?P<epc>[0-9a-f]+)"
)
_BOOT_ROM_END = 0x2000
_LOG_AT_MOST = 100_000_000  # bytes: a program that does not come to where it should ends with it

Writes = dict[int, tuple[int, int]]
"""The program's writes to CSRs of interest: address of the instruction -> (CSR, value)."""


class Qemu10:
    """A `virt` machine that runs an ELF without firmware, stopped at reset, its stub at *port*. Harts take turns."""

    def __init__(self, child: "subprocess.Popen[bytes]", port: int, elf: Path, log: Path) -> None:
        self.child, self.port, self._elf, self._log = child, port, elf, log

    def events(self, hart: int = 0) -> list[Event]:
        """Return what a hart has executed so far, without the boot ROM (needs `logged`)."""
        with self._log.open(encoding="latin-1") as log:
            return list(events(_of_hart(log, hart), Code(self._elf), writes(self._elf)))

    def registers(self) -> list[dict[str, int]]:
        """Return the registers before each instruction of the only hart: "pc", "x1", ... (needs *registers*).

        The instructions are those that were begun: one that was interrupted before it ran is there, too.
        """
        return list(register_dumps(self._log.read_text(encoding="latin-1")))

    def reset_commands(self) -> list[str]:
        """Commands of gdb that reset the machine, and note where its log was then."""
        noted = f"shell stat -L -c %s {self._log} >> {self._resets()}"
        return [noted, "monitor system_reset", "maintenance flush register-cache"]

    def events_between_resets(self) -> list[list[Event]]:
        """The events of hart 0 between the resets that `reset_commands` made (needs `logged`)."""
        data = self._log.read_bytes()
        noted = self._resets().read_text().split() if self._resets().exists() else []
        places = [0, *map(int, noted), len(data)]
        code, written = Code(self._elf), writes(self._elf)
        lines = (data[begin:end].decode("latin-1").splitlines() for begin, end in pairwise(places))
        return [list(events(_of_hart(part, 0), code, written)) for part in lines]

    def _resets(self) -> Path:
        return self._log.with_suffix(".resets")


@contextmanager
def running(
    elf: Path, folder: Path, *, cpu: str = f"rv64,{CPU}", logged: bool = False, harts: int = 1, program: str = QEMU10,
    clock: int = 10, registers: bool = False,
) -> Iterator[Qemu10]:  # fmt: skip
    """Run the program until the end of the context. *logged*: one instruction at a time, all of them logged;
    *registers*: with the registers before each, see `Qemu10.registers`.

    *clock*: an instruction takes 2 to the power of it in ns, however fast the host is. So interrupts of a timer come at
    the same places each time, and never so early that a program does nothing else.
    """
    program = program.replace("riscv64", "riscv32") if cpu.startswith("rv32") else program
    log = folder / "qemu10.log"
    command = [program, "-M", "virt", "-m", "64", "-smp", str(harts), "-cpu", cpu, "-bios", "none", "-kernel", str(elf)]
    command += ["-nodefaults", "-display", "none", "-S", "-icount", f"shift={clock},sleep=off"]
    if logged:
        command += ["-accel", "tcg,one-insn-per-tb=on,thread=single", "-D", str(log)]
        command += ["-d", f"exec,nochain,int{',cpu' * registers}"]
    setpriv = shutil.which("setpriv")
    tied = [setpriv, "--pdeathsig", "KILL"] if setpriv else []
    limited = ["prlimit", f"--fsize={_LOG_AT_MOST}"] if shutil.which("prlimit") else []
    with (
        held_port() as port,
        subprocess.Popen(
            [*tied, *limited, *command, "-gdb", f"tcp:127.0.0.1:{port}"], stdin=subprocess.DEVNULL
        ) as child,
    ):
        try:
            _wait(child, port)
            yield Qemu10(child, port, elf, log)
        finally:
            child.kill()


X = [f"x{number}" for number in range(1, 32)]
NAMES = [
    "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{number}" for number in range(8)),
    *(f"s{number}" for number in range(2, 12)), "t3", "t4", "t5", "t6",
]  # fmt: skip
"""The registers of `register_dumps`, and their other names."""


def register_dumps(log: str) -> Iterator[dict[str, int]]:
    """Yield what -d exec,cpu prints before each block: "pc", "x1", ..."""
    for dump in re.finditer(r"^Trace \d+: [^\n]*\n(.*?)(?=^Trace |\Z)", log, flags=re.MULTILINE | re.DOTALL):
        yield {name: int(value, 16) for name, value in re.findall(r"\b(pc|x\d+)(?:/\w+)? +([0-9a-f]+)", dump[1])}


def _wait(child: "subprocess.Popen[bytes]", port: int) -> None:
    """Wait until QEMU listens, without connecting: QEMU would take the connection for a gdb."""
    deadline = time.monotonic() + 60
    wanted = f":{port:04X}"
    while time.monotonic() < deadline and child.poll() is None:
        rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()]
        if any(row[1].endswith(wanted) and row[3] == "0A" for row in rows[1:]):
            return
        time.sleep(0.02)
    raise AssertionError("QEMU 10 did not start (scripts/setup-qemu10)")


def writes(elf: Path) -> Writes:
    """Section .ctr_writes of tests/programs/ctr: three 64-bit words for each."""
    with elf.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".ctr_writes")
        data = section.data() if section else b""
    words = [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]
    return {pc: (csr, value) for pc, csr, value in zip(words[::3], words[1::3], words[2::3], strict=True)}


def events(log: Iterable[str], code: Code, written: Writes) -> Iterator[Event]:
    """Yield events one event late, because the next line may revoke it: an instruction that trapped, or was not begun.
    """
    waiting: Instruction | None = None
    mode = 3
    lines = list(log)
    for number, line in enumerate(lines):
        if found := _EXEC.match(line):
            yield from _retired(waiting, written)
            pc, mode = int(found["pc"], 16), _mode(found)
            waiting = Instruction(pc, mode) if pc >= _BOOT_ROM_END else None
        elif found := _TRAP.match(line):
            epc, interrupt = int(found["epc"], 16), found["interrupt"] == "1"
            if waiting is not None and (interrupt or waiting.pc != epc):
                yield from _retired(waiting, written)
                mode = _mode_later(lines[number:], epc) if code.word(waiting.pc) in TRAP_RETURNS else mode
            waiting = None
            yield Trap(epc, mode, int(found["cause"], 16) & 0xFF, interrupt)
        elif line.startswith(("Stopped execution of TB chain", "cpu_io_recompile: rewound")):
            waiting = None
    yield from _retired(waiting, written)


def _of_hart(log: Iterable[str], hart: int) -> Iterator[str]:
    """The lines about one hart, of harts that take turns."""
    newest = hart
    for line in log:
        if found := _EXEC.match(line) or _TRAP.match(line):
            newest = int(found["hart"])
        if newest == hart:
            yield line


def _mode(executed: re.Match[str]) -> int:
    flags = int(executed["flags"], 16)
    return flags >> 22 & 3 | (flags >> 21 & 1) << 2


def _mode_later(lines: list[str], pc: int) -> int:
    """The mode a trap return led to, when a trap came before anything ran there: that of what runs there afterwards."""
    executed = (found for line in lines if (found := _EXEC.match(line)))
    return next(_mode(found) for found in executed if int(found["pc"], 16) == pc)


def _retired(instruction: Instruction | None, written: Writes) -> Iterator[Event]:
    if instruction is not None:
        yield instruction
        if instruction.pc in written:
            csr, value = written[instruction.pc]
            yield Write(csr, value, bool(instruction.mode & 4))
