"""`trace who-wrote` in the real gdb, on a C program whose tandem trace the simulated target writes.

What is expected comes from gdb itself: what it prints before and after the instruction that is named, and where its
own watchpoints stop when it goes back.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import GDB, NEWEST_GDB, SOURCE, gdb_environ, run_gdb
from tests.helpers.cross_compiler import HOME, compile_program
from tests.terminal import Terminal

PAGE = HOME / "docs" / "who-wrote.md"
PROGRAM = HOME / "tests" / "programs" / "who" / "who.c"
GLOBALS = ("counter", "first.next", "second.value", "first.next->value", "bits.high", "array[2]", "total", "$s1", "$sp")
LOCALS = ("i", "sum", "node", "local[1]", "node->value", "local", "$a4")
WATCHED = ("counter", "second.value")
ELSEWHERE = "trace goto -wrote counter"  # in the function that has the locals
WROTE = re.compile(
    r"^(?P<what>.+?): (?:(?P<old>.+?) -> )?(?P<new>.+?), written \d+ instructions? ago \(group (?P<group>\d+)\)\n"
    r"(?:\S+/(?P<line>\w+\.[cS]:\d+)\t.*\n)?"
    r"(?P<number>\d+)\t   (?P<place>0x\w+ <\S+>):\t(?P<text>.*)\n"
    r"(?:Its other parts were written last:\n(?P<parts>(?:    .*\n)+))?"
    r"`trace goto (?P=number)` goes there; `trace who-wrote -before` shows who wrote it before that\.$"
)


class Seen(NamedTuple):
    """What gdb said about one expression. *there*: the number it went to; *old*, *new*: printed before and after."""

    said: str
    there: int
    old: str
    new: str
    now: str


class Commands:
    """Commands of which each may come again: what they printed is found under the number of each."""

    def __init__(self) -> None:
        self.all: list[str] = []

    def add(self, command: str) -> int:
        self.all.append(command + " " * self.all.count(command))
        while self.all.count(self.all[-1]) > 1:
            self.all[-1] += " "
        return len(self.all) - 1


Outcome = tuple[dict[str, Seen], list[str]]
"""By expression what was said, and what the watched and MORE commands printed."""


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_program(tmp_path_factory.mktemp("who"), PROGRAM)


@pytest.fixture(scope="module")
def rig(elf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Rig, Path]]:
    """The target at `finish`, with its trace saved in a file."""
    folder = tmp_path_factory.mktemp("rig")
    kept = folder / "who.rvt"
    with Rig(elf, folder / "rig", "--tandem", str(folder / "who.tvt")) as rig:
        commands = [SOURCE, f"set trace target {rig.target_file}", f"trace connect localhost:{rig.gdb_port}"]
        commands += ["trace start", "break finish", "continue", f"trace save {kept}"]
        run_gdb(elf, commands)
        assert kept.exists()
        yield rig, kept


@pytest.fixture(scope="module", params=NEWEST_GDB)
def outcome(request: pytest.FixtureRequest, elf: Path, rig: tuple[Rig, Path]) -> Outcome:
    _, kept = rig
    commands, places = Commands(), dict[str, list[int]]()
    for command in (SOURCE, f"trace open {kept}", "trace replay"):
        commands.add(command)
    for expression in (*GLOBALS, *LOCALS):
        commands.add("trace goto end")
        if expression in LOCALS:
            commands.add(ELSEWHERE)
        asked = (
            "trace who-wrote {}",
            "print {}",
            "trace goto -wrote {}",
            "print $trace_pos",
            "print {}",
            "stepi",
            "print {}",
        )
        places[expression] = [commands.add(it.format(expression)) for it in asked]
    for expression in WATCHED:
        commands.add("trace goto end")
        commands.add(f"watch {expression}")
        commands.add("reverse-continue")
        places[f"watch {expression}"] = [commands.add("print $trace_pos")]
        commands.add("delete")
    places["more"] = [commands.add(it) for it in MORE]
    printed = run_gdb(elf, commands.all, gdb=request.param)
    outputs = [printed[it].strip() for it in commands.all]
    seen = {
        it: Seen(outputs[at[0]], _number(outputs[at[3]]), *(_value(outputs[i]) for i in (at[4], at[6], at[1])))
        for it, at in places.items()
        if it in (*GLOBALS, *LOCALS)
    }
    watched = [outputs[places[f"watch {it}"][0]] for it in WATCHED]
    return seen, [*watched, *(outputs[i] for i in places["more"])]


MORE = (
    "trace goto end", ELSEWHERE, "trace who-wrote by", "trace who-wrote nosuch", "trace who-wrote $nosuch",
    "trace who-wrote 1.5", "trace who-wrote $a0,4", "trace who-wrote counter,0", "trace who-wrote counter,1048577",
    "trace who-wrote", "trace who-wrote -before 3", "trace who-wrote $zero", "trace who-wrote 0x70000000 4",
    "trace goto -wrote 0x70000000", "up", "trace who-wrote total", "trace who-wrote -before",
    "trace goto end", 'interpreter-exec mi "-rvtrace-who-wrote counter"', "trace who-wrote $mcycle",
    "trace goto 1", "trace goto -wrote $a0",
)  # fmt: skip


def _value(printed: str) -> str:
    """What stands behind `$1 = `, of a pointer its value without its type."""
    return re.sub(r"^\([^()]*\*\) ", "", printed.partition(" = ")[2])


def _number(printed: str) -> int:
    return int(_value(printed))


def said(outcome: Outcome, command: str) -> str:
    return outcome[1][len(WATCHED) + MORE.index(command)]


@pytest.mark.parametrize("expression", ["counter", "first.next", "second.value", "first.next->value", "node->value"])
def test_gdb_prints_what_was_said_before_and_after(outcome: Outcome, expression: str) -> None:
    seen, found = _checked(outcome, expression)
    assert (found["old"], found["new"], found["new"]) == (seen.old, seen.new, seen.now)


@pytest.mark.parametrize("expression", ["$s1", "$sp", "$a4"])
def test_registers_are_those_gdb_has(outcome: Outcome, expression: str) -> None:
    seen, found = _checked(outcome, expression)
    assert _integer(found["new"]) == _integer(seen.new) == _integer(seen.now)
    assert _integer(found["old"]) == _integer(seen.old)


@pytest.mark.parametrize(("expression", "register"), [("total", "s1"), ("i", "a4"), ("sum", "a0"), ("node", "a1")])
def test_a_variable_in_a_register_is_the_register(outcome: Outcome, expression: str, register: str) -> None:
    """Where it was written it need not be in that register yet, so gdb says nothing of it there."""
    seen, found = _checked(outcome, expression)
    assert found["what"] == f"{expression} (in ${register})" and found["new"] == seen.now


def _checked(outcome: Outcome, expression: str) -> tuple[Seen, "re.Match[str]"]:
    """What was said, and that `trace goto -wrote` went where it says."""
    seen = outcome[0][expression]
    found = WROTE.match(seen.said)
    assert found, seen.said
    assert int(found["number"]) == seen.there
    return seen, found


def _integer(printed: str) -> int:
    return int(re.sub(r"^\(.*\) | <.*", "", printed), 0)


def test_the_writer_is_where_a_watchpoint_stops(outcome: Outcome) -> None:
    for expression, printed in zip(WATCHED, outcome[1], strict=False):
        assert _number(printed) == outcome[0][expression].there


def test_the_part_that_was_written_is_named(outcome: Outcome) -> None:
    seen = outcome[0]
    found = WROTE.match(seen["local"].said)
    assert found and re.fullmatch(r"local\[\d\]", found["what"])
    assert found["parts"].count("\n") == 3 and found["what"] not in found["parts"]
    assert seen["bits.high"].said.startswith("bits.high: 0x2 -> 0x3, ")
    assert (seen["bits.high"].old, seen["bits.high"].new) == ("2", "3")
    assert "who.c:" in seen["counter"].said and "counter++;" in seen["counter"].said


def test_what_is_no_place_is_one_line(outcome: Outcome) -> None:
    assert "neither in memory nor in one register here" in said(outcome, "trace who-wrote by")
    assert said(outcome, "trace who-wrote nosuch") == 'trace who-wrote: nosuch: No symbol "nosuch" in current context'
    assert said(outcome, "trace who-wrote $nosuch").startswith("there is no register $nosuch")
    assert "value of type double" in said(outcome, "trace who-wrote 1.5")
    assert "is a register" in said(outcome, "trace who-wrote $a0,4")
    assert "give 1 to 1048576" in said(outcome, "trace who-wrote counter,0")
    assert "give 1 to 1048576" in said(outcome, "trace who-wrote counter,1048577")
    assert "what? $REGISTER" in said(outcome, "trace who-wrote")
    assert "takes no other argument" in said(outcome, "trace who-wrote -before 3")
    assert "always 0" in said(outcome, "trace who-wrote $zero")
    nobody = "Nothing wrote 4 bytes at 0x70000000 in this trace before now."
    assert said(outcome, "trace who-wrote 0x70000000 4") == nobody
    assert said(outcome, "trace goto -wrote 0x70000000").startswith("Nothing wrote")
    assert "counts by itself" in said(outcome, "trace who-wrote $mcycle")
    assert "before the first instruction" in said(outcome, "trace goto -wrote $a0")
    refused = [said(outcome, it) for it in MORE if it.endswith(("by", "nosuch", "1.5", ",4", ",0", "wrote", "3"))]
    assert len(refused) == 8 and all(len(text.splitlines()) == 1 for text in refused)


def test_a_callers_register_is_as_it_was_at_the_call(outcome: Outcome) -> None:
    """`total` is in a register that the function called does not touch; k is 3, so it was 6 since the second round."""
    found = WROTE.match(said(outcome, "trace who-wrote total"))
    assert found and found["what"] == "total (in $s1)" and (found["old"], found["new"]) == ("1", "6")
    assert "total (in $s1): 0 -> 1, written" in said(outcome, "trace who-wrote -before")


def test_an_ide_is_told_the_same(outcome: Outcome) -> None:
    answer = said(outcome, 'interpreter-exec mi "-rvtrace-who-wrote counter"')
    found = WROTE.match(outcome[0]["counter"].said)
    assert found
    fields = f'kind="instruction",what="counter",old="{found["old"]}",new="{found["new"]}",group="{found["group"]}"'
    assert fields in answer and f'instruction={{number="{found["number"]}"' in answer


def documented() -> list[tuple[str, str]]:
    """(command, what gdb printed) of the session in docs/who-wrote.md."""
    lines = [line[4:] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("    ")]
    found = ("\n".join(lines) + "\n").split("(gdb) ")[1:]
    return [(command, said.strip()) for command, _, said in (it.partition("\n") for it in found)]


def test_the_session_in_the_documentation(elf: Path, rig: tuple[Rig, Path]) -> None:
    rows = documented()
    out = run_gdb(elf, [SOURCE, *(command.replace("who.rvt", str(rig[1])) for command, _ in rows)])
    for command, shown in rows[2:]:
        assert out[command].strip().replace(f"{PROGRAM.parent}/", "") == shown
    assert len(rows) == 6


def test_enter_goes_back_from_writer_to_writer(elf: Path, rig: tuple[Rig, Path]) -> None:
    """And the same command typed again begins anew."""
    command = [GDB, "-q", "-nx", "-ex", SOURCE, "-ex", f"trace open {rig[1]}", "-ex", "trace replay", str(elf)]
    with Terminal(command, 110, 40, gdb_environ(TERM="tmux-256color")) as terminal:
        terminal.wait_for("(gdb)")
        for typed, shown in (("trace who-wrote counter", "5 -> 6"), ("", "4 -> 5"), ("", "3 -> 4")):
            terminal.enter(typed)
            terminal.wait_for(f"counter: {shown}")
        terminal.enter("trace who-wrote counter")
        terminal.wait(lambda screen: screen.count("counter: 5 -> 6") == 2, "the newest again")
