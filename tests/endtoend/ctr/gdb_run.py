"""Control Transfer Records through rvtrace in a real gdb with QEMU 10, and what its log says they must be.

    run = run_once(elf, folder, Setting(["trace ctr start"], "finish", control=7))
    run.check()

What was recorded is tests.ctr_model.model's, fed with the log of the same run from where recording was started; what
ran between records is the log itself.
"""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import NamedTuple

from tests.ctr_model.model import Entry, Event, Instruction, Model, Trap, Write
from tests.ctr_model.transfers import Kind
from tests.gdbext.gdb_process import GDB, SOURCE, run_gdb
from tests.helpers.qemu10 import CPU, running

ALL = "0,999"
SHOW, HISTORY = f"trace ctr show {ALL}", "trace history 1,1000000"
NAMES: dict[int, str] = {  # Control Transfer Records 1.0, "Control Transfer Type Definitions"
    Kind.EXCEPTION: "exception", Kind.INTERRUPT: "interrupt", Kind.TRAP_RETURN: "trap return",
    Kind.NOT_TAKEN_BRANCH: "not-taken branch", Kind.TAKEN_BRANCH: "taken branch",
    Kind.INDIRECT_CALL: "indirect call", Kind.DIRECT_CALL: "direct call", Kind.INDIRECT_JUMP: "indirect jump",
    Kind.DIRECT_JUMP: "direct jump", Kind.COROUTINE_SWAP: "co-routine swap", Kind.FUNCTION_RETURN: "function return",
    Kind.OTHER_INDIRECT_JUMP: "other indirect jump", Kind.OTHER_DIRECT_JUMP: "other direct jump",
}  # fmt: skip

_ANOTHER = "[a mode that is not recorded]"
_ROW = re.compile(r"^(\d+)\t(.*) -> (.*)\t(.*)$")
_RAN = re.compile(r"^\t     \[(.*)\]$")
_NUMBERS = re.compile(r": (\d+),(\d+)(?:;|$)")
_INSTRUCTION = re.compile(r"^(\d+)\t(?:=> |   )0x([0-9a-f]+)")
_GAP = re.compile(r"^(\d+)\t\[")


class Row(NamedTuple):
    """A line of `trace ctr show`; *ran*: the text in brackets below it."""

    number: int
    source: int | None
    target: int | None
    kind: str
    ran: str | None


class Shown(NamedTuple):
    """What `trace ctr show` and `trace history` said. *since*: what ran behind the youngest; *history*: None: a gap."""

    rows: list[Row]
    since: str | None
    history: dict[int, int | None]

    @classmethod
    def of(cls, show: str, history: str) -> "Shown":
        rows: list[Row] = []
        since = None
        for line in show.splitlines():
            if row := _ROW.match(line):
                rows.append(Row(int(row[1]), _address(row[2]), _address(row[3]), row[4], None))
            elif ran := _RAN.match(line):
                since = since if rows else ran[1]
                rows[-1:] = [row._replace(ran=ran[1]) for row in rows[-1:]]
        return cls(rows, since, _history(history))

    def ran(self, text: str) -> list[int | None]:
        """What the history has for the text in brackets."""
        numbers = _NUMBERS.search(text)
        return [self.history[n] for n in range(int(numbers[1]), int(numbers[2]) + 1)] if numbers else []


def _address(text: str) -> int | None:
    return None if text == _ANOTHER else int(text.split()[0], 16)


def _history(text: str) -> dict[int, int | None]:
    found: dict[int, int | None] = {}
    for line in text.splitlines():
        if instruction := _INSTRUCTION.match(line):
            found[int(instruction[1])] = int(instruction[2], 16)
        elif gap := _GAP.match(line):
            found[int(gap[1])] = None
    return found


class Expected:
    """What the model recorded of *events*, which begin where recording did, up to *pc*."""

    def __init__(self, model: Model, events: Sequence[Event], pc: int, mode: int) -> None:
        self.model = model
        model.run(events)
        model.reach(pc, mode)
        self._events = [event for event in events if not isinstance(event, Write)]
        entries = model.entries()
        self.valid = next((n for n, entry in enumerate(entries) if not entry[0] & 1), len(entries))
        self.rows = [_row(entry) for entry in entries[: self.valid]]
        self._when = [len(self._events), *model.when()[: self.valid]]

    def follows(self, row: int) -> bool:
        """Whether entry *row* came before the one that is shown above it (software may have written the registers)."""
        return 0 < self._when[row + 1] <= self._when[row]

    def between(self, row: int, *, back: bool) -> list[int]:
        """Addresses from the target of entry *row* up to and with the source of the one before (0: up to now).

        *back*: without what interrupts did that came and went.
        """
        events = self._events[self._when[row + 1] : self._when[row]]
        return [event.pc for event in (_undisturbed(events) if back else events) if isinstance(event, Instruction)]


def _row(entry: Entry) -> tuple[int | None, int | None, str]:
    return entry[0] & ~1 or None, entry[1] & ~1 or None, NAMES.get(entry[2] & 15, "type unknown")


def _undisturbed(events: Sequence[Instruction | Trap]) -> list[Instruction | Trap]:
    left: list[Instruction | Trap] = []
    away: list[Trap] = []
    for event in events:
        if away and (event.pc, event.mode) == (away[-1].pc, away[-1].mode):
            away.pop()
        if not away and not (isinstance(event, Trap) and event.interrupt):
            left.append(event)
        if isinstance(event, Trap) and event.interrupt:
            away.append(event)
    return left


def check(shown: Shown, expected: Expected) -> int:
    """The rows are the records; what ran between is what the log has, or said not to be known. How many are known."""
    assert [(row.source, row.target, row.kind) for row in shown.rows] == expected.rows
    assert [row.number for row in shown.rows] == list(range(expected.valid))
    texts = [shown.since, *(row.ran for row in shown.rows[:-1])]
    known = 0
    for number, text in enumerate(texts):
        if text is not None and expected.follows(number):
            known += _check_between(text, shown.ran(text), expected, number)
    return known


def _check_between(text: str, ran: list[int | None], expected: Expected, number: int) -> bool:
    possible = [expected.between(number, back=back) for back in (False, True)]
    if text.startswith(("not known", "partly known")):
        gap = ran.index(None) if None in ran else 0
        before, behind = ran[:gap], ran[gap + 1 :]
        assert any(pcs[:gap] == before and pcs[len(pcs) - len(behind) :] == behind for pcs in possible), (number, text)
        return False
    count = re.match(r"(\d+|no) instruction", text)
    assert count and ran in possible, (number, text, [hex(pc) for pc in possible[0]])
    assert len(ran) == (0 if count[1] == "no" else int(count[1]))
    return True


@dataclass(frozen=True)
class Setting:
    """How a program is run: to *begin*, where *commands* are given, and on to *stop*, where it is looked at.

    control   what the commands must have written to mctrctl, for the model
    before    commands before it runs at all
    on_the_way, after   commands while it is recorded, and when it was looked at
    times     it stops when it comes to *stop* for that time
    """

    commands: Sequence[str]
    stop: str
    control: int
    depth: int = 256
    _: KW_ONLY
    begin: str = "main"
    before: Sequence[str] = ()
    on_the_way: Sequence[str] = ()
    after: Sequence[str] = ()
    times: int = 1

    def all_commands(self) -> list[str]:
        """What gdb is told, from the reset on."""
        first = [*self.before, f"tbreak {self.begin}", "continue", *self.commands, "print/x $pc"]
        there = [f"tbreak {self.stop}", f"ignore $bpnum {self.times - 1}", "continue "]
        return [*first, *self.on_the_way, *there, "print/x $pc ", "print $priv", SHOW, HISTORY, *self.after]


class Run:
    """What was said and what ran, of one *setting*."""

    def __init__(self, elf: Path, setting: Setting, said: dict[str, str], events: list[Event]) -> None:
        self.said = said
        self.shown = Shown.of(said[SHOW], said[HISTORY])
        start, pc = (int(said[words].split()[-1], 16) for words in ("print/x $pc", "print/x $pc "))
        at = next(n for n, event in enumerate(events) if isinstance(event, Instruction) and event.pc == start)
        self.events = events[at:]
        writes = [Write(0x15F, (setting.depth // 16).bit_length() - 1), Write(0x34E, setting.control)]
        mode = int(said["print $priv"].split()[-1])
        self.expected = Expected(Model(elf, "1.0"), [*writes, *self.events], pc, mode)

    def check(self) -> int:
        for command, output in self.said.items():
            assert "Traceback" not in output and "Python Exception" not in output, (command, output)
        return check(self.shown, self.expected)


def run_each(
    elf: Path, folder: Path, settings: Sequence[Setting], *,
    gdb: str = GDB, connect: str = "target remote", cpu: str = f"rv64,{CPU}", clock: int = 10,
) -> list[Run]:  # fmt: skip
    """Run a program with each of *settings*, one after the other, in one gdb: in between, recording is stopped, and
    QEMU is reset.

    clock     QEMU's: how often interrupts come
    """
    with running(elf, folder, cpu=cpu, logged=True, clock=clock) as machine:
        commands, names = [SOURCE, f"{connect} :{machine.port}"], []
        for number, setting in enumerate(settings):
            again = [_STOP, *machine.reset_commands()] if number else []
            spaces = " " * _DISTINCT * number  # a command has its output under its own text
            commands += [f"{command}{spaces}" for command in again]
            names.append({command: f"{command}{spaces}" for command in setting.all_commands()})
            commands += names[-1].values()
        said = run_gdb(elf, [*commands, "disconnect"], gdb=gdb)
        ends = [said[command] for command in commands if command.rstrip() == _STOP]
        assert all(end.startswith("Tracing stopped.\n") for end in ends), ends
        parts = machine.events_between_resets()
    assert len(parts) == len(settings)
    told = [{command: said[spelt] for command, spelt in spelling.items()} for spelling in names]
    return [Run(elf, setting, words, events) for setting, words, events in zip(settings, told, parts, strict=True)]


_STOP = "trace ctr stop"
_DISTINCT = 64
"""More spaces than a setting's own commands end with to be told apart."""


def run_once(
    elf: Path, folder: Path, setting: Setting, *,
    gdb: str = GDB, connect: str = "target remote", cpu: str = f"rv64,{CPU}",
) -> Run:  # fmt: skip
    """Run a program with one setting, in a gdb and on a machine of its own."""
    (run,) = run_each(elf, folder, [setting], gdb=gdb, connect=connect, cpu=cpu)
    return run
