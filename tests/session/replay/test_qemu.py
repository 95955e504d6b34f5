"""Real gdb-multiarch and real QEMU: through the proxy gdb prints what it prints without, and goes back in what ran.

What ran is QEMU's own log of it. Where gdb must be is worked out by a list of addresses and three rules.
"""

import random
import re
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.session.replay.proxy import Proxy
from rvtrace_gdb.session.replay.proxy_state import ProxySetup, TargetState
from rvtrace_gdb.session.replay.wire import StubAddress
from tests.gdbext.gdb_process import run_gdb
from tests.helpers import qemu
from tests.helpers.amounts import long_only
from tests.helpers.cross_compiler import demo
from tests.session.replay.listed_past import HERE, ListedPast

RAM = 0x80000000
INTERRUPT = (
    "python import threading, os, signal; interrupt = lambda event: (gdb.events.cont.disconnect(interrupt), "
    "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()); gdb.events.cont.connect(interrupt)"
)
"""Ctrl-C when the target has been running for half a second."""
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
both = pytest.mark.parametrize("elf", [RV64, RV32], indirect=True)


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


@contextmanager
def loss_told(proxy: Proxy, file: Path) -> Iterator[None]:
    """There is a *file* as soon as the proxy has found out that its stub is lost."""
    ended = threading.Event()

    def look() -> None:
        while proxy.target is not TargetState.LOST:
            if ended.wait(0.01):
                return
        file.touch()

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def stub_killed(process: int, file: Path) -> str:
    """A command of gdb's: the stub dies, and the proxy knows it (see `loss_told`)."""
    return f"shell kill -9 {process}; for n in $(seq 600); do [ -e {file} ] && break; sleep 0.1; done"


def connect(port: int) -> str:
    return f"target extended-remote 127.0.0.1:{port}"


def told(outputs: dict[str, str]) -> dict[str, str]:
    """Without what is another one each time: the port, rates of a download, threads' states, our register."""
    kept = {command: text for command, text in outputs.items() if not command.startswith("target ")}
    return {
        command: re.sub(r"^trace_pos .*\n|Transfer rate: .*|0x8007[0-9a-f]{4}", "", text, flags=re.M)
        for command, text in kept.items()
    }


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


def model(pcs: Sequence[int], here: int, command: str, breakpoints: set[int]) -> int:
    """Where a command leads; the length of *pcs* is the present."""
    if command in ("stepi", "reverse-stepi"):
        return max(0, here + (1 if command == "stepi" else -1))
    direction = 1 if command == "continue" else -1
    here += direction
    while 0 < here < len(pcs) and pcs[here] not in breakpoints:
        here += direction
    return max(0, here)


@pytest.mark.parametrize("elf", [RV32, *long_only(RV64)], indirect=True)
def test_ten_score_commands_end_where_the_model_says(elf: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    start = ["set osabi none", "CONNECT", "break finish", "continue"]
    with qemu.running(elf, tmp_path) as machine:
        run_gdb(elf, [connect(machine.port) if it == "CONNECT" else it for it in [*start, "kill"]])
        pcs = machine.retired(0)
    assert len(pcs) > 1500
    stopped, *others = [int(_symbols(elf)[name], 16) for name in ("finish", "fib", "classify", "mul")]
    functions = [stopped, *others]
    here, commands, expected = len(pcs), [*start, *(f"break *{at:#x}" for at in functions)], []
    for number in range(200):
        forward = ["stepi", "continue"] if here < len(pcs) else []
        command = chance.choice([*forward, *forward[:1], "reverse-stepi", "reverse-stepi", "reverse-continue"])
        here = model(pcs, here, command, set(functions))
        expected.append((pcs[here] if here < len(pcs) else stopped, here + 1 if here < len(pcs) else -1))
        commands += [command, f"python print(*(int(gdb.parse_and_eval(it)) for it in ('$pc', '$trace_pos')), {number})"]
    with qemu.running(elf, tmp_path) as machine, proxied(machine, elf) as (proxy, _):
        outputs = run_gdb(elf, [connect(proxy.port) if it == "CONNECT" else it for it in [*commands, "kill"]])
        assert proxy.resumes == 1
        assert machine.retired(0) == pcs
    found = [tuple(map(int, text.split()[:2])) for command, text in outputs.items() if command.startswith("python ")]
    assert [(pc % (1 << 64), number) for pc, number in found] == expected


def _symbols(elf: Path) -> dict[str, str]:
    nm = subprocess.run(["riscv64-unknown-elf-nm", elf], check=True, capture_output=True, text=True).stdout
    return {line.split()[2]: line.split()[0] for line in nm.splitlines()}


@both
def test_what_a_user_sees_in_the_past(elf: Path, tmp_path: Path) -> None:
    commands = [
        "set osabi none", "CONNECT", "break finish", "continue", "print $sp", "reverse-stepi", "print $sp ",
        "info registers pc", "info registers", "x/2i $pc", "print $a0 = 1", "set var ticks = 1", "print ticks",
        "break fib", "reverse-continue", "disable 2", "reverse-continue ", "print $trace_pos", "continue ",
        "print $trace_pos ", "print $sp  ", "print $trace_pos  ", "watch ticks", "reverse-stepi ",
        "monitor info version", "kill",
    ]  # fmt: skip
    with qemu.running(elf, tmp_path) as machine, proxied(machine, elf) as (proxy, _):
        outputs = run_gdb(elf, [connect(proxy.port) if it == "CONNECT" else it for it in commands])
        pcs = machine.retired(0)
        said = proxy.take_lines()
    assert "reverse-stepi" in outputs and "<unavailable>" not in outputs["print $sp"]
    assert "<unavailable>" in outputs["print $sp "]
    assert f"{pcs[-1]:#x}" in outputs["info registers pc"]
    assert "trace_pos" not in outputs["info registers"]
    assert outputs["x/2i $pc"].count(":\t") == 2
    assert "the past cannot be changed: `trace live` returns to the present" in outputs["print $a0 = 1"]
    assert "Cannot access memory" in outputs["set var ticks = 1"] and "Cannot access" in outputs["print ticks"]
    assert [line.partition(" was not written")[0] for line in said[:1]] == ["register a0"]
    assert "Breakpoint 2, " in outputs["reverse-continue"]
    assert "No more reverse-execution history" in outputs["reverse-continue "]
    assert outputs["print $trace_pos"].strip().endswith("= 1")
    assert "No more reverse-execution history" in outputs["continue "] and "finish" in outputs["continue "]
    assert "<unavailable>" not in outputs["print $sp  "]
    assert outputs["print $trace_pos  "].strip().endswith("= -1")
    assert "watchpoints cannot trigger in the past" in outputs["reverse-stepi "]


@ONE
def test_steps_that_are_left_do_not_run_the_target(elf: Path, tmp_path: Path) -> None:
    """gdb 13 goes on with them after "No more reverse-execution history"."""
    commands = ["set osabi none", "CONNECT", "tbreak finish", "continue", "reverse-stepi", "reverse-stepi 2", "stepi 7"]
    with qemu.running(elf, tmp_path) as machine, proxied(machine, elf, hold=True) as (proxy, _):
        outputs = run_gdb(elf, [connect(proxy.port) if it == "CONNECT" else it for it in [*commands, "kill"]])
        assert proxy.resumes == 1
    assert "Program stopped." in outputs["stepi 7"]  # where there was a breakpoint: gdb may step over it


def test_each_thread_has_its_past(tmp_path: Path) -> None:
    elf = demo(tmp_path)
    commands = [
        "set osabi none", "CONNECT", "break finish", "continue", "thread 1", "reverse-stepi", "print $trace_pos",
        "thread 2", "print $trace_pos ", "reverse-stepi ", "reverse-stepi  ", "print $trace_pos  ", "info threads",
        "thread 1 ", "print $trace_pos   ", "kill",
    ]  # fmt: skip
    with qemu.running(elf, tmp_path, 2) as machine, proxied(machine, elf) as (proxy, _):
        outputs = run_gdb(elf, [connect(proxy.port) if it == "CONNECT" else it for it in commands])
        lengths = [len(machine.retired(hart)) for hart in (0, 1)]
    numbers = [int(outputs[f"print $trace_pos{' ' * n}"].split()[-1]) for n in range(4)]
    assert numbers == [lengths[0], -1, lengths[1] - 1, lengths[0]]


@ONE
def test_qemu_ends_while_gdb_is_in_the_past(elf: Path, tmp_path: Path) -> None:
    commands = ["set osabi none", "CONNECT", "break finish", "continue", "reverse-stepi", "KILL", "reverse-stepi ",
                "print $trace_pos", "reverse-continue", "continue ", "print $trace_pos "]  # fmt: skip
    lost = tmp_path / "lost"
    with qemu.running(elf, tmp_path) as machine, proxied(machine, elf) as (proxy, _), loss_told(proxy, lost):
        words = {"CONNECT": connect(proxy.port), "KILL": stub_killed(machine.child.pid, lost)}
        outputs = run_gdb(elf, [words.get(it, it) for it in commands])
        length = len(machine.retired(0))
        (line,) = proxy.take_lines()
    assert outputs["print $trace_pos"].split()[-1] == str(length - 1)
    assert outputs["print $trace_pos "].split()[-1] == str(length + 1)
    assert "No more reverse" in outputs["reverse-continue"] and "No more reverse" in outputs["continue "]
    assert "what was traced is kept" in line
