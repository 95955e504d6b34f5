"""Lines of `trace ctr stack` in the real gdb beside its own `backtrace`, of calls a fake session has."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.ctr.test_show import FAKE
from tests.gdbext.gdb_process import NEWEST_GDB, SOURCE, KeptGdb, run_gdb
from tests.helpers.cross_compiler import demo

STACK = "trace ctr stack"
NO_VALUES = ["set print frame-arguments none", "set print entry-values no"]
VALUES = ["set print frame-arguments scalars", "set print entry-values default"]
JAL = 4


class Stopped(NamedTuple):
    """The demo stopped in its deepest call, what gdb's `backtrace` says there, and how to ask about it again."""

    gdb: str
    backtrace: list[str]
    said: Callable[..., dict[str, str]]

    def frames(self) -> list[dict[str, Any]]:
        """The present pc and the calls, from the addresses that gdb says they return to."""
        addresses = re.findall(r"0x[0-9a-f]+", "\n".join(self.backtrace))
        calls = [{"pc": int(address, 16) - JAL, "call": True, "to": None} for address in addresses]
        return [{"pc": self.pc(), "call": False, "to": None}, *calls]

    def pc(self) -> int:
        return int(self.said(None, "p/x (unsigned long)$pc")["p/x (unsigned long)$pc"].split()[-1], 16)

    def expected(self) -> list[str]:
        """`backtrace` with the addresses of the calls instead of those they return to."""
        return [re.sub(r"0x[0-9a-f]+", lambda it: f"0x{int(it[0], 16) - JAL:016x}", line) for line in self.backtrace]


TO_FIB = ["break fib if n == 1", "continue", "delete"]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """The demo, and the command that connects to where it has been stopped."""
    folder = tmp_path_factory.mktemp("target")
    elf = demo(folder)
    with Rig(elf, folder / "rig") as rig:
        connect = f"target extended-remote :{rig.gdb_port}"
        run_gdb(elf, [connect, *TO_FIB, "disconnect"])
        yield elf, connect


@pytest.fixture(scope="module", params=NEWEST_GDB)
def stopped(
    request: pytest.FixtureRequest, target: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stopped]:
    """In one gdb for all that is asked: who asks puts back what was set."""
    folder = tmp_path_factory.mktemp("stack")
    elf, connect = target
    files = {"CTR_ANSWERS": str(folder / "answers"), "CTR_REQUESTS": str(folder / "requests")}
    with KeptGdb(elf, request.param, **files) as gdb:
        gdb.run([SOURCE, FAKE, connect])

        def said(answer: dict[str, Any] | None, *commands: str) -> dict[str, str]:
            (folder / "answers").write_text(json.dumps({"ctr_stack": answer}))
            return gdb.run([*commands])

        backtrace = said(None, *NO_VALUES, "backtrace", *VALUES)["backtrace"].splitlines()
        assert [line.split(" (")[0].split()[-1] for line in backtrace] == ["fib"] * 7 + ["main"]
        yield Stopped(request.param, backtrace, said)


def answer(frames: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"lines": [], "ras": True, "full": False, "frames": frames, **more}


def stack(stopped: Stopped, answer: dict[str, Any], *commands: str) -> list[str]:
    return stopped.said(answer, *commands, STACK)[STACK].splitlines()


def test_it_reads_as_gdbs_backtrace(stopped: Stopped) -> None:
    assert stack(stopped, answer(stopped.frames())) == stopped.expected()


def test_the_sessions_lines_come_first(stopped: Stopped) -> None:
    assert stack(stopped, answer(stopped.frames(), lines=["one line"]))[:2] == ["one line", stopped.expected()[0]]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, "the records begin here"),
        ({"full": True}, "all entries are in use: older calls may have been lost"),
        ({"full": True, "ras": False}, "older records were overwritten; `trace ctr start -ras` keeps only calls"),
    ],
    ids=["begun", "full", "overwritten"],
)
def test_gdb_goes_on_where_the_records_end(more: dict[str, bool], why: str, stopped: Stopped) -> None:
    """At three calls. gdb's own frames have the addresses behind their calls."""
    lines = stack(stopped, answer(stopped.frames()[:3], **more))
    assert lines[:3] == stopped.expected()[:3]
    assert lines[3] == f"({why}; gdb's own backtrace continues)"
    assert lines[4:] == stopped.backtrace[3:]


def test_full_records_are_complete_where_gdb_says_so(stopped: Stopped) -> None:
    assert stack(stopped, answer(stopped.frames(), full=True)) == stopped.expected()


def test_gdb_stops_early(stopped: Stopped) -> None:
    """The stack pointer leads nowhere: gdb knows the caller from ra, and no more."""
    commands = ["set $keep = $sp", "set $sp = 0xffffffffffff0000", "backtrace", STACK, "set $sp = $keep"]
    said = stopped.said(answer(stopped.frames()), *commands)
    *own, why = said["backtrace"].splitlines()
    lines = said[STACK].splitlines()
    assert len(own) == 2 and why.startswith("Backtrace stopped: ")
    assert lines[:2] == stopped.expected()[:2] and lines[3:-1] == stopped.expected()[2:]
    assert lines[2] == "(gdb's own backtrace stops here: memory error while unwinding)"
    assert lines[-1] == "(the records begin here)"


def test_gdb_sees_another_caller(stopped: Stopped) -> None:
    """The return address was overwritten."""
    commands = ["set $keep = $ra", "set $ra = (long)&classify + 4", STACK, "set $ra = $keep"]
    lines = stopped.said(answer(stopped.frames()), *commands)[STACK].splitlines()
    assert lines[0] == stopped.expected()[0] and lines[2:-1] == stopped.expected()[1:]
    assert re.fullmatch(r"\(gdb's own backtrace differs from here on: 0x\w+ in classify \(c=...\) at .*\)", lines[1])


def test_which_function_was_called_where_another_one_runs(stopped: Stopped) -> None:
    """A trap came, or it was left by a jump: the frame above is not in the function that was called."""
    main, fib, classify = (
        int(stopped.said(None, command)[command].split()[-1], 16)
        for command in (f"p/x (unsigned long)&{name}" for name in ("main", "fib", "classify"))
    )
    frames: list[dict[str, Any]] = [
        {"pc": classify, "call": False, "to": None},
        {"pc": fib + 30, "call": True, "to": fib},
        {"pc": main + 10, "call": True, "to": fib},
    ]
    lines = stack(stopped, answer(frames))
    assert lines[0].startswith("#0  classify (c=...) at ")
    assert re.fullmatch(r"#1  0x\w+ in fib \(n=...\) at \S+ \[called fib\]", lines[1])
    assert re.fullmatch(r"#2  0x\w+ in main \(\) at \S+", lines[2])


def test_gdb_sees_no_caller(stopped: Stopped) -> None:
    """As after a jump through a null pointer."""
    commands = ["set $keep = $ra", "set $ra = 0", STACK, "set $ra = $keep"]
    lines = stopped.said(answer(stopped.frames()), *commands)[STACK].splitlines()
    assert lines[1] == "(gdb's own backtrace differs from here on: 0x0000000000000000 in ?? ())"
    assert lines[0] == stopped.expected()[0] and lines[2:-1] == stopped.expected()[1:]


def test_without_a_target(tmp_path: Path, stopped: Stopped) -> None:
    """Of a capture: the calls, and nothing beside them."""
    answers = tmp_path / "answers"
    answers.write_text(json.dumps({"ctr_stack": answer(stopped.frames())}))
    full = tmp_path / "full"
    full.write_text(json.dumps({"ctr_stack": answer(stopped.frames(), full=True)}))
    files = {"CTR_ANSWERS": str(answers), "CTR_REQUESTS": str(tmp_path / "requests")}
    commands = [SOURCE, FAKE, STACK, f"shell cp {full} {answers}", f"{STACK} "]
    said = run_gdb(demo(tmp_path), commands, gdb=stopped.gdb, **files)
    assert said[STACK].splitlines() == [*stopped.expected(), "(the records begin here)"]
    lost = "(all entries are in use: older calls may have been lost)"
    assert said[f"{STACK} "].splitlines() == [*stopped.expected(), lost]
