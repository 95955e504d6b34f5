"""The functions that ran in a history, shown in pages, and how often each of their instructions ran.

`FunctionList` answers `trace functions` and `trace calls`, `Coverage` answers `trace coverage` and `disassemble`.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.calls.call_history import CallHistory, FunctionRun, addresses
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.calls.tree.programs import image_of_function
from rvtrace_gdb.decode.coverage import ExecutionCounts
from rvtrace_gdb.decode.coverage import FunctionCode as FunctionSymbol
from rvtrace_gdb.decode.coverage import functions as functions_of
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.answers import BranchRow, CoveredFunction
from rvtrace_gdb.rows.list_rows import CallRow, FunctionRow
from rvtrace_gdb.session.queries.lists.pages import Cursor, Folding, PageSelection, RangeError
from rvtrace_gdb.support.errors import LongWork, Progress, silent

if TYPE_CHECKING:
    from rvtrace_gdb.decode.calls.call_tree import CallNode

_TRAP = "trap"
_ALL = 1 << 62


class FunctionList:
    """The functions that ran in *history*, numbered from 1. *calls*: those of the same history, if they were computed
    before.
    """

    def __init__(
        self,
        history: History,
        program: ContextImages,
        progress: Progress = silent,
        calls: CallHistory | None = None,
    ) -> None:
        self._history, self._program = history, program
        self.calls = CallHistory(history, program, progress) if calls is None else calls
        """The functions of the history."""
        self._cursor = Cursor(listing="function-call-history")
        self._tree: LongWork[CallNode] | None = None
        self._rows: list[CallRow] = []

    def __len__(self) -> int:
        return len(self.calls)

    def select(self, args: str, size: int | None) -> PageSelection:
        """Return which functions `trace functions ARGS` shows, as `record function-call-history` does. Raises
        RangeError.
        """
        return self._cursor.select(args, size, len(self))

    def turn(self, args: str, size: int, folding: Folding) -> PageSelection:
        """Return the page for `""`, `+` or `-` with *size* lines, in which repetitions are folded."""
        return self._cursor.turn(args, len(self), lambda place, forward: folding.page(place, size, forward=forward))

    def rows(self, begin: int, end: int, *, lines: bool = False) -> list[FunctionRow]:
        """Return the functions numbered *begin* to *end* - 1. *lines*: with the addresses of their instructions."""
        return [self._row(function, lines) for function in self.calls.functions(begin, end)]

    def tree(self, depth: int, progress: Progress = silent, parts: Sequence[range] | None = None) -> int:
        """Build the rows of the call tree down to *depth* levels, 0: all, for `tree_rows`; return their number.
        *parts*: of what ran at these positions, None: of everything.
        """
        from rvtrace_gdb.decode.calls.call_tree import call_tree_of_parts, tree_rows

        root = self.root(progress) if parts is None else call_tree_of_parts(self.calls, parts, progress)
        self._rows = [self._call(level, node, depth) for level, node in tree_rows(root, depth or _ALL)]
        return len(self._rows)

    def root(self, progress: Progress = silent) -> "CallNode":
        """Return the root of the call tree, which is built once."""
        from rvtrace_gdb.decode.calls.call_tree import call_tree_work

        if self._tree is None:
            self._tree = call_tree_work(self.calls)
        return self._tree.result(progress)

    def tree_rows(self, begin: int, end: int) -> list[CallRow]:
        """Return rows *begin* to *end* - 1 of the call tree, which count from 1."""
        return self._rows[max(begin, 1) - 1 : end - 1]

    def _row(self, function: FunctionRun, lines: bool) -> FunctionRow:
        begin, end = function.begin, function.end
        is_gap, image = function.pc == GAP, self._program.image_of(self._history.context_at(begin))
        return FunctionRow(
            number=function.number,
            begin=begin + 1,
            end=end,
            level=None if is_gap else function.level,
            pc=None if is_gap else function.pc,
            name=None if is_gap else self._function_name(image, function.pc),
            what=self._reason(function),
            addresses=sorted(addresses(self._history, begin, end)) if lines and not is_gap else [],
        )

    def _reason(self, function: FunctionRun) -> str:
        """Return the reason of a gap, or the trap that led to a function, "" for none."""
        if function.pc == GAP:
            return self._history.gap_at(function.begin).as_gap
        return (self.calls.trap_at(function.begin) or _TRAP) if function.kind is StackOperationKind.TRAP else ""

    def _call(self, level: int, node: "CallNode", depth: int) -> CallRow:
        known = node.function != UNKNOWN
        return CallRow(
            level=level,
            pc=node.function if known else None,
            name=self._called_name(node) if known else None,
            calls=node.calls,
            instructions=node.total,
            own_instructions=node.own,
            trap=node.trap,
            hidden=(len(node.children) or None) if level + 1 == depth else None,
        )

    def _called_name(self, node: "CallNode") -> str | None:
        """Return the name of the function of a node, as `_function_name`. A kernel is the same in all programs."""
        images, pc = self.calls.images, node.function
        image = image_of_function(images, images[node.program], pc)
        base = self._program.base
        return self._function_name(base if image.symbol(pc) == base.symbol(pc) else image, pc)

    def _function_name(self, image: Image, pc: int) -> str | None:
        """Return the name of a function if gdb does not know it, or has another one at its address."""
        found = image.symbol(pc)
        if found is None or (image is self._program.base and image.path and not image.is_added(pc)):
            return None
        return found[0]


class CountedPart(NamedTuple):
    """The positions that are counted, numbered *first* to *last*, with their *gaps*.

    *elsewhere*: how many instructions of other programs than gdb's ran; they are not counted.
    """

    first: int
    last: int
    gaps: int
    elsewhere: int


class Coverage:
    """The coverage of a *history*, or of the part that was selected last. *calls*: those of the history, if computed
    before.
    """

    def __init__(self, history: History, program: ContextImages, calls: CallHistory | None = None) -> None:
        self._history, self._program, self._calls = history, program, calls
        self._wanted = range(len(history))
        self._counted: dict[range, tuple[ExecutionCounts, int]] = {}
        self._functions: list[FunctionSymbol] | None = None

    def select(self, args: str) -> None:
        """Select a RANGE: `A,B` and its variants, `A` for everything from A on, "" for everything.
        Raises RangeError.
        """
        chosen = Cursor().select(args, None, len(self._history))
        if args.strip() in ("+", "-"):
            raise RangeError(f"Expected positive number, got: {args.strip()}.")
        self._wanted = range(chosen.begin - 1, chosen.end - 1)

    def counted(self, progress: Progress = silent) -> CountedPart:
        """Count the selected part, which is done once, and return what was counted."""
        found, elsewhere = self._counts(progress)
        return CountedPart(self._wanted.start + 1, self._wanted.stop, found.gaps, elsewhere)

    def addresses(self, begin: int = 0, end: int = 1 << 64) -> list[tuple[int, int]]:
        """Return (address, how often it ran) of the instructions that ran from *begin* to *end* - 1."""
        ran = self._counts(silent)[0].ran
        if end - begin < len(ran):
            return [(pc, ran[pc]) for pc in range(begin, end) if pc in ran]
        return sorted((pc, count) for pc, count in ran.items() if begin <= pc < end)

    def branches(self, begin: int, end: int) -> Iterator[BranchRow]:
        """Yield the conditional branches that ran from *begin* to *end* - 1."""
        found, image = self._counts(silent)[0], self._program.reported_program
        for pc, _ in self.addresses(begin, end):
            outcomes = coverage.branch_outcomes(found, image, pc)
            if outcomes is not None:
                yield BranchRow(pc, *outcomes)

    def functions(self) -> list[CoveredFunction]:
        """Return all functions of the program, by address. Where it is none of several that ran at the same addresses,
        those of each of them.
        """
        if not self._program.base.path and len(programs := self._programs_that_ran()) > 1:
            return sorted(self._functions_of_programs(programs), key=lambda it: (it.start, it.end))
        if self._functions is None:
            self._functions = functions_of(self._program.reported_program)
        return _covered(self._functions, self._counts(silent)[0], self._program.reported_program)

    def _programs_that_ran(self) -> list[tuple[Image, list[range]]]:
        """Return the programs whose code is not the same, each with where it ran."""
        found: dict[tuple[tuple[str, int], ...], tuple[Image, list[range]]] = {}
        for image, places in self._stretches().items():
            files = tuple((elf.path, bias) for elf, bias in image.elves)
            found.setdefault(files, (image, []))[1].extend(places)
        return list(found.values())

    def _functions_of_programs(self, programs: Sequence[tuple[Image, list[range]]]) -> Iterator[CoveredFunction]:
        """Yield the functions of programs; one that several have from the same file, as those of a kernel, once."""
        counts = [coverage.counts(self._history, places, silent, self._calls) for _, places in programs]
        having: dict[tuple[FunctionSymbol, str, int], list[int]] = {}
        for number, (image, _) in enumerate(programs):
            for function in functions_of(image):
                file = image.file_at(function.start)
                place = (image.origin(function.start), 0) if file is None else (file[0].path, file[1])
                having.setdefault((function, *place), []).append(number)
        together: dict[tuple[int, ...], list[FunctionSymbol]] = {}
        for (function, *_), numbers in having.items():
            together.setdefault(tuple(numbers), []).append(function)
        for those, functions in together.items():
            found = reduce(coverage.add_counts, (counts[number] for number in those))
            yield from _covered(functions, found, programs[those[0]][0])

    def _counts(self, progress: Progress) -> tuple[ExecutionCounts, int]:
        """Return the counts of the selected part, and how many instructions of other programs ran."""
        if self._wanted not in self._counted:
            whole = range(len(self._history))
            self._counted = {key: kept for key, kept in self._counted.items() if key == whole}
            self._counted[self._wanted] = self._execution_counts(progress)
        return self._counted[self._wanted]

    def _execution_counts(self, progress: Progress) -> tuple[ExecutionCounts, int]:
        stretches = self._stretches()
        base = self._program.reported_program
        if len(stretches) == 1 and base in stretches:
            return coverage.counts(self._history, [self._wanted], progress, self._calls), 0
        found, elsewhere = ExecutionCounts({}, {}, {}, {}), 0
        for image, places in stretches.items():
            here = coverage.counts(self._history, places, progress, self._calls)
            own = {pc: count for pc, count in here.ran.items() if _is_of(base, image, pc)}
            elsewhere += sum(here.ran.values()) - sum(own.values())
            steps = {step: count for step, count in here.steps.items() if step[0] in own}
            resumed = {step: count for step, count in here.resumed.items() if step[0] in own}
            found = coverage.add_counts(found, here._replace(ran=own, steps=steps, resumed=resumed))
        return found, elsewhere

    def _stretches(self) -> dict[Image, list[range]]:
        """Return the selected positions by the program that ran."""
        found: dict[Image, list[range]] = {}
        changes: Sequence[int] = [at for at, _ in self._history.contexts if at in self._wanted[1:]]
        borders = [self._wanted.start, *changes, self._wanted.stop]
        for start, stop in pairwise(borders):
            places = found.setdefault(self._program.image_of(self._history.context_at(start)), [])
            if places and places[-1].stop == start:
                start = places.pop().start
            places.append(range(start, stop))
        return found


def _covered(functions: Sequence[FunctionSymbol], counts: ExecutionCounts, image: Image) -> list[CoveredFunction]:
    """Return how much of each function of a program ran."""
    ran, ends = sorted(counts.ran), {it.start: it.end for it in functions}
    entered = coverage.function_entries(counts, image, ends)
    return [
        CoveredFunction(
            **function._asdict(),
            ran=bisect_left(ran, function.end) - bisect_left(ran, function.start),
            entered=entered[function.start],
        )
        for function in functions
    ]


def _is_of(base: Image, image: Image, pc: int) -> bool:
    """Return whether the code of *image* at an address comes from *base*, on which it is layered."""
    return image is base or (base.knows(pc) and image.origin(pc) == base.origin(pc))
