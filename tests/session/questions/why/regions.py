"""What let each instruction run, by another algorithm: the stack of open regions of Xin and Zhang ("Efficient Online
Detection of Dynamic Control Dependence", 2007), over the disassembly of objdump and what Spike executed.

A branch opens a region that ends at its immediate post-dominator; whatever runs in between is decided by it. Each
activation of a function has regions of its own. Post-dominators are found by the definition: as sets.
"""

import re
import subprocess
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.transport.simulated.hart.spike import Commit, SpikeRun

EXIT = -1
_HEADING = re.compile(r"^([0-9a-f]+) <([^>]+)>:$")
_LINE = re.compile(r"^ *([0-9a-f]+):\t([0-9a-f]+) +\t(\S+)\t?(.*)$")
_TARGET = re.compile(r"\b([0-9a-f]+) <")
_BRANCH = re.compile(r"(c\.)?b(eq|ne|lt|ge|gt|le)(u|z|uz)?$")


class Line(NamedTuple):
    """An instruction of a disassembly. *follows*: the address behind it."""

    mnemonic: str
    operands: str
    follows: int

    @property
    def is_branch(self) -> bool:
        return _BRANCH.match(self.mnemonic) is not None

    @property
    def is_call(self) -> bool:
        register = self.operands.split(",")[0]
        return self.mnemonic in ("jal", "jalr", "c.jal", "c.jalr") and register not in ("zero", "x0")

    @property
    def is_return(self) -> bool:
        return self.mnemonic == "ret" or (self.mnemonic in ("jr", "c.jr") and self.operands.strip() in ("ra", "t0"))

    @property
    def is_indirect_jump(self) -> bool:
        return self.mnemonic in ("jr", "c.jr") and not self.is_return


class Disassembly:
    """The code of a program, and the addresses at which its functions begin."""

    def __init__(self, elf: Path) -> None:
        self.lines: dict[int, Line] = {}
        self.starts: list[int] = []
        text = subprocess.run(
            ["riscv64-unknown-elf-objdump", "-d", str(elf)], check=True, capture_output=True, text=True
        ).stdout
        for line in text.splitlines():
            if heading := _HEADING.match(line):
                self.starts.append(int(heading[1], 16))
            elif found := _LINE.match(line):
                address, code = int(found[1], 16), found[2]
                self.lines[address] = Line(found[3], found[4], address + len(code) // 2)

    def start(self, pc: int) -> int:
        return self.starts[bisect_right(self.starts, pc) - 1]

    def post_dominators(self, start: int, gone: Mapping[int, set[int]]) -> dict[int, int]:
        """The immediate post-dominator of each instruction of a function. *gone*: where indirect jumps went."""
        code = {pc: line for pc, line in self.lines.items() if self.start(pc) == start}
        ways = {pc: {it if it in code else EXIT for it in _ways(pc, line, gone)} for pc, line in code.items()}
        _leave_loops(ways)
        sets = {pc: set(code) | {EXIT} for pc in code} | {EXIT: {EXIT}}
        changed = True
        while changed:
            changed = False
            for pc in sorted(ways, reverse=True):
                new = {pc} | set.intersection(*(sets[it] for it in ways[pc]))
                changed |= new != sets[pc]
                sets[pc] = new
        # Of those that post-dominate an instruction, the nearest is the one that most of them post-dominate in turn.
        return {pc: max(sets[pc] - {pc}, key=lambda it: len(sets[it])) for pc in code}


def _ways(pc: int, line: Line, gone: Mapping[int, set[int]]) -> set[int]:
    target = _TARGET.search(line.operands)
    if line.is_branch:
        assert target is not None
        return {int(target[1], 16), line.follows}
    if line.mnemonic in ("j", "c.j"):
        assert target is not None
        return {int(target[1], 16)}
    if line.is_indirect_jump:
        return gone.get(pc) or {EXIT}
    return {EXIT} if line.is_return or line.mnemonic in ("mret", "sret") else {line.follows}


def _leave_loops(ways: dict[int, set[int]]) -> None:
    """Let the last instruction of each loop that is never left lead to the exit."""

    def leading() -> set[int]:
        found = {EXIT}
        while True:
            more = {pc for pc, targets in ways.items() if pc not in found and targets & found}
            if not more:
                return found
            found |= more

    while stuck := set(ways) - leading():
        ways[max(stuck)].add(EXIT)


@dataclass
class _Frame:
    """An activation. *made*: by the instruction at this position; *back*: where it returns, None for a jump."""

    made: int
    how: str
    back: int | None
    function: int
    regions: list[tuple[int, int]] = field(default_factory=list)


def decisions(run: SpikeRun, code: Disassembly) -> Iterator[tuple[str, int]]:
    """Yield, for each instruction, what let it run: "branch", or how its activation was made; and the position of that,
    -1 for the beginning.
    """
    steps, trapped = _commits(run)
    gone = _gone(steps, trapped, code)
    dominators: dict[int, dict[int, int]] = {}
    frames = [_Frame(-1, "beginning", None, code.start(steps[0].pc))]
    for position, step in enumerate(steps):
        if position:
            _move(frames, position, steps[position - 1].pc, step.pc, trapped.get(position), code)
        regions = frames[-1].regions
        while regions and regions[-1][1] == step.pc:
            regions.pop()
        yield ("branch", regions[-1][0]) if regions else (frames[-1].how, frames[-1].made)
        line = code.lines[step.pc]
        if line.is_branch or len(gone.get(step.pc, ())) > 1:
            start = code.start(step.pc)
            if start not in dominators:
                dominators[start] = code.post_dominators(start, gone)
            end = dominators[start][step.pc]
            while regions and regions[-1][1] == end:
                regions.pop()
            regions.append((position, end))


def _commits(run: SpikeRun) -> tuple[Sequence[Commit], Mapping[int, int]]:
    """The instructions, and where a trap hit before the one at a position."""
    steps, trapped = list[Commit](), dict[int, int]()
    for step in run.steps:
        if isinstance(step, Commit):
            steps.append(step)
        else:
            trapped[len(steps)] = step.epc
    return steps, trapped


def _gone(steps: Sequence[Commit], trapped: Mapping[int, int], code: Disassembly) -> dict[int, set[int]]:
    """Where the indirect jumps within functions went."""
    found: dict[int, set[int]] = {}
    for position in range(len(steps) - 1):
        pc, after = steps[position].pc, trapped.get(position + 1, steps[position + 1].pc)
        if code.lines[pc].is_indirect_jump and code.start(pc) == code.start(after):
            found.setdefault(pc, set()).add(after)
    return found


def _move(frames: list[_Frame], position: int, before: int, pc: int, epc: int | None, code: Disassembly) -> None:
    line, went = code.lines[before], pc if epc is None else epc
    if line.is_call:
        frames.append(_Frame(position - 1, "call", line.follows, code.start(went)))
    elif line.is_return:
        back = next((at for at in range(len(frames) - 1, 0, -1) if frames[at].how != "jump"), 0)
        if back and frames[back].back == went:
            del frames[back:]
        else:
            frames.append(_Frame(position - 1, "jump", None, code.start(went)))
    elif line.mnemonic == "mret":
        back = next((at for at in range(len(frames) - 1, 0, -1) if frames[at].how == "trap"), 0)
        if back:
            del frames[back:]
    if epc is not None:
        frames.append(_Frame(position - 1, "trap", None, code.start(pc)))
    elif frames[-1].function != code.start(pc):
        frames.append(_Frame(position - 1, "jump", None, code.start(pc)))
