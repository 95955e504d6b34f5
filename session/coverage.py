"""How often each instruction of a history ran, for who shows it beside the code: `trace coverage`, `disassemble`."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode import counts
from rvtrace_gdb.decode.calls.index import CallHistory
from rvtrace_gdb.decode.code_symbols import Function
from rvtrace_gdb.decode.code_symbols import functions as functions_of
from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.counts import Counts
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session.ranges import Cursor, RangeError
from rvtrace_gdb.support.progress import Progress, silent


class FunctionRow(NamedTuple):
    """A function from *start* to *end* - 1: how many of its *instructions* ran, and how often it was *entered*."""

    start: int
    end: int
    name: str
    instructions: int
    ran: int
    entered: int


class BranchRow(NamedTuple):
    """A conditional branch: how often it went to its *target*, and how often to what *follows* it."""

    pc: int
    taken: int
    not_taken: int
    target: int
    follows: int


class Part(NamedTuple):
    """The positions that are counted, numbered *first* to *last*, with their *gaps*. *elsewhere*: how many instructions
    ran of other programs than the one gdb has; those are not counted.
    """

    first: int
    last: int
    gaps: int
    elsewhere: int


class Coverage:
    """Of a *history*. What is asked about is the whole of it, or what `select` said last. *calls*: of the history, if
    there is one already.
    """

    def __init__(self, history: History, program: ContextImages, calls: CallHistory | None = None) -> None:
        self._history, self._program, self._calls = history, program, calls
        self._wanted = range(len(history))
        self._counted: dict[range, tuple[Counts, int]] = {}
        self._functions: list[Function] | None = None

    def select(self, args: str) -> None:
        """Count what a RANGE says: `A,B` and its like, `A` for all from A on, "" for everything. Raises RangeError."""
        chosen = Cursor().select(args, None, len(self._history))
        if args.strip() in ("+", "-"):
            raise RangeError(f"Expected positive number, got: {args.strip()}.")
        self._wanted = range(chosen.begin - 1, chosen.end - 1)

    def counted(self, progress: Progress = silent) -> Part:
        """Counts it, which is done once, and says what was counted."""
        found, elsewhere = self._counts(progress)
        return Part(self._wanted.start + 1, self._wanted.stop, found.gaps, elsewhere)

    def addresses(self, begin: int = 0, end: int = 1 << 64) -> list[tuple[int, int]]:
        """(address, how often it ran) of what ran from *begin* to *end* - 1."""
        ran = self._counts(silent)[0].ran
        if end - begin < len(ran):
            return [(pc, ran[pc]) for pc in range(begin, end) if pc in ran]
        return sorted((pc, count) for pc, count in ran.items() if begin <= pc < end)

    def branches(self, begin: int, end: int) -> Iterator[BranchRow]:
        """The conditional branches that ran from *begin* to *end* - 1."""
        found, image = self._counts(silent)[0], self._program.base
        for pc, _ in self.addresses(begin, end):
            outcomes = counts.outcomes(found, image, pc)
            if outcomes is not None:
                yield BranchRow(pc, *outcomes)

    def functions(self) -> list[FunctionRow]:
        """All functions of the program, by address."""
        if self._functions is None:
            self._functions = functions_of(self._program.base)
        found = self._counts(silent)[0]
        ran = sorted(found.ran)
        entered = counts.entered(found, self._program.base, {it.start: it.end for it in self._functions})
        return [
            FunctionRow(*function, bisect_left(ran, function.end) - bisect_left(ran, function.start), entered[start])
            for function in self._functions
            for start in [function.start]
        ]

    def _counts(self, progress: Progress) -> tuple[Counts, int]:
        """Of what is wanted, without what ran of other programs; and how much that is."""
        if self._wanted not in self._counted:
            whole = range(len(self._history))
            self._counted = {key: kept for key, kept in self._counted.items() if key == whole}
            self._counted[self._wanted] = self._count(progress)
        return self._counted[self._wanted]

    def _count(self, progress: Progress) -> tuple[Counts, int]:
        stretches = self._stretches()
        base = self._program.base
        if len(stretches) == 1 and base in stretches:
            return counts.counts(self._history, [self._wanted], progress, self._calls), 0
        found, elsewhere = Counts({}, {}, {}, {}), 0
        for image, places in stretches.items():
            here = counts.counts(self._history, places, progress)
            own = {pc: count for pc, count in here.ran.items() if _is_of(base, image, pc)}
            elsewhere += sum(here.ran.values()) - sum(own.values())
            steps = {step: count for step, count in here.steps.items() if step[0] in own}
            resumed = {step: count for step, count in here.resumed.items() if step[0] in own}
            found = counts.added(found, here._replace(ran=own, steps=steps, resumed=resumed))
        return found, elsewhere

    def _stretches(self) -> dict[Image, list[range]]:
        """What of what is wanted ran in which program."""
        found: dict[Image, list[range]] = {}
        changes: Sequence[int] = [at for at, _ in self._history.contexts if at in self._wanted[1:]]
        borders = [self._wanted.start, *changes, self._wanted.stop]
        for start, stop in pairwise(borders):
            places = found.setdefault(self._program.image_of(self._history.context_at(start)), [])
            if places and places[-1].stop == start:
                start = places.pop().start
            places.append(range(start, stop))
        return found


def _is_of(base: Image, image: Image, pc: int) -> bool:
    """Whether the code of *image* at an address is that of *base*, which is under it."""
    return image is base or (base.knows(pc) and image.origin(pc) == base.origin(pc))
