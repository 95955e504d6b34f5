"""Watchpoints in the past of a tandem trace: the real gdb, and a program that Spike ran.

What is expected comes from Spike's own log of that run: what each instruction loaded and stored, and what memory held
then (`tests.session.spike_program`). Forward gdb stops behind the instruction, backward before it. One gdb for each
program is asked everything: each test begins without watchpoints, at the end.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.endtoend.reverse.walk_model import Code
from tests.gdbext.gdb_process import GDB, GDB16, GDB18, HOME, NEWEST, SOURCE, KeptGdb
from tests.helpers.amounts import long_only
from tests.helpers.gdb_mi import GdbMi
from tests.session.spike_program import Spiked, changes

WATCHER = f"source {HOME / 'tests' / 'endtoend' / 'tandem' / 'watcher.py'}"
_DONE = re.compile(r"\x06([^\x03]*)\x03\n(.*?)\x04(\d+)\x05", re.S)
_VALUE = re.compile(r"^(?:Old value|New value|Value) = (.*)$", re.M)


class Stop(NamedTuple):
    """*values*: old and new, or the one that was read."""

    number: int
    values: tuple[str, ...]


class Program:
    """What ran, and gdb in its past, until it is closed."""

    def __init__(self, folder: Path, march: str, gdb: str, of: "Program | None" = None) -> None:
        self.gdb = gdb
        self.script = folder / "commands.txt"
        self.spiked: Spiked = Spiked(folder, march) if of is None else of.spiked
        self.code = Code(self.spiked.elf)
        self.steps = self.spiked.steps
        self.first = next(i for i, step in enumerate(self.steps) if step.pc == self.code.symbols["main"])
        environ = {"WATCHED": str(self.script), "FIRST": str(self.first + 1)}
        self._kept = KeptGdb(self.spiked.elf, gdb, **environ)
        self._kept.run([SOURCE, f"trace open {self.spiked.capture}", "trace replay"])
        self.close = self._kept.close

    def run(self, commands: Sequence[str]) -> list[tuple[str, int, str]]:
        """(command, number afterwards, what gdb said) of what was executed."""
        self.script.write_text("\n".join(commands))
        said = self._kept.run(["delete", "set can-use-hw-watchpoints 1", "continue", WATCHER])
        assert "Traceback" not in "".join(said.values()) and "Python Exception" not in said[WATCHER], said[WATCHER]
        assert "\x04" in said[WATCHER], said
        return [(command, int(number), text) for command, text, number in _DONE.findall(said[WATCHER])]

    def held(self, symbol: str, offset: int, size: int, *, signed: bool = True) -> list[int | None]:
        """What a variable, or a part of it, holds before each step."""
        values = self.spiked.values(self.code.symbols[symbol] + offset, size)
        return [None if data is None else int.from_bytes(data, "little", signed=signed) for data in values]

    def expected(self, made: Iterable[tuple[int, tuple[str, ...]]], direction: int) -> list[Stop]:
        """Of (step, values in the order of time), as gdb meets them."""
        stops = [(i, values) for i, values in made if i >= self.first]
        if direction > 0:
            return [Stop(i + 2, values) for i, values in stops]
        return [Stop(i + 1, values[::-1]) for i, values in reversed(stops)]

    def changed(self, values: Sequence[object]) -> list[tuple[int, tuple[str, ...]]]:
        return [(i, (str(values[i]), str(values[i + 1]))) for i in changes(values)]


TARGETS = [("rv32imac_zicsr", GDB16 or GDB), *long_only(("rv64imac_zicsr", GDB), ("rv64imac_zicsr", NEWEST))]


@pytest.fixture(scope="module", params=TARGETS, ids=["rv32", "rv64", "rv64-newest"][: len(TARGETS)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    program = Program(tmp_path_factory.mktemp("watched"), *request.param)
    yield program
    program.close()


@pytest.fixture(scope="module")
def newest(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """The same in the newest gdb."""
    newest = Program(tmp_path_factory.mktemp("newest"), "", NEWEST, of=program)
    yield newest
    newest.close()


def stops(rows: Iterable[tuple[str, int, str]], command: str, first: int) -> list[Stop]:
    """Those of watchpoints, in the program's own part of the history."""
    told = [(number, said) for done, number, said in rows if done == command and "atchpoint" in said]
    return [Stop(number, tuple(_VALUE.findall(said))) for number, said in told if number > first]


def both_ways(first: int, *setup: str) -> list[str]:
    return ["delete", f"trace goto {first + 1}", *setup, "forward", "backward"]


def sections(rows: list[tuple[str, int, str]]) -> list[list[tuple[str, int, str]]]:
    """Of several `both_ways`, one for each."""
    begins = [i for i, (command, _, _) in enumerate(rows) if command == "delete"]
    return [rows[begin:end] for begin, end in zip(begins, [*begins[1:], len(rows)], strict=True)]


def test_each_kind_both_ways(program: Program) -> None:
    """Variables, parts of them that larger and smaller stores change, loads, atomic operations, a false condition."""
    setups = [
        ("watch counter",), ("watch parts.bytes[3]",), ("rwatch limit",), ("awatch shared",), ("watch -l table[3]",),
        ("watch counter if counter == 4",), ("watch *(short *) ((char *) &parts + 4)",),
    ]  # fmt: skip
    found = sections(program.run([command for setup in setups for command in both_ways(program.first, *setup)]))
    counter, shared = program.held("counter", 0, 4), program.held("shared", 0, 4)
    limit = program.code.symbols["limit"]
    loads: list[tuple[int, tuple[str, ...]]] = [
        (i, ("5",)) for i, step in enumerate(program.steps) if step.touches("rwatch", limit, 4)
    ]
    accessed = [i for i, step in enumerate(program.steps) if step.touches("awatch", program.code.symbols["shared"], 4)]
    values = [(i, tuple(map(str, (shared[i], shared[i + 1])))) for i in accessed]
    byte = [None if it is None else _character(it) for it in program.held("parts", 3, 1, signed=False)]
    expected: list[list[tuple[int, tuple[str, ...]]]] = [
        program.changed(counter), program.changed(byte), loads,
        [(i, held if held[0] != held[1] else held[:1]) for i, held in values],
        program.changed(program.held("table", 6, 2)),
        [(i, (str(counter[i]), str(counter[i + 1]))) for i in changes(counter)],
        program.changed(program.held("parts", 4, 2)),
    ]  # fmt: skip
    for setup, rows, made in zip(setups, found, expected, strict=True):
        for command, direction in (("continue", 1), ("reverse-continue", -1)):
            wanted = program.expected(made, direction)
            if "if" in setup[0]:
                wanted = [stop for stop in wanted if stop.values[1] == "4"]
            if setup == ("rwatch limit",) and direction < 0:
                wanted[-1] = wanted[-1]._replace(values=("<unreadable>",))  # nothing stored it: known since it was read
            assert len(wanted) > (0 if "table" in setup[0] else 2)
            assert stops(rows, command, program.first) == wanted, (setup, command)
        assert not any("note:" in said for _, _, said in rows)


OVERLAPPING = [
    ("watch", "parts.bytes[0]"), ("watch", "parts.words[0]"), ("awatch", "parts.bytes[3]"), ("watch", "parts.all"),
    ("watch", "*((char *) &shared)"), ("awatch", "*((char *) &shared + 1)"), ("watch", "shared"),
    ("rwatch", "*((char *) &limit)"), ("rwatch", "*((short *) &limit + 1)"), ("awatch", "*((char *) &limit + 1)"),
]  # fmt: skip
_OF_EACH = re.compile(r"^Hardware (?:read |access \(read/write\) )?watchpoint (\d+): ", re.M)


def _touched(program: Program, place: str) -> tuple[int, int]:
    """The address and the size of what a watchpoint of OVERLAPPING watches."""
    symbol = re.findall("parts|shared|limit", place)[0]
    offset = 2 if "short" in place else 1 if place.endswith("+ 1)") else 3 if "[3]" in place else 0
    size = 1 if "char" in place or "bytes" in place else 2 if "short" in place else 8 if "all" in place else 4
    return program.code.symbols[symbol] + offset, size


def _held(program: Program, address: int, size: int) -> list[bytes | None]:
    """What is there before each step. Nothing stores `limit`: it is known when it was loaded first."""
    limit = program.code.symbols["limit"]
    if not limit <= address < limit + 4:
        return program.spiked.values(address, size)
    first = next(i for i, step in enumerate(program.steps) if step.touches("rwatch", limit, 4))
    data = (5).to_bytes(4, "little")[address - limit :][:size]
    return [data if i > first else None for i in range(len(program.steps) + 1)]


def _printed(data: bytes | None, place: str) -> str:
    if data is None:
        return "<unreadable>"
    if len(data) == 1:
        return _character(data[0])
    return str(int.from_bytes(data, "little", signed="parts" not in place))


def _triggered(program: Program, direction: int) -> dict[int, dict[int, tuple[str, ...]]]:
    """What is shown at each number, by the watchpoint's place in OVERLAPPING."""
    found: dict[int, dict[int, tuple[str, ...]]] = {}
    for which, (kind, place) in enumerate(OVERLAPPING):
        held = _held(program, *_touched(program, place))
        for i, step in enumerate(program.steps):
            if i < program.first or not step.touches(kind, *_touched(program, place)):
                continue
            before, after = held[i : i + 2][::direction]
            if before == after and kind == "watch":
                continue
            both = kind != "rwatch" and before != after and (kind == "watch" or before is not None)
            values = tuple(_printed(data, place) for data in ((before, after) if both else (after,)))
            found.setdefault(i + (2 if direction > 0 else 1), {})[which] = values
    return found


def _shown(rows: Iterable[tuple[str, int, str]], command: str) -> list[tuple[int, dict[int, tuple[str, ...]]]]:
    """The number of each stop, and the values that are printed of each watchpoint, by its place in OVERLAPPING."""
    shown: list[tuple[int, dict[int, tuple[str, ...]]]] = []
    numbers: list[int] = []
    for done, number, said in rows:
        if done.startswith(("watch ", "awatch ", "rwatch ")):
            numbers += map(int, _OF_EACH.findall(said))
        elif done == command:
            parts = _OF_EACH.split(said)[1:]
            each = zip(parts[::2], parts[1::2], strict=True)
            shown.append((number, {numbers.index(int(one)): tuple(_VALUE.findall(text)) for one, text in each}))
    return shown


def test_several_watchpoints_of_one_instruction(newest: Program) -> None:
    """Of different kinds and sizes, over each other and side by side: all are shown, by gdb 17 and later in one stop.

    But for watchpoints for loads whose value is known only since: with others gdb would not show them.
    """
    often, limit = 24, newest.code.symbols["limit"]  # the first two turns of the loop
    watching = (" ".join(one) for one in OVERLAPPING)
    moves = [command for command in ("continue", "reverse-continue") for _ in range(often)]
    rows = newest.run([f"trace goto {newest.first + 1}", *watching, *moves])
    learnt = next(i for i, step in enumerate(newest.steps) if step.touches("rwatch", limit, 4))
    last = len(newest.steps)
    for command, direction in (("continue", 1), ("reverse-continue", -1)):
        stops = _shown(rows, command)
        together: dict[int, dict[int, tuple[str, ...]]] = {}
        for number, values in stops:
            together.setdefault(number, {}).update(values)
        begin, end = (newest.first, stops[-1][0]) if direction > 0 else (stops[-1][0], last)
        wanted = sorted(_triggered(newest, direction).items())
        found = {number: values for number, values in together.items() if begin < number < end}
        assert found == {number: values for number, values in wanted if begin < number < end}
        apart = {number for number, count in Counter(number for number, _ in stops).items() if count > 1}
        assert apart <= {learnt + 2, learnt + 1} or not GDB18
        last = stops[-1][0]


def _character(value: int) -> str:
    """As gdb prints an unsigned char."""
    if value in _ESCAPES:
        return f"{value} '{_ESCAPES[value]}'"
    return f"{value} '{chr(value)}'" if 32 <= value < 127 else f"{value} '\\{value:03o}'"


_ESCAPES = {
    7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r", 27: "\\033", 39: "\\'", 92: "\\\\",
}  # fmt: skip


def test_every_command_that_runs_stops(program: Program) -> None:
    steps, symbols = program.steps, program.code.symbols
    held = changes(program.held("parts", 3, 1))
    entries = [i for i, step in enumerate(steps) if step.pc == symbols["piecewise"]]
    entry, after = (
        entries[5],
        next(i for i, step in enumerate(steps) if i > entries[5] and step.pc == symbols["atomics"]),
    )
    leaves = max(i for i in range(entry, after) if steps[i].pc in program.code.returns)
    forward, back = min(i for i in held if i >= entry) + 2, max(i for i in held if i < after) + 1
    wanted = [
        (entry, "finish", forward), (entry, "continue", forward), (entry, "stepi 100", forward),
        (entry, "advance atomics", forward), (entry - 1, "next", forward), (entry - 1, "nexti", forward),
        (leaves, "reverse-finish", back), (after, "reverse-stepi 100", back), (leaves + 1, "reverse-next", back),
        (leaves + 1, "reverse-nexti", back), (leaves, "reverse-step 9", back), (after, "reverse-advance main", back),
    ]  # fmt: skip
    commands = [text for place, command, _ in wanted for text in (f"trace goto {place + 1}", command)]
    rows = program.run(["watch parts.bytes[3]", *commands])
    found = [(command, number, "atchpoint" in said) for command, number, said in rows if "trace goto" not in command]
    assert found[1:] == [(command, number, True) for _, command, number in wanted]


def test_a_local_variable_and_the_end_of_its_scope(program: Program) -> None:
    steps, symbols = program.steps, program.code.symbols
    entry = max(i for i, step in enumerate(steps) if step.pc == symbols["sum"])  # sum(3)
    back = program.code.calls[steps[entry - 1].pc]
    left = next(i for i in range(entry, len(steps)) if steps[i].pc == back)
    made = [(i, it.data) for i in range(entry, left) for it in steps[i].accesses if it.data and it.size == 4]
    stored = [(i, int.from_bytes(data, "little")) for i, data in made]
    rows = program.run(
        [f"trace goto {entry + 1}", "tbreak 19", "continue", "watch total", *["continue"] * 5, "info watchpoints"]
    )
    found = [Stop(number, tuple(_VALUE.findall(said))) for _, number, said in rows if "Old value" in said]
    changed = [pair for n, pair in enumerate(stored) if not n or pair[1] != stored[n - 1][1]]
    assert [value for _, value in changed] == [0, 1, 3]
    assert [(stop.number, stop.values[1]) for stop in found] == [(i + 2, str(value)) for i, value in changed]
    (scope,) = [number for _, number, said in rows if "left the block" in said]
    assert scope == left + 1
    assert "No watchpoints" in rows[-1][2]


def test_watchpoints_that_gdb_checks_itself(program: Program) -> None:
    """On a register, and where hardware ones are forbidden: gdb steps."""
    a0, held = [0], program.held("counter", 0, 4)
    for step in program.steps:
        a0.append(step.registers.get(10, a0[-1]))
    i = changes(held)[4]
    start, back = i + 20, max(k for k in changes(a0) if k < i + 20)
    after = min(k for k in changes(a0) if k >= start)
    near = i - 10
    rows = program.run([
        f"trace goto {start + 1}", "watch $a0", "continue", "reverse-continue", "reverse-continue", "delete",
        "set can-use-hw-watchpoints 0", f"trace goto {near + 1}", "watch counter", "continue", "reverse-continue",
    ])  # fmt: skip
    stops = [(number, [int(value) for value in _VALUE.findall(said)]) for _, number, said in rows]
    mask = (1 << program.spiked.xlen) - 1
    found = [(number, [value & mask for value in values]) for number, values in stops[2:5]]
    assert found == [
        (after + 2, [a0[after], a0[after + 1]]), (after + 1, [a0[after + 1], a0[after]]),
        (back + 1, [a0[back + 1], a0[back]]),
    ]  # fmt: skip
    assert stops[9:] == [(i + 2, [held[i], held[i + 1]]), (i + 1, [held[i + 1], held[i]])]
    assert all("Hardware" not in said for command, _, said in rows if "watch" in command)


def test_over_the_machine_interface(program: Program) -> None:
    """What an IDE sees."""
    held = program.held("counter", 0, 4)
    last = changes(held)[-1]
    with GdbMi(program.spiked.elf, program.gdb, f"trace open {program.spiked.capture}", "trace replay") as mi:
        mi.command("-break-watch counter")
        begin = len(mi.records)
        mi.command("-exec-continue --reverse")
        stopped = mi.stopped(begin)
        place = mi.command("-data-evaluate-expression $trace_pos")["value"]
        begin = len(mi.records)
        mi.command("-exec-continue")
        again = mi.stopped(begin)
    old, new = str(held[last]), str(held[last + 1])
    assert stopped["reason"] == again["reason"] == "watchpoint-trigger" and place == str(last + 1)
    assert stopped["value"] == {"old": new, "new": old} and again["value"] == {"old": old, "new": new}


@pytest.mark.parametrize("setting", ["set can-use-hw-watchpoints 1", "set can-use-hw-watchpoints 0"])
def test_a_jump_is_no_hit(program: Program, setting: str) -> None:
    """Where what is watched has another value at the place: it changed on the way, where nobody was."""
    held = program.held("counter", 0, 4)
    i, j = changes(held)[-6], changes(held)[-3]
    goto = [f"trace goto {number}" for number in (i + 1, j + 1, i + 2, j + 5, i + 1)]
    rows = program.run([setting, f"trace goto {j + 1}", "watch counter", "watch $a0", *goto, "continue"])
    jumps = [(number, said) for command, number, said in rows if command in goto]
    assert [number for number, _ in jumps[1:]] == [i + 1, j + 1, i + 2, j + 5, i + 1]
    assert "atchpoint" not in "".join(said for _, said in jumps) and "Value" not in "".join(said for _, said in jumps)
    assert "atchpoint" in rows[-1][2]
    values = _VALUE.findall(rows[-1][2])
    assert len(values) >= 2 and values[0] != values[1]
