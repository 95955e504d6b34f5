"""A trace taken apart: its groups by number, read from the bytes when they are asked for."""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.history import Accounting
from rvtrace_gdb.decode.tandem.framing import Cause, Framer, Hole
from rvtrace_gdb.decode.tandem.group import Element, Ending, Group, maker_of
from rvtrace_gdb.decode.tandem.parameters import Parameters
from rvtrace_gdb.decode.tandem.problems import Problem, problems_of
from rvtrace_gdb.decode.tandem.shapes import Automaton, Shape
from rvtrace_gdb.support.progress import Progress, silent

PIECE = 1 << 20  # bytes read between two reports of progress


class Flaw(NamedTuple):
    """A group that can be read, and breaks a rule."""

    group: int
    offset: int
    problem: Problem


class Trace:
    """All groups of a trace, fed in pieces of any size; each element outside of groups counts as one.

    What is no group is in `losses`. No bytes make it fail. The bytes are kept, and 10 more for each group.
    """

    def __init__(self, parameters: Parameters, *, wrapped: bool = False) -> None:
        self.parameters = parameters
        self.automaton = Automaton(parameters.widths)
        self._framer = Framer(self.automaton, wrapped=wrapped)
        self.data = self._framer.data
        self.offsets = self._framer.offsets
        """Where each group begins."""
        self.shapes = self._framer.shapes
        """The shape of each, a number of `automaton.shapes`."""

    @classmethod
    def of(cls, data: bytes, parameters: Parameters, progress: Progress = silent, *, wrapped: bool = False) -> "Trace":
        """The groups of a whole trace. *wrapped*: as for `Framer`. Raises only what *progress* raises."""
        trace = cls(parameters, wrapped=wrapped)
        for start in range(0, len(data), PIECE):
            progress("reading", start, len(data))
            trace.feed(data[start : start + PIECE])
        trace.finish()
        return trace

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        self._framer.feed(data)

    def finish(self) -> None:
        """There are no more."""
        self._framer.finish()

    @property
    def pending(self) -> int:
        """See `Framer.pending`."""
        return self._framer.pending

    def give_up(self, rest: bytes, why: Cause) -> None:
        """What comes behind the end is lost."""
        self._framer.give_up(rest, why)

    def forget(self, stop: int, keep: int) -> int:
        """See `Framer.forget`."""
        return self._framer.forget(stop, keep)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def losses(self) -> list[Hole]:
        """Bytes that are no group, in order."""
        return self._framer.losses

    @property
    def accounting(self) -> Accounting:
        """What became of the bytes, once the trace is finished."""
        total, lost = len(self.data), self._framer.lost
        return Accounting(total, total - lost, 0, lost)

    def shape(self, number: int) -> Shape:
        """The shape of group *number*."""
        return self.automaton.shapes[self.shapes[number]]

    def group(self, number: int) -> Group:
        """Group *number*, counted from 0. Raises IndexError."""
        if not 0 <= number < len(self.offsets):
            raise IndexError(f"group {number} of a trace of {len(self.offsets)}")
        offset, shape = self.offsets[number], self.shape(number)
        elements = tuple(self.elements(number))
        if shape.known:
            return Group(elements, shape.ending, offset, shape.reader.size + shape.end)
        size = 1 + sum(form.size for form, _ in self.automaton.forms_at(self.data, offset)) + shape.end
        return Group(elements, shape.ending, offset, size)

    def groups(self, start: int = 0, stop: int | None = None) -> Iterator[Group]:
        """Groups *start* to *stop* - 1."""
        stop = len(self) if stop is None else min(stop, len(self))
        return map(self.group, range(start, stop))

    def elements(self, number: int) -> list[Element]:
        """What is in group *number*."""
        offset, shape = self.offsets[number], self.shape(number)
        if not shape.known:
            found = self.automaton.forms_at(self.data, offset)
            return [maker_of(form)(_numbers(form.reader.unpack_from(self.data, at))) for form, at in found]
        values = shape.reader.unpack_from(self.data, offset)
        if shape.has_bytes:
            values = _numbers(values)
        return [make(values[first:last]) for make, first, last in shape.makers]

    def flaws(self, first: int = 0) -> Iterator[Flaw]:
        """Groups from *first* on that break a rule of the protocol, in order."""
        known = {shape.number: shape.problems for shape in self.automaton.shapes if shape.known}
        if not any(known.values()) and not self._has_long_groups:
            return
        for number, shape in enumerate(self.shapes[first:], first):
            found = known[shape] if shape in known else self.problems(number)
            for problem in found:
                yield Flaw(number, self.offsets[number], problem)

    @property
    def _has_long_groups(self) -> bool:
        return any(shape in self.shapes for shape in range(2))

    def problems(self, number: int) -> tuple[Problem, ...]:
        """The rules that group *number* breaks."""
        shape = self.shape(number)
        if shape.known:
            return shape.problems
        forms = [form for form, _ in self.automaton.forms_at(self.data, self.offsets[number])]
        return problems_of(forms, Ending.EXPLICIT)


def _numbers(values: tuple[int | bytes, ...]) -> tuple[int, ...]:
    return tuple(int.from_bytes(value, "little") if isinstance(value, bytes) else value for value in values)
