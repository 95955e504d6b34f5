"""Real gdb-multiarch and real OpenOCD with the simulated target: as directly, and back in what the hart retired."""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.replay.proxy import Proxy
from rvtrace_gdb.session.replay.proxy_state import ProxySetup, TargetState
from rvtrace_gdb.session.replay.wire import StubAddress
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import demo
from tests.session.replay.listed_past import HERE, ListedPast
from tests.session.replay.test_qemu import RAM, loss_told, memory_of, stub_killed

UP_TO_HERE = ["break *start_timer", "continue"]
LIVE = [
    "info threads", "info registers", "load", "compare-sections", "break fib", "continue", "info registers ", "bt",
    "x/16xw $sp", "finish", "print fib(3)", "print operations", "set var ticks = 7", "print ticks", "print $a0 = 5",
    "print $a0", "stepi", "next", "step", "delete", "hbreak finish", "info registers mstatus", "monitor echo hello",
    "monitor targets", "maint packet qC", "monitor no_such_command", "detach",
]  # fmt: skip


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("demo"))


@pytest.fixture(scope="module")
def pcs(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> list[int]:
    """What the hart itself says it retired before `start_timer`, the same each time: nothing interrupts it there."""
    folder = tmp_path_factory.mktemp("retired")
    with Rig(elf, folder / "rig", "--log-retired", str(folder / "log")) as rig:
        traced = [
            SOURCE,
            f"set trace target {rig.target_file}",
            f"target extended-remote :{rig.gdb_port}",
            "trace start",
        ]
        said = run_gdb(elf, [*traced, *UP_TO_HERE, "print/x $pc"])  # the log is of what runs while it is traced
    here = int(said["print/x $pc"].split()[-1], 16)
    retired = retired_pcs(folder / "log")
    assert len(retired) > 500
    return retired[: retired.index(here)] if here in retired else retired  # it may have gone on without gdb


@contextmanager
def proxied(port: int, pcs: Sequence[int], elf: Path) -> Iterator[Proxy]:
    past = ListedPast(lambda hart: [*pcs, HERE], {RAM: memory_of(elf)})
    proxy = Proxy(ProxySetup(past, threading.RLock(), StubAddress("127.0.0.1", port)))
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.close()


def plain(text: str) -> str:
    """Without what is another one each time: our register, the clock."""
    return re.sub(r"^trace_pos .*\n|Transfer rate: .*|\[\d+\]|0x[0-9a-f]{8,}\b(?=.*tck)", "", text, flags=re.M)


def test_in_the_present_gdb_prints_what_it_prints_without(elf: Path, tmp_path: Path) -> None:
    outputs = []
    for name in ("direct", "through"):
        with Rig(elf, tmp_path / name) as rig:
            if name == "direct":
                outputs.append(run_gdb(elf, [f"target extended-remote :{rig.gdb_port}", *LIVE]))
                continue
            with proxied(rig.gdb_port, [0], elf) as proxy:
                outputs.append(run_gdb(elf, [f"target extended-remote :{proxy.port}", *LIVE]))
                assert proxy.take_lines() == []
    direct, through = outputs
    for command in LIVE:
        assert plain(through[command]) == plain(direct[command]), command
    for output in outputs:
        assert "Breakpoint 1, fib" in output["continue"] and "matched" in output["compare-sections"]
        assert "hello" in output["monitor echo hello"]


def test_back_and_forth(elf: Path, pcs: list[int], tmp_path: Path) -> None:
    """Wherever gdb is, it is at the instruction of that number."""
    places = "python print(*(int(gdb.parse_and_eval(it)) for it in ('$pc', '$trace_pos')), {})"
    walk = ["reverse-stepi", "reverse-stepi 3", "reverse-continue", "stepi 5", "reverse-continue", "break *fib"]
    walk += ["continue", "continue", "reverse-continue", "stepi", "reverse-stepi", "delete 2", "reverse-continue"]
    commands = ["set osabi none", "CONNECT", *UP_TO_HERE]
    for number, command in enumerate(walk):
        commands += [command + " " * number, places.format(number)]
    commands += ["x/i $pc", "continue", places.format(99), "info registers sp", "stepi", "info registers pc"]
    with Rig(elf, tmp_path / "rig") as rig, proxied(rig.gdb_port, pcs, elf) as proxy:
        outputs = run_gdb(elf, [f"target extended-remote :{proxy.port}" if it == "CONNECT" else it for it in commands])
        assert proxy.take_lines() == []
    found = [tuple(map(int, outputs[places.format(number)].split()[:2])) for number in range(len(walk))]
    assert [pcs[number - 1] for _, number in found] == [pc for pc, _ in found]
    first, second = [number for number, pc in enumerate(pcs, 1) if pc == pcs[found[6][1] - 1]][:2]
    numbers = [len(pcs), len(pcs) - 3, 1, 6, 1, 1, first, second, first, first + 1, first, first, 1]
    assert [number for _, number in found] == numbers
    assert outputs[places.format(99)].split()[1] == "-1"
    assert "<unavailable>" not in outputs["info registers sp"]
    assert "=> " in outputs["x/i $pc"] and "Cannot" not in outputs["x/i $pc"]


def test_openocd_is_killed_in_the_past(elf: Path, pcs: list[int], tmp_path: Path) -> None:
    """gdb goes on in what was traced, and stays whole."""
    commands = ["set osabi none", "CONNECT", *UP_TO_HERE, "reverse-stepi", "KILL", "reverse-stepi ", "bt"]
    commands += ["continue ", "stepi "]  # a step over a breakpoint, after which gdb 13 must not hear of the end
    commands += ["print $sp", "info threads", "print $pc", "reverse-stepi  ", "x/i $pc", "info threads "]
    commands += ["print $trace_pos", "continue  ", "stepi", "disconnect"]
    lost = tmp_path / "lost"
    with Rig(elf, tmp_path / "rig") as rig, proxied(rig.gdb_port, pcs, elf) as proxy, loss_told(proxy, lost):
        words = {"CONNECT": f"target extended-remote :{proxy.port}"}
        words["KILL"] = stub_killed(rig.openocd.pid, lost)
        outputs = run_gdb(elf, [words.get(it, it) for it in commands])
        line, end = proxy.take_lines()
        assert proxy.target is TargetState.LOST
    whole = "".join(outputs.values())
    assert "Protocol error" not in whole and "Remote failure" not in whole and "remote failure" not in whole
    assert "No more reverse-execution history" in outputs["continue "]
    assert end == "This is the end of the trace."
    assert "Breakpoint 1, start_timer" in outputs["stepi"]  # it is where it was
    assert "unavailable" not in outputs["print $sp"]  # as it was last
    assert "start_timer" in outputs["print $pc"]
    assert outputs["info threads"].count("* 1") == outputs["info threads "].count("* 1") == 1
    assert outputs["print $trace_pos"].split()[-1] == str(len(pcs))
    assert "what was traced is kept" in line
