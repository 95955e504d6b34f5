"""Real gdb-multiarch and real QEMU: through the proxy gdb prints what it prints without, and goes back in what ran.

What ran is QEMU's own log of it. Where gdb must be is worked out by a list of addresses and three rules.
"""

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from tests.gdbext.gdb_process import INTERRUPT, run_gdb
from tests.helpers import qemu
from tests.helpers.amounts import long_only, thorough
from tests.helpers.cross_compiler import demo
from tests.session.proxy.listed_past import HERE, ListedPast

RAM = 0x80000000
LIVE = [
    "info threads", "info registers", "break fib", "continue", "info registers ", "x/20xw $sp", "bt", "finish",
    "print operations", "print fib(5)", "set var ticks = 7", "print ticks", "print $a0 = 5", "print $a0", "stepi",
    "next", "step", "info breakpoints", "watch result", "delete 1", "continue ", "delete", "compare-sections",
    "load", "compare-sections ", "info registers mstatus mtvec", "maint packet qAttached", "monitor info registers",
    "print $pc = _start", "hbreak main", "continue  ", "until", "advance classify", "info all-registers", INTERRUPT,
    "delete ", "continue   ", "x/i $pc", "detach",
]  # fmt: skip
TWO_HARTS = [
    "info threads", "thread 2", "info registers pc", "thread 1", "set scheduler-locking on", "break fib", "continue",
    "bt", "thread 2 ", "bt ", "stepi", "x/i $pc", "info threads ", "thread apply all info registers", "thread 1 ",
    "finish", "delete", "set scheduler-locking off", "info threads  ", "kill",
]  # fmt: skip


RV64, RV32 = "rv64imac_zicsr", "rv32imac_zicsr"
ONE = pytest.mark.parametrize("elf", [RV64, *long_only(RV32)], indirect=True)
"""For what does not depend on the length of registers; RV32 is tried in the long run, and by the other tests."""


@pytest.fixture(scope="module")
def elf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("demo"), request.param)


@contextmanager
def proxied(machine: qemu.Qemu, elf: Path, *, hold: bool = False) -> Iterator[tuple[Proxy, ListedPast]]:
    past = ListedPast(lambda hart: [*machine.retired(hart or 0), HERE], {RAM: memory_of(elf)})
    proxy = Proxy(ProxySetup(past, threading.RLock(), StubAddress("127.0.0.1", machine.port), hold_at_present=hold))
    proxy.start()
    try:
        yield proxy, past
    finally:
        proxy.close()


def memory_of(elf: Path) -> bytes:
    """What a loader puts into memory from RAM on."""
    flat = elf.with_suffix(".bin")
    subprocess.run(["riscv64-unknown-elf-objcopy", "-O", "binary", elf, flat], check=True)
    return flat.read_bytes()


def connect(port: int) -> str:
    return f"target extended-remote 127.0.0.1:{port}"


def told(outputs: dict[str, str]) -> dict[str, str]:
    """Without what is another one each time: the port, rates of a download, threads' states, our register."""
    kept = {command: text for command, text in outputs.items() if not command.startswith("target ")}
    return {
        command: re.sub(r"^trace_pos .*\n|Transfer rate: .*|0x8007[0-9a-f]{4}", "", text, flags=re.M)
        for command, text in kept.items()
    }


@thorough("session/proxy/test_openocd.py::test_in_the_present_gdb_prints_what_it_prints_without")
@pytest.mark.parametrize(("elf", "harts"), [(RV64, 1), (RV32, 2), *long_only((RV32, 1), (RV64, 2))], indirect=["elf"])
def test_in_the_present_gdb_prints_what_it_prints_without(elf: Path, tmp_path: Path, harts: int) -> None:
    commands = LIVE if harts == 1 else TWO_HARTS
    with qemu.running(elf, tmp_path, harts, logged=False) as machine:
        direct = run_gdb(elf, [connect(machine.port), *commands])
    with qemu.running(elf, tmp_path, harts, logged=False) as machine, proxied(machine, elf) as (proxy, _):
        through = run_gdb(elf, [connect(proxy.port), *commands])
        said = proxy.take_lines()
    moving = {"info all-registers", "continue   ", "x/i $pc", "monitor info registers"}
    for command, text in told(direct).items():
        if command not in moving:
            assert told(through)[command] == text, command
    for outputs in (direct, through) if harts == 1 else ():
        assert "SIGINT" in outputs["continue   "]
        assert "Breakpoint" in outputs["continue"] and "matched" in outputs["compare-sections"]
    assert said == []


@ONE
def test_steps_that_are_left_do_not_run_the_target(elf: Path, tmp_path: Path) -> None:
    """gdb 13 goes on with them after "No more reverse-execution history"."""
    commands = ["set osabi none", "CONNECT", "tbreak finish", "continue", "reverse-stepi", "reverse-stepi 2", "stepi 7"]
    with qemu.running(elf, tmp_path) as machine, proxied(machine, elf, hold=True) as (proxy, _):
        outputs = run_gdb(elf, [connect(proxy.port) if it == "CONNECT" else it for it in [*commands, "kill"]])
        assert proxy.resumes == 1
    assert "Program stopped." in outputs["stepi 7"]  # where there was a breakpoint: gdb may step over it
