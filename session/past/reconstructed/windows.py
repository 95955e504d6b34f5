"""Parts of a history whose values are worked out from both of their ends: where executing from the beginning does not
tell them.

One window ends at the stop, and grows when someone goes further back. Elsewhere a history is cut into blocks.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.reconstruction.facts import HartMachine, KnownValue
from rvtrace_gdb.decode.reconstruction.forward import Forward
from rvtrace_gdb.decode.reconstruction.window.edges import WindowEdge, edge_of_stop
from rvtrace_gdb.decode.reconstruction.window.window import UNKNOWN, Window
from rvtrace_gdb.session.past.reconstructed.execution import Execution
from rvtrace_gdb.session.past.reconstructed.facts import HartFacts
from rvtrace_gdb.support.errors import Progress, silent

FIRST, LONGEST = 20_000, 100_000
"""Instructions of the window that ends at the stop, at first and at most: gdb does not wait long for a register."""
_BLOCK = 10_000
_KEPT_BLOCKS = 4


def _margin() -> int:
    """Return how many instructions before a position a window begins, for what only follows from those before it: how a
    number was extended, what was loaded last.
    """
    return FIRST // 10


class Solved(NamedTuple):
    """*window* knows positions *first* to *last*, that included."""

    first: int
    last: int
    window: Window


class Windows:
    """The windows of a history."""

    def __init__(self, history: History, program: Program, facts: HartFacts, execution: Execution) -> None:
        self._history, self._program, self._facts, self._execution = history, program, facts, execution
        self._executed: Forward | None = None
        self._at_stop: Solved | None = None
        self._blocks: dict[int, Solved] = {}

    def around(self, position: int, progress: Progress = silent, *, block: bool) -> Window | None:
        """Return a window that knows a position; None: there is none. *block*: also one that does not end at the
        stop.
        """
        while True:
            executed = self._believed()
            if executed is None:
                return None
            found = self._solved_window(position, progress, block=block)
            if found is None or executed is self._execution.forward:
                return None if found is None else found.window

    def built_window(self, position: int) -> Window | None:
        """Return a window that knows a position, if there is one already."""
        self._believed()
        known = (it for it in (self._at_stop, *self._blocks.values()) if it is not None)
        return next((it.window for it in known if it.first <= position <= it.last), None)

    def solved(self, first: int, last: int, progress: Progress = silent) -> Iterator[Solved]:
        """Yield the windows that overlap positions *first* to *last* - 1, as far as there are any: that at the stop is
        made.
        """
        length = len(self._history)
        if self._facts.stop is not None and last > length - FIRST:
            self.around(length, progress, block=False)
        self._believed()
        for it in (*([self._at_stop] if self._at_stop is not None else []), *self._blocks.values()):
            if it.first < last and first < it.last:
                yield it

    def _believed(self) -> Forward | None:
        """Drop the windows that were made with what is not believed any more."""
        if self._executed is not self._execution.forward:
            self._executed, self._at_stop = self._execution.forward, None
            self._blocks.clear()
        return self._executed

    def _solved_window(self, position: int, progress: Progress, *, block: bool) -> Solved | None:
        length = len(self._history)
        if self._facts.stop is not None and position >= length - LONGEST and length:
            solved = self._at_stop
            if solved is None or self._begins_late(solved, position):
                count = FIRST
                while position < length - count + _margin():
                    count *= 2
                begin = max(length - min(count, LONGEST), self._execution.first)
                solved = self._at_stop = self._solve(begin, length, progress)
            if solved is not None and position >= solved.first and not (block and self._is_at_edge(position, solved)):
                return solved
        if not block or not self._execution.first <= position < length:
            return None
        number = position // _BLOCK
        found = self._blocks.pop(number, None) or self._solve(
            max((number - 1) * _BLOCK, self._execution.first), min((number + 2) * _BLOCK, length), progress
        )
        if found is not None:
            self._blocks[number] = found
            if len(self._blocks) > _KEPT_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
        return found

    def _begins_late(self, solved: Solved, position: int) -> bool:
        """Return whether the window at the stop should begin earlier for a position."""
        earliest = max(len(self._history) - LONGEST, self._execution.first)
        return position < solved.first or (solved.first > earliest and self._is_at_edge(position, solved))

    def _is_at_edge(self, position: int, solved: Solved) -> bool:
        """Return whether a window begins so shortly before a position that it knows less there than elsewhere."""
        return self._execution.first < solved.first and position < solved.first + _margin()

    def _solve(self, first: int, last: int, progress: Progress) -> Solved | None:
        begin = self._edge(first, progress)
        at_stop = last == len(self._history) and self._facts.stop is not None
        end = edge_of_stop(self._facts.stop) if at_stop and self._facts.stop is not None else self._edge(last, progress)
        executed = self._execution.forward
        if executed is None:
            return None
        machine = self._machine(executed, first, last, at_stop=at_stop)
        window = Window(
            self._history, self._program, machine, first, last,
            begin=begin, end=end, halts=self._facts.halts, shared=self._facts.shared,
        )  # fmt: skip
        window.solve(progress)
        for error in window.contradicted[:1]:  # what follows it is believed less here, too
            self._execution.disagree(error.position, (first, last))
            return None
        return Solved(first, last, window)

    def _machine(self, executed: Forward, first: int, last: int, *, at_stop: bool) -> HartMachine:
        """Return the hart with the RAM that is believed in a window."""
        machine = self._facts.machine
        is_bare = at_stop and self._facts.is_bare_at_stop
        if not self._execution.believes_ram or (executed.is_translated(first, last) and not is_bare):
            return machine._replace(rams=())
        return machine

    def _edge(self, position: int, progress: Progress) -> WindowEdge:
        """Return what is known at a position, from the beginning and from other windows."""
        hart = self._execution.hart_at(position, progress)
        window = self.built_window(position)
        edge = UNKNOWN if window is None else window.edge(position)
        if hart is None:
            return edge

        def read(address: int, size: int) -> Sequence[KnownValue]:
            at = self._execution.hart_at(position)
            found = [None] * size if at is None or not at.physical else at.memory.bytes(address, size)
            if window is None or None not in found:
                return found
            return _first(found, window.memory(position, address, size))

        return WindowEdge(_first(hart.x, edge.x), _first(hart.f, edge.f), {**edge.csrs, **hart.csrs}, read)


def _first(one: Iterable[KnownValue], other: Iterable[KnownValue]) -> list[KnownValue]:
    """Return what is known of either."""
    return [b if a is None else a for a, b in zip(one, other, strict=True)]
