"""`rvtrace qemu -o` of programs with virtual memory and delegated traps, of all the ways in which a program ends QEMU,
and of harts that contend; as QEMU's log of another run has it, one instruction a block, or as the program counts.
"""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.session.capture.file import load
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address
from tests.helpers.started_python import rvtrace
from tests.transport.qemu.machine import Ran, arguments, gdb, histories, logged, recorded, same, told

PROGRAMS = HOME / "tests" / "programs" / "qemu"
SEMIHOSTING = ("-semihosting-config", "enable=on,target=native")
USER = 0x40000000
"""Where the processes of spaces.c begin."""
DEVICE, HTIF, CALL = 0, 1, 2
"""How the program ends: END of supervisor.c."""


class Supervised:
    def __init__(self, folder: Path, march: str, end: int) -> None:
        self.elf = compile_program(folder, PROGRAMS / "supervisor.c", march=march, options=(f"-DEND={end}",))
        self.machine = "spike" if end == HTIF else "virt"
        self.more = SEMIHOSTING if end == CALL else ()
        (self.ran,) = logged(self.elf, *self.more, machine=self.machine)

    @property
    def finish(self) -> int:
        return symbol_address(self.elf, "finish")


def test_the_program_does_what_is_hard(tmp_path: Path) -> None:
    """What the other test rests on: traps of all modes, the same code at two addresses, of which one is in no ELF."""
    ran: Ran = Supervised(tmp_path, "rv64imac_zicsr", CALL).ran
    kinds = {(interrupt, cause) for _, interrupt, cause in ran.traps}
    assert {(True, 7), (True, 5), (False, 8), (False, 9), (False, 12), (False, 13)} <= kinds
    leaf = symbol_address(Supervised(tmp_path, "rv64imac_zicsr", CALL).elf, "leaf") & 0xFFFFFF
    assert {0x40000000 | leaf, 0xC0000000 | leaf} <= set(ran.pcs)


@pytest.mark.parametrize(
    ("march", "end", "source"),
    [
        ("rv64imac_zicsr", CALL, "plugin"), ("rv64imac_zicsr", CALL, "log"), ("rv64imac_zicsr", HTIF, "plugin"),
        ("rv32imac_zicsr", CALL, "plugin"), ("rv32imac_zicsr", DEVICE, "log"),
    ],
)  # fmt: skip
def test_virtual_memory_and_the_end(tmp_path: Path, march: str, end: int, source: str) -> None:
    program = Supervised(tmp_path, march, end)
    found, _ = recorded(
        program.elf, tmp_path, "--source", source, "--context", more=program.more, machine=program.machine
    )
    same(found.histories[0], program.ran, to=program.finish)
    if end == CALL:  # which QEMU does at once
        assert len(found.histories[0]) == len(program.ran.pcs)


@pytest.mark.parametrize(
    ("march", "options"),
    [("rv64imac_zicsr", []), ("rv32imac_zicsr", ["--etrace"]), *long_only(("rv64imac_zicsr", ["--etrace"]))],
)
def test_processes_with_other_code_at_the_same_addresses(tmp_path: Path, march: str, options: list[str]) -> None:
    """The capture has the code of each: nothing else is needed to read it."""
    elf = compile_program(tmp_path, PROGRAMS / "spaces.c", march=march)
    (expected,) = logged(elf)
    assert expected.pcs.count(USER) == 12
    found, _ = recorded(elf, tmp_path, "--context", *options)
    same(found.histories[0], expected, to=symbol_address(elf, "finish"))
    images = load(tmp_path / "recorded.rvt").images
    assert [image.scontext for image in images] == [6, 7], "5 was first"
    second = b"".join(data for _, data in images[0].code)
    assert second in elf.read_bytes() and images[0].code == images[1].code
    without, _ = recorded(elf, tmp_path, *options)  # nothing says whose turn it is
    assert without.histories[0].gap_positions and not load(tmp_path / "recorded.rvt").images


def test_processes_while_they_are_traced(tmp_path: Path) -> None:
    """What is read out before a process comes, and after it."""
    elf = compile_program(tmp_path, PROGRAMS / "spaces.c")
    commands = ["break supervisor_trap", "trace start -context"]
    for number in range(8):
        commands += [f"{what}{' ' * number}" for what in ("continue", "trace history -", "trace status")]
    commands += ["delete", "break finish", f"continue{' ' * 8}", "trace history", f"trace save {tmp_path}/x.rvt"]
    said = gdb(elf, tmp_path, commands)
    assert all("0 gaps" in said[f"trace status{' ' * number}"] for number in range(8))
    (expected,) = logged(elf)
    pcs, _ = told(histories(tmp_path / "x.rvt").histories[0])
    assert pcs == expected.pcs[: expected.pcs.index(symbol_address(elf, "finish"))]


def test_four_harts_that_contend(tmp_path: Path) -> None:
    """On a thread each. When they come to their turn nobody knows, how often is written in the program."""
    turns, calls = 8, 2
    elf = compile_program(tmp_path, PROGRAMS / "four.c", options=(f"-DTURNS={turns}", f"-DCALLS={calls}"))
    file = tmp_path / "four.rvt"
    words = arguments(elf, "-smp", "4", icount=False)
    done = rvtrace("qemu", "-o", str(file), "--elf", str(elf), "--", *words)
    assert done.returncode == 0, done.stderr
    found = histories(file).histories
    assert sorted(found) == [0, 1, 2, 3]
    for history in found.values():
        assert not history.gaps
        assert sum(event.kind is EventKind.TRAP for event in history.events) == calls
