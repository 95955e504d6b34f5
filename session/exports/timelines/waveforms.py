"""The signals of a hart, as waveforms have them: what is known at each instruction, and x where nothing is.

In a gap every signal is unknown, and `function` says why. Where a loss was noticed whose place is not known, `missing`
alone is set. A trap is marked at the first instruction of its handler, as `intr` is in RVVI.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.missing import placeless_losses
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.exports.missing import cause
from rvtrace_gdb.session.exports.profiles.stacks import NO_SYMBOL
from rvtrace_gdb.session.exports.timelines.waveform_axis import WaveformAxis
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable

UNKNOWN = "x"
END = "[end]"
"""What `function` says behind the last instruction that is written."""
_AT_ONCE = 1 << 12
_INTERRUPT = {TrapKind.INTERRUPT: 1, TrapKind.EXCEPTION: 0}
_FIRST = itemgetter(0)
SignalValue = int | str
"""The value of a signal, in a text signal its text; "x": not known."""


class Signal(NamedTuple):
    """*bits*: its width, 0: text; -1: that of addresses."""

    name: str
    bits: int


SIGNALS = (
    Signal("number", 64), Signal("pc", -1), Signal("function", 0), Signal("privilege", 2), Signal("trap", 1),
    Signal("interrupt", 1), Signal("cause", -1), Signal("missing", 1),
)  # fmt: skip
"""number: of the instruction, as listings have it. privilege: 0 U, 1 S, 3 M. trap: the first instruction of a handler;
interrupt: that of an interrupt; cause: that of the last trap. missing: here the trace lacks something.
"""


class Levels(NamedTuple):
    """At *place* of the axis signals of a hart change: by their index in `SIGNALS`. *number*: of the hart in the
    file.
    """

    place: int
    number: int
    changes: tuple[tuple[int, SignalValue], ...]


class HartSignals:
    """The signals of a hart. *number*: of the hart in the file."""

    def __init__(self, trace: ExportedTrace, axis: WaveformAxis, number: int) -> None:
        self._trace, self._history, self._axis, self._number = trace, trace.history, axis, number
        self._names: dict[tuple[int, int], str] = {}
        part = trace.part
        self._contexts = [(0, trace.history.context_at(part.start)), *trace.history.contexts]
        events = trace.history.events_between(part.start, part.stop)
        self._traps = {event.position: event.fact for event in events if event.kind is EventKind.TRAP}
        self._lost = {it.begin for it in placeless_losses(trace.history)}
        self._cause: SignalValue = UNKNOWN

    def levels(self, progress: Progress) -> Iterator[Levels]:
        """Yield what changes, in order. Raises what *progress* raises."""
        part, history = self._trace.part, self._history
        special = self._special_positions()
        image, named, place = self._trace.program.base, "", 0
        pcs = history.pcs(part.start, part.stop)
        for position, pc, place in zip(part, pcs, self._axis.places(self._trace), strict=True):
            done = position - part.start
            if done % _AT_ONCE == 0:
                progress("writing (instructions)", done, len(part))
            others: tuple[tuple[int, SignalValue], ...] = ()
            if position in special:
                image = self._trace.program.image_of(history.context_at(position))
                others = self._others(position, is_gap=pc == GAP)
            if pc == GAP:
                named = f"[{cause(history.gap_at(position))}]"
                yield Levels(place, self._number, ((0, position + 1), (1, UNKNOWN), (2, named), *others))
                continue
            name = self._names.get((id(image), pc))
            if name is None:
                symbol = image.symbol(pc)
                name = self._names[id(image), pc] = NO_SYMBOL if symbol is None else printable(symbol[0])
            if name != named:
                named, others = name, ((2, name), *others)
            yield Levels(place, self._number, ((0, position + 1), (1, pc), *others))
        ends = tuple((index, UNKNOWN if signal.bits else END) for index, signal in enumerate(SIGNALS))
        yield Levels(place + 1, self._number, ends)

    def _special_positions(self) -> set[int]:
        """Return the positions at which other signals than those of the instruction may change."""
        part = self._trace.part
        here = {part.start, *(position for position, _ in self._contexts), *self._traps, *self._lost}
        here.update(position for position in self._history.gap_positions if position in part)
        return {*here, *(position + 1 for position in here)}

    def _others(self, position: int, *, is_gap: bool) -> tuple[tuple[int, SignalValue], ...]:
        """Return the signals of privilege, traps and losses at a position."""
        if is_gap:
            self._cause = UNKNOWN
            return (3, UNKNOWN), (4, UNKNOWN), (5, UNKNOWN), (6, UNKNOWN), (7, 1)
        mode = self._contexts[bisect_right(self._contexts, position, key=_FIRST) - 1][1].prv
        trap, interrupt = self._traps.get(position), 0
        level: SignalValue = interrupt
        if isinstance(trap, Trap):
            level = _INTERRUPT.get(trap.kind, UNKNOWN)
            self._cause = UNKNOWN if trap.cause is None else trap.cause
        return (
            (3, UNKNOWN if mode is None else mode), (4, int(trap is not None)), (5, level), (6, self._cause),
            (7, int(position in self._lost)),
        )  # fmt: skip
