"""The instructions of a trace as a history: what retired where, and what happened in between."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause, Note, NoteCause, Start, StartReason, Stop
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.reports import TimeOrder
from rvtrace_gdb.decode.tandem.effects import NOWHERE, TrapEffect
from rvtrace_gdb.decode.tandem.index import Break, Index
from rvtrace_gdb.decode.tandem.plausibility import LOOKAHEAD, Beliefs, PreviousGroup
from rvtrace_gdb.decode.tandem.protocol import Instr
from rvtrace_gdb.decode.tandem.trace import Flaw
from rvtrace_gdb.decode.tandem.traced_code import TracedCode
from rvtrace_gdb.support.errors import Progress, silent

_PIECE = 1 << 15  # groups taken at a time
_MOST_CODE = 1 << 20  # addresses whose code is remembered

_H = TypeVar("_H", bound=History)


class TandemHistoryBuilder:
    """Creates the history.

    groups  by position: the group of the instruction, or the one before which the gap is
    """

    def __init__(
        self,
        index: Index,
        program: Program,
        progress: Progress = silent,
        builder: HistoryBuilder | None = None,
        *,
        stop_at_error: bool = False,
    ) -> None:
        self._index, self._trace, self._progress = index, index.trace, progress
        self._builder = builder or HistoryBuilder()
        self._code = TracedCode(program, self._builder)
        self._mode: int | None = None
        self._was_reset = self._stopped = False
        self._stop_at_error = stop_at_error
        self._base = self._before = 0  # the byte, and the group, that are the first in `_trace`
        self._initialized: tuple[int, int] | None = None  # from which byte on, how often: more may follow
        self._order = TimeOrder()
        self._reset_at: int | None = None  # the byte of a reset; what follows says where it went on
        self._resuming = True
        self._stop = 0  # of the groups that are followed now
        self._last = PreviousGroup()  # of the groups before them
        self._is_unbelieved = False  # where the hart is before them
        self._beliefs = Beliefs(index, 0, (), self._last)
        self.groups = array("I")

    def build(self, kind: type[_H]) -> _H:
        """Return the history of all groups, an object of class *kind*. Raises only what *progress* raises."""
        self.follow(0)
        self.finish()
        return self._builder.finish(self._trace.accounting, kind)

    def renew(self, index: Index, base: int, before: int) -> None:
        """Continue with another index of the same trace, which begins at byte *base*, and *before* groups later."""
        self._index, self._base, self._before = index, base, before
        del self.groups[:]
        if self._code.is_full or len(index.code.words) > _MOST_CODE:
            self._code.forget()
            index.code.forget()

    def follow(self, first: int, *, more: bool = False, waits: bool = False) -> int:
        """Process the groups from *first* on; return the group before which it ended. *more*: others will follow them.

        *waits*: groups in doubt wait for those after them.
        """
        self._beliefs = Beliefs(self._index, first, list(self._trace.flaws(first)), self._last)
        self._stop = len(self._index.pcs)
        if waits:
            self._stop = next(
                (
                    group
                    for group in range(max(first, self._stop - LOOKAHEAD), self._stop)
                    if group in self._beliefs.waiting
                ),
                self._stop,
            )
        if self._is_unbelieved:
            self._forget_pc(first - 1)
        if not self._stopped and self._stop > first - (not more):
            self._follow(first, more=more)
        self._last = self._beliefs.last(self._stop, self._code.image)
        self._code.complete()
        return self._stop

    def _follow(self, first: int, *, more: bool) -> None:
        index = self._index
        self._resets = frozenset(index.resets)
        marks = self._marks(first)
        if first < self._stop:
            self._record_reset(index.origin(first))
        self._initialize(marks, first, more=more)
        at = first
        for group in sorted(marks):
            if group >= self._stop and more:
                break
            self._record_plain(at, group)
            for mark in marks[group]:
                if isinstance(mark, Break):
                    self._break(mark)
            if self._stopped:
                return
            if group < self._stop:
                self._marked(group, marks[group])
            at = group + 1
        self._record_plain(at, self._stop)

    def finish(self) -> None:
        """End the history: no more groups follow."""
        self._record_reset(NOWHERE)
        self._record_initialized()
        more = self._code.more_places()
        if more is not None:
            self._builder.event(EventKind.NOTE, self._base + len(self._trace.data), more)

    def _offset(self, group: int) -> int:
        return self._base + self._trace.offsets[group]

    def _initialize(self, marks: dict[int, list[object]], first: int, *, more: bool) -> None:
        """Record consecutive state initializations as one event, also if the trace comes in pieces."""
        last = self._stop
        runs = sorted((group, mark) for group, found in marks.items() for mark in found if isinstance(mark, int))
        if self._initialized is not None and runs and runs[0][0] == first:
            _, count = runs.pop(0)
            marks[first].remove(count)
            self._initialized = self._initialized[0], self._initialized[1] + count
            if more and first + count == last:
                return
        self._record_initialized()
        if more and runs and sum(runs[-1]) == last and not self._index.retired[last - 1]:
            group, count = runs[-1]
            marks[group].remove(count)
            self._initialized = self._offset(group), count

    def _record_initialized(self) -> None:
        if self._initialized is not None:
            offset, count = self._initialized
            self._initialized = None
            self._initialized_by(count, offset)

    def _initialized_by(self, count: int, offset: int) -> None:
        self._builder.event(EventKind.NOTE, offset, Note(NoteCause.INITIALIZED, (count,)))

    def _marks(self, start: int) -> dict[int, list[object]]:
        """Return the remarks on some groups, by number."""
        index, marks = self._index, dict[int, list[object]]()
        singles: list[Iterable[object]] = [index.breaks, index.traps, self._trace.flaws(start)]
        for items in singles:
            for item in items:
                assert isinstance(item, Break | TrapEffect | Flaw)
                marks.setdefault(item.group, []).append(item)
        columns = (index.registers.columns[state].groups for state in (csrs.PRIVILEGE, csrs.MTIME))
        for groups in (index.resets, *columns, index.origins):
            for group in groups:
                if group >= start:
                    marks.setdefault(group, [])
        for first, last in _consecutive(group for group in index.initializations if group < self._stop):
            marks.setdefault(first, []).append(last - first + 1)
        for group in self._beliefs.doubtful:
            if start <= group < self._stop:
                marks.setdefault(group, [])
        return marks

    def _marked(self, group: int, marks: list[object]) -> None:
        """Process a group that has remarks."""
        builder, offset = self._builder, self._offset(group)
        if group in self._resets:
            self._record_reset_at(group)
        for mark in marks:
            if isinstance(mark, Flaw):
                flaw = Note(NoteCause.FLAW, (self._before + group + 1, mark.problem.value))
                builder.event(EventKind.NOTE, offset, flaw)
            elif isinstance(mark, int):
                self._initialized_by(mark, offset)
        if group in self._beliefs.doubtful:
            self._doubtful(group)
        self._record_plain(group, group + 1)
        for mark in marks:
            if isinstance(mark, TrapEffect):
                self._record_trap(mark)
        self._states(group)

    def _doubtful(self, group: int) -> None:
        """Process a group next to damage: its instruction is not listed if too much contradicts its address."""
        index, beliefs = self._index, self._beliefs
        origin = index.origin(group)
        if not index.retired[group] or beliefs.believes(group, self._code.image):
            return
        index.retired[group] = 0
        self._forget_pc(group)
        if not self._resuming:
            length, loss = self._builder.position, Loss(LossCause.NOT_BELIEVED, (f"{origin:x}",))
            self._builder.gap(
                EventKind.LOSS, self._offset(group), Loss(LossCause.NO_ADDRESS) if origin == NOWHERE else loss
            )
            self._added(length, group)

    def _forget_pc(self, group: int) -> None:
        """Forget where a group that is not believed continued, unless what follows is in the program there."""
        index = self._index
        following = next((after for after in range(group + 1, self._stop) if index.retired[after]), self._stop)
        self._is_unbelieved = following == self._stop
        if following not in index.origins and not self._beliefs.agrees(following, self._code.image):
            index.pcs[group:following] = array("Q", [NOWHERE] * (following - group))

    def _record_reset_at(self, group: int) -> None:
        self._reset_at = self._offset(group)
        self._resuming = self._was_reset = True
        if group + 1 < len(self._index.pcs):
            self._record_reset(self._index.origin(group + 1))

    def _record_reset(self, following: int) -> None:
        """Record the reset. *following*: the address of the instruction after it."""
        if self._reset_at is not None:
            next_pc = None if following == NOWHERE else following
            self._builder.event(EventKind.SYNC, self._reset_at, Start(StartReason.RESET), next_pc=next_pc)
            self._reset_at = None

    def _record_trap(self, trapped: TrapEffect) -> None:
        offset = self._offset(trapped.group)
        last = trapped.epc if trapped.epc is not None else self._index.origin(trapped.group)
        beliefs = self._beliefs
        epc = last if last != NOWHERE and beliefs.origin(trapped.group, self._code.image) else None
        handler = trapped.handler if beliefs.handler(trapped.group) else None
        self._builder.event(EventKind.TRAP, offset, trapped.fact, last_pc=epc, next_pc=handler)

    def _states(self, group: int) -> None:
        """Record the privilege mode and the time after a group."""
        registers = self._index.registers
        self._enter_mode(registers.value(csrs.PRIVILEGE, group))
        column = registers.columns[csrs.MTIME].groups
        at = bisect_left(column, group)
        if at < len(column) and column[at] == group:
            now = registers.columns[csrs.MTIME].values[at]
            if not self._order.went_back and self._order.first_earlier((now,)) == 0:
                self._builder.event(EventKind.NOTE, self._offset(group), self._order.note(now))
            self._order.passed((now,))
            self._builder.time(now)

    def _enter_mode(self, mode: int | None) -> None:
        """Record that what follows runs in this privilege mode."""
        if mode != self._mode:
            self._mode = mode
            context = ProgramContext(mode)
            self._code.enter(context)
            self._builder.context(context)

    def _break(self, mark: Break) -> None:
        """Record what is missing before a group."""
        builder, offset = self._builder, self._base + mark.offset
        if isinstance(mark.cause, Note):
            builder.event(EventKind.NOTE, offset, mark.cause)
            return
        length = builder.position
        kind = EventKind.TRACE_OFF if isinstance(mark.cause, Stop) else EventKind.LOSS
        builder.gap(kind, offset, mark.cause)
        if self._stop_at_error and kind is EventKind.LOSS:
            builder.event(EventKind.NOTE, offset, Note(NoteCause.STOPPED_AT_LOSS))
            self._stopped = True
        self._added(length, mark.group)
        self._enter_mode(None)

    def _added(self, length: int, group: int) -> None:
        """Note that a gap may have got a position."""
        if self._builder.position > length:
            self.groups.append(group)
        self._resuming = True

    def _record_plain(self, start: int, stop: int) -> None:
        """Process groups without remarks, of which only the addresses of their instructions matter."""
        for first in range(start, stop, _PIECE):
            self._progress("following (groups)", first, len(self._index.pcs))
            self._retired(first, min(first + _PIECE, stop))

    def _retired(self, start: int, stop: int) -> None:
        """Record the instructions of some groups, in order."""
        index = self._index
        origins = index.pcs[start - 1 : stop - 1] if start else array("Q", [NOWHERE, *index.pcs[: stop - 1]])[:stop]
        if start in index.origins:
            origins[0] = index.origins[start]
        groups: range | list[int] = range(start, stop)
        if index.retired.count(1, start, stop) != stop - start:
            kept = [group for group in groups if index.retired[group]]
            origins, groups = array("Q", [origins[group - start] for group in kept]), kept
        if NOWHERE in origins:
            self._some(origins, groups)
        elif origins:
            self._record_run(origins, groups)

    def _some(self, origins: "array[int]", groups: range | list[int]) -> None:
        """Record instructions some of which are at unknown addresses."""
        begin = 0
        for end, origin in enumerate(origins):
            if origin == NOWHERE:
                self._record_run(origins[begin:end], groups[begin:end])
                begin = end + 1
                if not self._resuming:
                    length = self._builder.position
                    self._builder.gap(EventKind.LOSS, self._offset(groups[end]), Loss(LossCause.NO_ADDRESS))
                    self._added(length, groups[end])
        self._record_run(origins[begin:], groups[begin:])

    def _record_run(self, pcs: "array[int]", groups: range | list[int]) -> None:
        """Record consecutive instructions, in paths that are the same whenever the same instructions ran."""
        if not pcs:
            return
        if self._resuming:
            self._record_resume(pcs[0], groups[0])
        paths, pending, varying = self._code.paths, self._builder.in_place[0], self._index.code.varying

        def check(path: Path, block: tuple[int, ...], first: int) -> None:
            self._check_code(path, block, groups[first : first + len(block)])

        def code_at(block: tuple[int, ...], first: int) -> tuple[bytes, ...] | None:
            if varying.isdisjoint(block):
                return None
            return tuple(map(self._code_of, groups[first : first + len(block)]))

        if varying and not varying.isdisjoint(pcs):
            paths.record_varying(pcs, pending, check, code_at)
        else:
            paths.record(pcs, pending, check)
        self.groups.extend(groups)

    def _record_resume(self, pc: int, group: int) -> None:
        if not self._builder.position and not self._was_reset:
            self._builder.event(EventKind.SYNC, self._offset(group), Start(StartReason.BEGINNING), next_pc=pc)
        self._builder.resume(pc, self._offset(group))
        self._resuming = False

    def _code_of(self, group: int) -> bytes:
        """Return the instruction of a group that has one."""
        instr = next(element for element in self._trace.elements(group) if isinstance(element, Instr))
        return instr.word.to_bytes(instr.length, "little")

    def _check_code(self, path: Path, block: tuple[int, ...], groups: range | list[int]) -> None:
        """Compare the code that ran, as the trace has it, with the program's."""
        varying = self._index.code.varying
        for pc, group in zip(block, groups, strict=True):
            mismatch = self._code.check(path, pc, self._code_of(group), varies=pc in varying)
            if mismatch is not None:
                self._builder.event(EventKind.MISMATCH, self._offset(group), mismatch)


def _consecutive(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last of consecutive numbers."""
    first = last = -2
    for number in numbers:
        if number != last + 1:
            if first >= 0:
                yield first, last
            first = number
        last = number
    if first >= 0:
        yield first, last
