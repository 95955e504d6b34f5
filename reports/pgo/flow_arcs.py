"""How often each arc of a compiler's graph of blocks was taken, from lines and functions whose counts the trace has.

The graph is that of the compiler before it optimises (GCC's notes, .gcno). What is known: how often a function was
entered, if it was not inlined; how often a block ran that has a line that no other has, if all instructions of that
line ran equally often. The rest follows from this: what comes into a block goes out of it. What does not follow is
not determined, and facts that contradict each other determine nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rvtrace_gdb.decode.coverage import FunctionCode
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.decode.program.source.inline_frames import InlineFrames
from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts

ENTRY, EXIT = 0, 1
"""The blocks in which a function begins and ends."""
LineKey = tuple[str, int]
_LUI, _LI, _C_LI, _C_LUI = 0x37, 0x13, 0x4001, 0x6001  # addi with x0 is li


class FlowArc(NamedTuple):
    """A way from a block to another. *on_tree*: its count follows from those of others, and GCC has no counter for it;
    *fake*: out of a call that does not return.
    """

    source: int
    target: int
    on_tree: bool
    fake: bool


@dataclass
class FlowFunction:
    """A function in a compiler's notes: its *blocks*, their *arcs* in the order of the counters, and the *lines* of
    each block. *ident*, *lineno_checksum*, *cfg_checksum*: what the compiler knows it by.
    """

    name: str
    ident: int
    lineno_checksum: int
    cfg_checksum: int
    blocks: int = 0
    arcs: list[FlowArc] = field(default_factory=list)
    lines: dict[int, set[LineKey]] = field(default_factory=dict)


class Undetermined(Exception):
    """The counts of a function do not follow from the trace; the text says why."""


class FlowFacts:
    """What a trace says of the functions of some notes."""

    def __init__(self, program: ProgramCounts, functions: Iterable[FlowFunction]) -> None:
        self._program = program
        self._starts = {program.linker_names.get(it.start, it.name): it for it in program.all_functions}
        self._entries = program.entry_counts()
        counted = {pc: program.ran.get(pc, 0) for it in program.all_functions for pc in program.code_of(it)}
        self._frames = InlineFrames(program.elf, counted)
        self.problems = self._frames.problems
        self._lines = self._line_counts(counted)
        self._blocks_of: dict[LineKey, int] = defaultdict(int)
        for function in functions:
            for lines in function.lines.values():
                for line in lines:
                    self._blocks_of[line] += 1
        self._balanced = {it.start: self._is_balanced(it) for it in program.all_functions}

    def arc_counts(self, function: FlowFunction) -> list[int]:
        """Return how often each arc was taken. Raises Undetermined."""
        blocks: dict[int, int] = {}
        for block, lines in function.lines.items():
            own = {self._lines[line] for line in lines if self._blocks_of[line] == 1 and line in self._lines}
            if len(own) == 1:  # else code of some was moved
                blocks[block] = own.pop()
        code = self._starts.get(function.name)
        is_inlined = function.name in self._frames.inlined
        if code is not None and not is_inlined:
            blocks[ENTRY] = self._entries.get(code.start, 0)
        returns = all(self._balanced.values()) or (
            code is not None and not is_inlined and self._balanced[code.start]
        )
        return solved(function, blocks, returns=returns)

    def _line_counts(self, counted: Mapping[int, int]) -> dict[LineKey, int]:
        """Return how often lines ran of which all instructions did so equally often, in each inlined instance. Lines
        with a statement of which the compiler made copies have no count: those of an unrolled loop would be too low.
        Instructions that only load constants say nothing.
        """
        counts: dict[LineKey, dict[object, set[int]]] = defaultdict(lambda: defaultdict(set))
        statements: Counter[object] = Counter()
        copied: set[LineKey] = set()
        for pc, times in counted.items():
            frames = self._frames.at(pc)
            if frames and frames[0].line and not self._is_constant(pc):
                where = self._program.function_at(pc), frames[1:]
                line = frames[0].path, frames[0].line
                counts[line][where].add(times)
                row = self._frames.row(pc)
                if row is not None and row.statement and row.address == pc:
                    statements[line, row.column, where] += 1
                    if statements[line, row.column, where] > 1:
                        copied.add(line)
        return {
            line: sum(next(iter(times)) for times in instances.values())
            for line, instances in counts.items()
            if line not in copied and all(len(times) == 1 for times in instances.values())
        }

    def _is_constant(self, pc: int) -> bool:
        """Return whether an instruction only loads a constant, which compilers move to wherever it is needed."""
        instruction = self._program.instruction(pc)
        code = 0 if instruction is None else int.from_bytes(self._program.image.read(pc, instruction.length), "little")
        if code & 3 != 3:
            return code & 0xE003 in (_C_LI, _C_LUI)
        return code & 0x7F == _LUI or code & 0xFF07F == _LI

    def _is_balanced(self, function: FunctionCode) -> bool:
        """Return whether a function was left as often as it was entered."""
        left = sum(
            times
            for pc in self._program.code_of(function)
            if (times := self._program.ran.get(pc, 0))
            and (it := self._program.instruction(pc)) is not None
            and it.itype is IType.RETURN
        )
        return left == self._entries.get(function.start, 0)


def solved(function: FlowFunction, blocks: dict[int, int], *, returns: bool) -> list[int]:
    """Return how often each arc was taken. *blocks*: how often some ran; *returns*: no call stayed away. Raises
    Undetermined.
    """
    arcs: list[int | None] = [0 if arc.fake and returns else None for arc in function.arcs]
    into: dict[int, list[int]] = defaultdict(list)
    out: dict[int, list[int]] = defaultdict(list)
    for number, arc in enumerate(function.arcs):
        out[arc.source].append(number)
        into[arc.target].append(number)
    changed = True
    while changed:
        changed = False
        for block in range(function.blocks):
            for numbers in (into[block], out[block]):
                changed |= bool(numbers) and _follow_sum(block, numbers, arcs, blocks)
    counts = [times for times in arcs if times is not None]
    if len(counts) < len(arcs):
        raise Undetermined(f"{len(arcs) - len(counts)} of {len(arcs)} arcs do not follow from lines that ran")
    return counts


def _follow_sum(block: int, numbers: list[int], arcs: list[int | None], blocks: dict[int, int]) -> bool:
    """Fill in what follows from the sum on one side of a block. Return whether anything did. Raises Undetermined."""
    missing = [number for number in numbers if arcs[number] is None]
    total = sum(arcs[number] or 0 for number in numbers)
    if block not in blocks:
        if not missing:
            blocks[block] = total
        return not missing
    rest = blocks[block] - total
    if rest < 0 or (rest and not missing):
        raise Undetermined("its lines contradict each other: code was moved or merged by the compiler")
    if len(missing) == 1 or (missing and not rest):
        for number in missing:
            arcs[number] = rest
        return True
    return False
