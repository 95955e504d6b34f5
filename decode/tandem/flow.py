"""The instructions of a trace as a history: what retired where, and what happened in between."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise

from decode.causes import trap_text
from decode.errors import CodeMissing
from decode.history import Context, EventKind, History, HistoryBuilder, Path
from decode.image import Image
from decode.streams import Program
from decode.tandem import csrs
from decode.tandem.framing import CUT_OFF, NO_BEGIN
from decode.tandem.group import Instr
from decode.tandem.index import UNTOLD_CAUSE, Break, Index, Trapped
from decode.tandem.steps import NOWHERE
from decode.tandem.trace import Flaw
from support.progress import Progress, silent

_PIECE = 1 << 15  # groups taken at a time
_LONGEST = 1 << 10  # instructions of one path
_NO_ADDRESS = "the address of an instruction is not told"


class Flow:
    """Makes the history.

    groups  by position: the group of the instruction, or before which the gap is
    """

    def __init__(self, index: Index, program: Program, progress: Progress = silent) -> None:
        self._index, self._trace, self._progress = index, index.trace, progress
        self._program, self._builder = program, HistoryBuilder()
        self._image = program.image_of(Context())
        self._known: dict[Image, dict[tuple[int, ...], Path]] = {}
        self._paths = self._known.setdefault(self._image, {})
        self._missing: dict[Image, dict[int, bytes]] = {}
        self._mismatches = 0
        self._mode: int | None = None
        self._resets = frozenset(index.resets)
        self._resuming = True
        self.groups = array("I")

    def build(self) -> History:
        """The history of all groups. Raises only what *progress* raises."""
        index, builder = self._index, self._builder
        marks = self._marks()
        at = 0
        for group in sorted(marks):
            self._plain(at, group)
            for mark in marks[group]:
                if isinstance(mark, Break):
                    self._break(mark)
            if group < len(index.pcs):
                self._marked(group, marks[group])
            at = group + 1
        self._plain(at, len(index.pcs))
        if self._mismatches > 1:
            text = f"{self._mismatches - 1} more places where the trace and {self._image.origin(0)} do not agree"
            builder.event(EventKind.NOTE, len(self._trace.data), text)
        for image, missing in self._missing.items():
            for start, code in _stretches(missing):
                image.add_code(start, code, "the trace")
        return builder.finish(self._trace.accounting)

    def _marks(self) -> dict[int, list[object]]:
        """What there is to say of some groups, by number."""
        index, marks = self._index, dict[int, list[object]]()
        singles: list[Iterable[object]] = [index.breaks, index.traps, self._trace.flaws()]
        for items in singles:
            for item in items:
                assert isinstance(item, Break | Trapped | Flaw)
                marks.setdefault(item.group, []).append(item)
        columns = (index.registers.columns[state].groups for state in (csrs.PRIVILEGE, csrs.MTIME))
        for groups in (index.resets, *columns, index.origins):
            for group in groups:
                marks.setdefault(group, [])
        for first, last in _runs(index.initializations):
            marks.setdefault(first, []).append(last - first + 1)
        return marks

    def _marked(self, group: int, marks: list[object]) -> None:
        """A group about which there is something to say."""
        builder, offset = self._builder, self._trace.offsets[group]
        if group in self._resets:
            self._reset(group)
        for mark in marks:
            if isinstance(mark, Flaw):
                builder.event(EventKind.NOTE, offset, f"group {group}: {mark.problem.value}")
            elif isinstance(mark, int):
                count = "a state initialization" if mark == 1 else f"{mark} state initializations"
                builder.event(EventKind.NOTE, offset, f"{count} from outside the hart")
        self._plain(group, group + 1)
        for mark in marks:
            if isinstance(mark, Trapped):
                self._trap(mark)
        self._states(group)

    def _reset(self, group: int) -> None:
        following = self._index.origin(group + 1) if group + 1 < len(self._index.pcs) else NOWHERE
        next_pc = None if following == NOWHERE else following
        self._builder.event(EventKind.SYNC, self._trace.offsets[group], "hart reset", next_pc=next_pc)
        self._resuming = True

    def _trap(self, trapped: Trapped) -> None:
        text = "trap, cause not told" if trapped.cause == UNTOLD_CAUSE else trap_text(trapped.cause, trapped.interrupt)
        offset = self._trace.offsets[trapped.group]
        last = trapped.epc if trapped.epc is not None else self._index.origin(trapped.group)
        epc = None if last == NOWHERE else last
        self._builder.event(EventKind.TRAP, offset, text, last_pc=epc, next_pc=trapped.handler)

    def _states(self, group: int) -> None:
        """The privilege mode and the time after a group."""
        registers = self._index.registers
        self._enter(registers.value(csrs.PRIVILEGE, group))
        column = registers.columns[csrs.MTIME].groups
        at = bisect_left(column, group)
        if at < len(column) and column[at] == group:
            self._builder.time(registers.columns[csrs.MTIME].values[at])

    def _enter(self, mode: int | None) -> None:
        """What follows runs in this privilege mode."""
        if mode != self._mode:
            self._mode = mode
            context = Context(mode)
            self._image = self._program.image_of(context)
            self._paths = self._known.setdefault(self._image, {})
            self._builder.context(context)

    def _break(self, mark: Break) -> None:
        """What is missing before a group."""
        builder = self._builder
        if mark.why in (CUT_OFF, NO_BEGIN):
            builder.event(EventKind.NOTE, mark.offset, mark.why)
            return
        length = builder.position
        untraced = self._trace.parameters.dialect.untraced_below and not mark.loss
        kind = EventKind.TRACE_OFF if untraced else EventKind.LOSS
        builder.gap(kind, mark.offset, mark.why)
        self._added(length, mark.group)
        self._enter(None)

    def _added(self, length: int, group: int) -> None:
        """A gap may have got a position."""
        if self._builder.position > length:
            self.groups.append(group)
        self._resuming = True

    def _plain(self, start: int, stop: int) -> None:
        """Groups about which there is nothing to say but where their instructions were."""
        for first in range(start, stop, _PIECE):
            self._progress("following groups", first, len(self._index.pcs))
            self._retired(first, min(first + _PIECE, stop))

    def _retired(self, start: int, stop: int) -> None:
        """The instructions of some groups, in order."""
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
            self._run(origins, groups)

    def _some(self, origins: "array[int]", groups: range | list[int]) -> None:
        """Instructions of which some are nobody knows where."""
        begin = 0
        for end, origin in enumerate(origins):
            if origin == NOWHERE:
                self._run(origins[begin:end], groups[begin:end])
                begin = end + 1
                if not self._resuming:
                    length = self._builder.position
                    self._builder.gap(EventKind.LOSS, self._trace.offsets[groups[end]], _NO_ADDRESS)
                    self._added(length, groups[end])
        self._run(origins[begin:], groups[begin:])

    def _run(self, pcs: "array[int]", groups: range | list[int]) -> None:
        """Instructions that ran one after the other, in paths that are the same whenever the same ran."""
        if not pcs:
            return
        if self._resuming:
            self._resume(pcs[0], groups[0])
        cuts = [i for i, (pc, following) in enumerate(pairwise(pcs), 1) if not 0 < following - pc <= 4]
        paths, append, begin = self._paths, self._builder.append, 0
        for end in (*cuts, len(pcs)):
            for first in range(begin, end, _LONGEST):
                last = min(end, first + _LONGEST)
                block = tuple(pcs[first:last])
                path = paths.get(block)
                if path is None:
                    path = paths[block] = Path([block])
                    self._check(block, groups[first:last])
                append(path)
            begin = end
        self.groups.extend(groups)

    def _resume(self, pc: int, group: int) -> None:
        if not self._builder.position and not self._index.resets:
            self._builder.event(EventKind.SYNC, self._trace.offsets[group], "the trace begins", next_pc=pc)
        self._builder.resume(pc)
        self._resuming = False

    def _check(self, block: tuple[int, ...], groups: range | list[int]) -> None:
        """The code that ran, as the trace has it, held against the program's; what that does not have, it gets."""
        missing = self._missing.setdefault(self._image, {})
        for pc, group in zip(block, groups, strict=True):
            instr = next(element for element in self._trace.elements(group) if isinstance(element, Instr))
            code = instr.word.to_bytes(instr.length, "little")
            try:
                found = self._image.read(pc, instr.length)
            except CodeMissing:
                missing[pc] = code
                continue
            if found != code:
                self._mismatch(pc, group, code, found)

    def _mismatch(self, pc: int, group: int, code: bytes, found: bytes) -> None:
        self._mismatches += 1
        if self._mismatches == 1:
            self._builder.event(
                EventKind.MISMATCH,
                self._trace.offsets[group],
                f"trace does not match {self._image.origin(pc)} at 0x{pc:x}: the instruction 0x{code[::-1].hex()} ran,"
                f" and 0x{found[::-1].hex()} is there: is this the program that ran?",
            )


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """The first and last of numbers that follow one another."""
    first = last = -2
    for number in numbers:
        if number != last + 1:
            if first >= 0:
                yield first, last
            first = number
        last = number
    if first >= 0:
        yield first, last


def _stretches(code: dict[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Instructions by address as pieces as long as possible."""
    start, found = -1, bytearray()
    for pc, data in sorted(code.items()):
        if found and pc == start + len(found):
            found += data
        else:
            if found:
                yield start, bytes(found)
            start, found = pc, bytearray(data)
    if found:
        yield start, bytes(found)
