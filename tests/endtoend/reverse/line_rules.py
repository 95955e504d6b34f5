"""What gdb's commands for source lines must do, by the line table of objdump: rules that hold in all versions of gdb.

A line begins at each address that its table calls a statement. Where inlined code begins there may be several lines at
one address; which of them gdb means is left open.
"""

import re
import subprocess
from bisect import bisect_right
from pathlib import Path

from tests.endtoend.reverse.walk_model import Walk

_ROW = re.compile(r"^(\S+) +(\d+|-) +(?:0x)?([0-9a-f]+)(?: +\d+)?( +x)?(?: +END)?\s*$", re.M)
Names = frozenset[tuple[str, int]]


class Lines:
    """The line table of a program."""

    def __init__(self, elf: Path) -> None:
        command = ["riscv64-unknown-elf-objdump", "--dwarf=decodedline", str(elf)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        rows: dict[int, set[tuple[str, int]]] = {}
        statements: set[int] = set()
        for file, number, address, statement in _ROW.findall(text):
            here = rows.setdefault(int(address, 16), set())
            if number != "-":
                here.add((file, int(number)))
                statements |= {int(address, 16)} if statement else set()
        self._addresses = sorted(rows)
        self._names = [frozenset(rows[address]) for address in self._addresses]
        self._statements = statements

    def at(self, pc: int) -> Names:
        """The lines an address may belong to, none for code without lines."""
        i = bisect_right(self._addresses, pc) - 1
        return self._names[i] if i >= 0 else frozenset()

    def begins(self, pc: int, direction: int = 1) -> bool:
        """Whether a statement begins there; backward gdb stops at the beginning of any row of the table."""
        i = bisect_right(self._addresses, pc) - 1
        return pc in self._statements or (direction < 0 and i >= 0 and self._addresses[i] == pc)


class LineWalk:
    """*walk*: the model of calls; positions are as there. *optimization*: with some, lines are mixed, those of
    inlined functions among them, which gdb passes over: what it passes over is looked at in orderly code only.
    """

    def __init__(self, walk: Walk, lines: Lines, *, optimization: str) -> None:
        self.walk, self.lines, self._optimization = walk, lines, optimization

    def wrong(self, name: str, here: int, there: int) -> str:
        """Why next, step or until, backward with "reverse-", cannot have led from *here* to *there*; "" if it can."""
        direction = -1 if name.startswith("reverse-") else 1
        if (there - here) * direction < 0 or here == there not in (0, self.walk.present - 1):
            return "it went the wrong way, or nowhere"
        if there in (0, self.walk.present - 1, self.walk.present):  # the ends; without a target the last is the newest
            return ""
        frame, end = self.walk.called_at[here], self.walk.called_at[there]
        inside = frame[: len(end)] != end
        may_be = _at_first(end) or (name.endswith("step") and self._was_called(here, there, direction))
        if inside and not may_be and not (name == "until" and self._recurs(frame, end)):
            return f"it stopped in a call of what it began in: {len(end)} deep, was {len(frame)}"
        if not self.lines.begins(self.walk.pcs[there], direction):
            return "it stopped in the middle of a line"
        if name.endswith("until") or inside or self._optimization == "-O2":
            return ""
        if direction > 0:
            return self._passed(here, there)
        return self._passed_back(here, there) if self._optimization == "-O0" else ""

    def _was_called(self, here: int, there: int, direction: int) -> bool:
        """Whether step came into a function or handler on the way."""
        callers = [self.walk.called_at[p] for p in range(here, there, direction)]
        return self.walk.called_at[there][:-1] in callers

    def _recurs(self, frame: tuple[int, ...], end: tuple[int, ...]) -> bool:
        """Whether it is the same function: until asks for addresses, and not whose call they are run in."""
        entered = [self.walk.pcs[calls[-1] + 1] for calls in (frame, end) if calls]
        return len(entered) == 2 and entered[0] == entered[1]

    def _passed(self, here: int, there: int) -> str:
        """The beginning of another line where it should have stopped before *there*.

        Coming into the middle of a line, gdb goes on to its end.
        """
        line, frame = self.lines.at(self.walk.pcs[here]), self.walk.called_at[here]
        for p in range(here + 1, there):
            names = self.lines.at(self.walk.pcs[p])
            if self.walk.called_at[p] != frame or names & line:
                continue
            if self.lines.begins(self.walk.pcs[p]):
                return f"it passed line {sorted(names)} at {p + 1}"
            if not self.lines.begins(self.walk.pcs[p], -1):
                line = names
        return ""

    def _passed_back(self, here: int, there: int) -> str:
        """More lines than it may go through in the call in which it began."""
        if self.walk.called_at[there] != self.walk.called_at[here]:
            return ""
        own = [p for p in range(here, there - 1, -1) if self.walk.called_at[p] == self.walk.called_at[here]]
        names = [self.lines.at(self.walk.pcs[p]) for p in own if p < self.walk.present]
        lines = [names[i] for i in range(len(names)) if i == 0 or not names[i] & names[i - 1]]
        # the one it began in, the one it ended in; gdb 13 passes over one whose rows are single instructions
        return f"it passed lines {lines}" if len(lines) > 3 else ""


def _at_first(calls: tuple[int, ...]) -> bool:
    """Whether an interrupt came at the first instruction of a function: gdb does not take that for a call of the
    function it goes over.
    """
    return len(calls) > 1 and calls[-1] == calls[-2]
