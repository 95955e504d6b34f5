"""The groups of a trace by number, read from the bytes on demand.

Framing finds where each group begins and which shape it has, in two arrays; bytes that are not a group are a loss.
After bytes that violate the protocol, reading resumes at the next place from which several consecutive groups can be
read. The bytes themselves are kept: they are the most compact form of their content.
"""

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import Accounting, Loss, LossCause, Note, NoteCause
from rvtrace_gdb.decode.tandem.compiled_reading import CompiledReading, compiled_reading
from rvtrace_gdb.decode.tandem.group_grammar import Automaton, GroupProblem, GroupShape, InvalidBytes, problems_of
from rvtrace_gdb.decode.tandem.protocol import Element, Ending, Group, Opcode, TandemParameters, maker_of
from rvtrace_gdb.support.errors import Progress, silent

_BEGIN = int(Opcode.BEGIN_GROUP)
_RESET = bytes((Opcode.BEGIN_GROUP, Opcode.HART_RESET, Opcode.END_GROUP))  # what a port sends first
_GROUPS_TO_TRUST = 4  # in a row, before reading resumes after damage
_BYTES_TO_TRUST = 128  # which those have at most, each; real encoders send 72 at most


CUT_OFF, NO_BEGIN = Note(NoteCause.GROUP_CUT_OFF), Note(NoteCause.NO_BEGIN)

Cause = Loss | Note
"""Why bytes are not a group. A note: nothing is lost by it."""


class Hole(NamedTuple):
    """Bytes that are not a group: *length* of them at *offset*, before group number *group*."""

    group: int
    offset: int
    length: int
    cause: Cause

    @property
    def why(self) -> str:
        """The text of the cause."""
        return fact_text(self.cause)


class GroupFramer:
    """Finds the groups of a trace that is fed in pieces of any size.

    *wrapped*: it is the rest of a longer trace, as in a ring buffer that wrapped: its beginning need not be a group,
    though it looks like one.

    data     all bytes so far
    offsets  of each group
    shapes   of each group, numbers of `automaton.shapes`
    losses   in order
    """

    def __init__(self, automaton: Automaton, *, wrapped: bool = False) -> None:
        self.automaton = automaton
        self.data = bytearray()
        self.offsets = array("Q")
        self.shapes = array("H")
        self.losses: list[Hole] = []
        self._start = self._at = 0  # of the group that is being read, and of the element
        self._node = automaton.root
        self._compiled = compiled_reading()
        self._begun = False
        self._forgotten = 0  # bytes before those in `data`
        self._damaged: Cause | None = NO_BEGIN if wrapped else None  # looking for where to go on, since this was found
        self._candidate = 0

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add the next bytes."""
        if data and not self._begun:
            self._begun = True
            self._damaged = self._damaged if data[0] == _BEGIN else NO_BEGIN
        self.data += data
        self._go_on(last=False)

    def finish(self) -> None:
        """End the trace: a group that is not complete is a loss."""
        self._go_on(last=True)
        if self._start < len(self.data):
            self._lose_bytes(len(self.data), CUT_OFF)

    @property
    def pending(self) -> int:
        """The offset of the bytes that are in no group and no loss yet; negative if some of them were dropped."""
        return self._start

    def give_up(self, rest: bytes, why: Cause) -> None:
        """Treat everything after the end as lost."""
        self.data += rest
        self._lose_bytes(len(self.data), why)

    def forget(self, stop: int, keep: int) -> int:
        """Drop the groups before *stop*; return how many bytes they had. *keep* empty groups stand for all of them.

        From then on, offsets count from the end of those bytes: a loss that continues began at a negative one.
        """
        count = len(self.offsets)
        done = self.offsets[stop] if stop < count else self._done
        self.losses = [
            loss._replace(group=loss.group - stop + keep, offset=loss.offset - done)
            for loss in self.losses
            if loss.group >= stop
        ]
        self._forgotten += done
        shape = self.shapes[stop - 1] if stop else 0
        offsets = [offset - done for offset in self.offsets[stop:]]
        del self.data[:done], self.offsets[:], self.shapes[:stop]
        self.offsets.extend([*[0] * keep, *offsets])
        self.shapes[:0] = array("H", [shape] * keep)
        self._start, self._at, self._candidate = self._start - done, self._at - done, self._candidate - done
        return done

    @property
    def _done(self) -> int:
        """Return the offset up to which nothing is needed any more, outside of groups."""
        return min(self._start if self._damaged is None else max(self._start, self._candidate), len(self.data))

    @property
    def lost(self) -> int:
        """The number of bytes in losses."""
        return sum(loss.length for loss in self.losses)

    def _go_on(self, *, last: bool) -> None:
        while True:
            if self._damaged is not None and not self._resynchronize(last=last):
                return
            try:
                if self._compiled is None:
                    self._read_groups()
                else:
                    self._read_compiled(self._compiled)
            except InvalidBytes as bad:
                self._damaged = Loss(LossCause.NO_GROUP, (bad.why, self._forgotten + self._at))
                self._candidate = self._start + 1
            else:
                return

    def _read_groups(self) -> None:
        """Read groups, as far as there are bytes. Raises Bad."""
        data, node, at, start = self.data, self._node, self._at, self._start
        add_offset, add_shape, total = self.offsets.append, self.shapes.append, len(self.data)
        try:
            while True:
                size, following, split, shape = node[data[at]]
                while split:
                    size, following, split, shape = following[data[at + split]]
                at += size
                if shape is None:
                    node = following
                    continue
                if at > total:  # an element outside of groups is not complete
                    at -= size
                    break
                add_offset(start)
                add_shape(shape.number)
                start, node = at, following
        except IndexError:
            pass
        finally:
            self._node, self._at, self._start = node, at, start

    def _read_compiled(self, compiled: CompiledReading) -> None:
        """Read the same groups with the kernel. Raises Bad."""
        try:
            while True:
                self._at, self._start, self._node, unknown = compiled.read(
                    self.data, self._at, self._start, self._node
                )
                if unknown is None:
                    return
                compiled.learn(*unknown)
        finally:
            compiled.move(self.offsets, self.shapes)

    def _resynchronize(self, *, last: bool) -> bool:
        """Search for the next groups; return whether reading can resume."""
        assert self._damaged is not None
        while True:
            begin = self.data.find(_BEGIN, self._candidate)
            if begin < 0:
                self._candidate = len(self.data)
                if last:
                    self._lose_bytes(len(self.data), self._damaged)
                    self._damaged = None
                return False
            self._candidate = begin
            trusted = self._is_group(begin, last=last)
            if trusted is None:
                return False
            if trusted:
                self._lose_bytes(begin, self._damaged)
                self._damaged = None
                return True
            self._candidate = begin + 1

    def _is_group(self, begin: int, *, last: bool) -> bool | None:
        """Return whether groups begin here; None if more bytes are needed."""
        if begin == 0 and not self._forgotten and self.data.startswith(_RESET):
            return True  # all of the trace is here, however long the groups are that tell the state it begins with
        at = begin
        for count in range(_GROUPS_TO_TRUST):
            end = self._end_of(at)
            if isinstance(end, bool):
                return end
            if end is None:
                return count > 0 if last else None
            at = end
        return True

    def _end_of(self, begin: int) -> int | bool | None:
        """Return the end of the group that begins here; None: not yet known; False: there is no group."""
        data, node, at = self.data, self.automaton.root, begin
        if begin < len(data) and data[begin] != _BEGIN:
            return False
        try:
            while at - begin < _BYTES_TO_TRUST:
                size, node, split, shape = node[data[at]]
                while split:
                    size, node, split, shape = node[data[at + split]]
                at += size
                if shape is not None:
                    return at if shape.forms and not shape.problems else False
        except IndexError:
            return None
        except InvalidBytes:
            return False
        return False

    def _lose_bytes(self, end: int, why: Cause) -> None:
        if end > self._start:
            self.losses.append(Hole(len(self.offsets), self._start, end - self._start, why))
        self._start = self._at = end
        self._node = self.automaton.root


PIECE = 1 << 20  # bytes read between two reports of progress


class Flaw(NamedTuple):
    """A group that can be read, and breaks a rule."""

    group: int
    offset: int
    problem: GroupProblem


class TraceGroups:
    """All groups of a trace, fed in pieces of any size; each element outside of groups counts as one.

    Bytes that are not a group are in `losses`. Reading never fails, whatever the bytes. The bytes are kept, and 10 more
    for each group.
    """

    def __init__(self, parameters: TandemParameters, *, wrapped: bool = False) -> None:
        self.parameters = parameters
        self.automaton = Automaton(parameters.widths)
        self._framer = GroupFramer(self.automaton, wrapped=wrapped)
        self.data = self._framer.data
        self.offsets = self._framer.offsets
        """The offset of each group."""
        self.shapes = self._framer.shapes
        """The shape of each group, a number of `automaton.shapes`."""

    @classmethod
    def from_bytes(
        cls, data: bytes, parameters: TandemParameters, progress: Progress = silent, *, wrapped: bool = False
    ) -> "TraceGroups":
        """Return the groups of a whole trace. *wrapped*: as for `GroupFramer`. Raises only what *progress* raises."""
        trace = cls(parameters, wrapped=wrapped)
        for start in range(0, len(data), PIECE):
            progress("reading", start, len(data))
            trace.feed(data[start : start + PIECE])
        trace.finish()
        return trace

    def feed(self, data: bytes) -> None:
        """Add the next bytes."""
        self._framer.feed(data)

    def finish(self) -> None:
        """End the trace."""
        self._framer.finish()

    @property
    def pending(self) -> int:
        """The offset of the bytes that are in no group and no loss yet; see `GroupFramer.pending`."""
        return self._framer.pending

    def give_up(self, rest: bytes, why: Cause) -> None:
        """Treat everything after the end as lost."""
        self._framer.give_up(rest, why)

    def forget(self, stop: int, keep: int) -> int:
        """Drop the groups before *stop*; see `GroupFramer.forget`."""
        return self._framer.forget(stop, keep)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def losses(self) -> list[Hole]:
        """Bytes that are not a group, in order."""
        return self._framer.losses

    @property
    def accounting(self) -> Accounting:
        """What became of the bytes, once the trace is finished."""
        total, lost = len(self.data), self._framer.lost
        return Accounting(total, total - lost, 0, lost)

    def shape(self, number: int) -> GroupShape:
        """Return the shape of group *number*."""
        return self.automaton.shapes[self.shapes[number]]

    def group(self, number: int) -> Group:
        """Return group *number*, counted from 0. Raises IndexError."""
        if not 0 <= number < len(self.offsets):
            raise IndexError(f"group {number} of a trace of {len(self.offsets)}")
        offset, shape = self.offsets[number], self.shape(number)
        elements = tuple(self.elements(number))
        if shape.known:
            return Group(elements, shape.ending, offset, shape.reader.size + shape.end)
        size = 1 + sum(form.size for form, _ in self.automaton.forms_at(self.data, offset)) + shape.end
        return Group(elements, shape.ending, offset, size)

    def groups(self, start: int = 0, stop: int | None = None) -> Iterator[Group]:
        """Yield groups *start* to *stop* - 1."""
        stop = len(self) if stop is None else min(stop, len(self))
        return map(self.group, range(start, stop))

    def elements(self, number: int) -> list[Element]:
        """Return the elements of group *number*."""
        offset, shape = self.offsets[number], self.shape(number)
        if not shape.known:
            found = self.automaton.forms_at(self.data, offset)
            return [maker_of(form)(_field_numbers(form.reader.unpack_from(self.data, at))) for form, at in found]
        values = shape.reader.unpack_from(self.data, offset)
        if shape.has_bytes:
            values = _field_numbers(values)
        return [make(values[first:last]) for make, first, last in shape.makers]

    def flaws(self, first: int = 0) -> Iterator[Flaw]:
        """Yield the groups from *first* on that break a rule of the protocol, in order."""
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

    def problems(self, number: int) -> tuple[GroupProblem, ...]:
        """Return the rules that group *number* breaks."""
        shape = self.shape(number)
        if shape.known:
            return shape.problems
        forms = [form for form, _ in self.automaton.forms_at(self.data, self.offsets[number])]
        return problems_of(forms, Ending.EXPLICIT)


def _field_numbers(values: tuple[int | bytes, ...]) -> tuple[int, ...]:
    return tuple(int.from_bytes(value, "little") if isinstance(value, bytes) else value for value in values)
