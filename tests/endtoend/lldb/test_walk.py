"""The real LLDB in the past: where its commands lead, and which values it shows, against the retired list.

What is expected comes from another simulated hart, which is stepped without any trace, and from the model of gdb's
commands (`tests.endtoend.reverse.walk_model`).
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.console.commands.serve.served import Served, Server, capture, serving
from tests.endtoend.lldb.lldb_process import LLDBS, answers, number_in, run_lldb
from tests.endtoend.reverse.line_rules import Lines, LineWalk
from tests.endtoend.reverse.walk_model import Code, Walk
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import HOME
from tests.session.board import DEMO

SCRIPT = f"command script import {HOME / 'rvtrace_lldb.py'}"
WALKER = Path(__file__).resolve().parent / "walker.py"
EDITOR = WALKER.with_name("editor.py")
COMMANDS = 2_000 if LONG else 40
ABI = """zero ra sp gp tp t0 t1 t2 fp s1 a0 a1 a2 a3 a4 a5 a6 a7
s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"""
NAMES = ABI.split()
MOST_KNOWN = 20  # registers, in any moment: those at the start are saved
LINE_STEPS = {"reverse-step": "reverse-step", "reverse-next": "reverse-next", "click-back": "reverse-next"}
"""The commands that go back by lines, and which command of gdb each is like."""
PLACES = ("main", "fib", "leaf", "accumulate")
with_lldb = pytest.mark.parametrize("lldb", LLDBS)


class Reached(NamedTuple):
    """Where a command led: a number of the history, and the registers that LLDB shows there."""

    command: str
    number: int
    known: dict[str, int]
    error: str


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    return capture(tmp_path_factory.mktemp("lldb"))


@pytest.fixture(scope="module")
def server(served: Served) -> Iterator[Server]:
    with serving(served.file) as server:
        yield server


def walked(lldb: str, server: Server, folder: Path, commands: Sequence[str], elf: Path = DEMO) -> list[Reached]:
    """Where each command led."""
    script, result = folder / "commands.txt", folder / "result.txt"
    script.write_text("\n".join(commands))
    begin = [f"gdb-remote {server.port}", SCRIPT, f"command script import {WALKER}"]
    said = run_lldb(lldb, elf, begin, {"WALK_COMMANDS": str(script), "WALK_RESULT": str(result)})
    assert "Traceback" not in said, said
    return [Reached(*json.loads(line)) for line in result.read_text().splitlines()]


def random_commands(seed: int, count: int, length: int, symbols: dict[str, int]) -> list[str]:
    """Of all kinds."""
    chance = random.Random(seed)
    places = [f"{symbols[name]:#x}" for name in PLACES]
    kinds: list[Callable[[], str]] = [lambda: "stepi", lambda: "reverse-continue", lambda: "continue"] * 3
    kinds += [lambda: f"goto {chance.randrange(1, length)}"] * 3
    kinds += [lambda: chance.choice([*LINE_STEPS, "click-back", "reverse-finish", "reverse-stepi"])] * 8
    kinds += [lambda: "click-run-back"] * 2
    kinds += [lambda: f"break {chance.choice(places)}", lambda: f"break {chance.choice(places)}", lambda: "delete"]
    return ["goto 300", *(chance.choice(kinds)() for _ in range(count))]


def leads(walk: Walk, here: int, command: str) -> int:
    """Where the model says a command leads."""
    name, _, rest = command.partition(" ")
    if name == "goto":
        return int(rest) - 1
    if name == "break":
        walk.breakpoints.add(int(rest, 16))
    elif name == "delete":
        walk.breakpoints.clear()
    elif name.endswith("stepi"):
        return walk.stepi(here, -1 if name.startswith("reverse-") else 1)
    elif name == "reverse-finish":  # the call, unlike in gdb also that of main
        calls = walk.called_at[here]
        return walk.run(here, -1, calls[-1]) if calls else here
    else:
        return walk.run(here, 1 if name == "continue" else -1)
    return here


def stopped_at_breakpoint(walk: Walk, before: int, here: int) -> bool:
    """Whether it is the nearest one on the way back. No breakpoint is passed in any case."""
    assert not walk.breakpoints & set(walk.pcs[here + 1 : before])
    return walk.pcs[here] in walk.breakpoints


@with_lldb
def test_random_commands_end_where_the_model_says_and_show_the_registers_of_the_hart(
    lldb: str, served: Served, server: Server, tmp_path: Path
) -> None:
    moments, code = served.moments, Code(DEMO)
    walk = Walk(code, [it.pc for it in moments[:-1]], frozenset())
    commands = random_commands(36, COMMANDS, len(moments), code.symbols)
    lines = LineWalk(walk, Lines(DEMO), optimization="-Og")
    here, known = 0, list[int]()
    reached = walked(lldb, server, tmp_path, commands)
    for it in reached:
        before = here
        here = it.number - 1 if it.command in LINE_STEPS else leads(walk, here, it.command)
        if it.command in LINE_STEPS and not stopped_at_breakpoint(walk, before, here):
            assert not lines.wrong(LINE_STEPS[it.command], before, here), f"{it} from {before + 1}"
        assert it.number == here + 1, f"{it.command} from {before + 1}, expected {here + 1}: {it.number} {it.error}"
        moment = moments[here]
        shown = {name: it.known[name] for name in NAMES if name in it.known}
        assert shown == {name: moment.x[NAMES.index(name)] for name in shown}, it.command
        assert it.known["pc"] == moment.pc
        known.append(len(shown))
    assert len(reached) == len(commands) and min(known) > MOST_KNOWN


@with_lldb
def test_watchpoints_and_variables_without_any_setting(lldb: str, server: Server) -> None:
    """The loop of the program counts to 108, as one computes by hand; the line of its memory is known in parts."""
    back, forward = "process continue --reverse", "process continue --forward"
    commands = [
        f"gdb-remote {server.port}", "target variable sink", "watchpoint set variable sink", back, "register read pc",
        f"{back} ", forward, f"{forward} ", "register read pc ", "bt", f"{forward}  ", "target variable sink ",
    ]  # fmt: skip
    said = answers(run_lldb(lldb, DEMO, commands), commands)
    assert "sink = 108" in said["target variable sink"] and "sink = 108" in said["target variable sink "]
    changes = [re.findall(r"(?:old|new) value: (\d+)", said[it]) for it in (back, f"{back} ", forward, f"{forward} ")]
    assert changes == [["108", "107"], ["107", "106"], ["106", "107"], ["107", "108"]]
    assert number_in(said["register read pc "]) > number_in(said["register read pc"]), "behind the store, and before it"
    assert "`main at demo.c" in said["bt"] and "history boundary" in said[f"{forward}  "]


@with_lldb
def test_rv32_goes_there_and_back(lldb: str, tmp_path: Path) -> None:
    elf = DEMO.with_name("demo32.elf")
    served, code = capture(tmp_path, elf), Code(elf)
    walk = Walk(code, [it.pc for it in served.moments[:-1]], frozenset())
    back = "process continue --reverse"
    steps = ["goto 300", "stepi", "reverse-stepi", f"break {code.symbols['leaf']:#x}", "continue", "reverse-continue"]
    commands = [SCRIPT, "watchpoint set variable sink", back, f"{back} "]
    with serving(served.file) as server:
        reached = walked(lldb, server, tmp_path, steps, elf)
        connect = f"gdb-remote {server.port}"
        said = answers(run_lldb(lldb, elf, [connect, *commands]), [connect, *commands])
    here = 0
    for it in reached:
        here = leads(walk, here, it.command)
        assert (it.number, it.known["pc"]) == (here + 1, served.moments[here].pc), it
    (old, new), (then, before) = (re.findall(r"(?:old|new) value: (\d+)", said[it]) for it in (back, f"{back} "))
    assert int(old) - 1 == int(new) == int(then) == int(before) + 1, "the loop counts by one"


@with_lldb
def test_editors_are_told_of_the_stops_of_rvtraces_commands(
    lldb: str, served: Served, server: Server, tmp_path: Path
) -> None:
    walk, result = Walk(Code(DEMO), [it.pc for it in served.moments[:-1]], frozenset()), tmp_path / "result.txt"
    environ = {"PROGRAM": str(DEMO), "PORT": str(server.port), "SCRIPT": str(SCRIPT).split()[-1], "RESULT": str(result)}
    run_lldb(lldb, None, [f"command script import {EDITOR}"], {f"EDITOR_{name}": it for name, it in environ.items()})
    told = dict(line.split(": ") for line in result.read_text().splitlines())
    places = {command: int(number) - 1 for command, number in told.items()}
    lines = LineWalk(walk, Lines(DEMO), optimization="-Og")
    assert not lines.wrong("reverse-next", walk.present, places["reverse-next"])
    assert not lines.wrong("reverse-step", places["reverse-next"], places["reverse-step"])
    ends = {"rvtrace goto 300": 299, "reverse-finish": walk.called_at[299][-1], "reverse-continue": 0}
    assert {command: places[command] for command in ends} == ends


@with_lldb
def test_what_is_unknown_is_unavailable(lldb: str, served: Served) -> None:
    words = ["register read sp", "register read pc", "register read zero", "frame variable", "target variable sink"]
    words += [SCRIPT, "rvtrace help why"]
    with serving(served.file, "--values", "off") as server:
        commands = [f"gdb-remote {server.port}", *words]
        said = answers(run_lldb(lldb, DEMO, commands), commands)
        with server.client() as client:
            explained = "\n".join(client.monitor("trace help why")).replace("monitor trace", "rvtrace")
    assert said["rvtrace help why"].partition("(lldb) ")[0].split() == explained.split() != []
    assert "sp           = error: unavailable" in said["register read sp"]
    assert number_in(said["register read pc"].split("demo")[0]) == served.moments[-2].pc
    assert "zero = 0x0000000000000000" in said["register read zero"]
    assert re.search("sink = <.* failed", said["target variable sink"])
    assert not re.search("0xc{8}", "".join(said.values()))
