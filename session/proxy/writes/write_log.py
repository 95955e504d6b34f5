"""What gdb writes to a target, halt by halt, and what was there before: the history of a trace shows neither.

`WriteLog` is told of the packets that pass (`session.proxy.live_target`), of stops and of resumptions. While a trace
is recorded, each halt becomes a `DebuggerWrites`. A software breakpoint of the stub's (Z0) is not a write: it is there
while the program runs, and its place is noted. Commands of `monitor` may have done anything.

In the halt at which a trace ends, what gdb writes is not what the program left: the old contents are kept.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.rows.answers import OFF_HART
from rvtrace_gdb.session.capture.model import DebuggerWrites
from rvtrace_gdb.support.extents import Extent

StubHart = int | None
"""None: the only one of a stub that has no threads."""
_STREAK = 64  # halts at which nothing was written that are kept one by one, at either end of a streak
_MOST_HALTS = 4096
_MOST_BYTES = 1 << 20
_MOST_UNKEPT = 1 << 16
_ANY_HART = (None, OFF_HART)
"""What may be any hart, or a task that is on none."""


class _EndedHalt(NamedTuple):
    """A halt that has ended. *pcs*: where harts were resumed, as far as known; *resumed*: those that were, None: all.

    *counted*: so many halts in a row, 0: nobody knows how many.
    """

    pcs: Mapping[StubHart, int]
    resumed: frozenset[StubHart] | None
    registers: Mapping[StubHart, Mapping[int, int]] = {}
    memory: tuple[tuple[int, bytes], ...] = ()
    unknown: bool = False
    breakpoints: tuple[Extent, ...] = ()
    counted: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether nothing was written, and the halt was counted."""
        return not self.unknown and not self.memory and not any(self.registers.values()) and self.counted > 0

    def is_like(self, other: "_EndedHalt") -> bool:
        same = (self.resumed, self.breakpoints) == (other.resumed, other.breakpoints)
        return same and self.is_plain and other.is_plain

    @property
    def size(self) -> int:
        return sum(len(data) for _, data in self.memory)

    @property
    def harts(self) -> set[StubHart]:
        """The harts that gdb had to do with."""
        return {*self.pcs, *self.registers, *(self.resumed or ())}

    def writes_of(self, hart: int, key: StubHart) -> DebuggerWrites:
        """Return what was written to a hart, which is called *key* here."""
        counted = self.counted if self.resumed is None or key in self.resumed else 0
        pc = self.pcs.get(key) if counted else None
        registers = self.registers.get(key, {})
        unknown = self.unknown or any(it != key and it in _ANY_HART for it in self.registers)
        return DebuggerWrites(hart, pc, registers, self.memory, unknown, self.breakpoints, counted)


class KeptWrites(NamedTuple):
    """What was in the registers and the bytes of memory that gdb has written in a halt, None: not known."""

    registers: Mapping[int, int | None]
    memory: Mapping[int, int | None]


_GAP = _EndedHalt({}, None, unknown=True, counted=0)
"""Nobody knows what happened, and how often the harts were halted."""
_RAN = _EndedHalt({}, None, unknown=True)
"""The harts ran when the trace was started: that is where its list begins."""


class _CurrentHalt:
    """What was written since the harts were halted last.

    size           bytes of memory that were written
    unknown        something may have been written, and nobody knows what
    uncounted      nobody knows how often the harts were halted meanwhile
    old_memory, old_registers  what was there before it was written first, None: not known
    unkept         bytes of which nobody knows what was there
    """

    def __init__(self) -> None:
        self.registers: dict[StubHart, dict[int, int]] = {}
        self.memory: list[tuple[int, bytes]] = []
        self.size = 0
        self.unknown = self.uncounted = False
        self.old_memory: dict[int, int | None] = {}
        self.old_registers: dict[StubHart, dict[int, int | None]] = {}
        self.unkept = 0


class WriteLog:
    """The writes of one gdb. It is used in the proxy's thread, and by requests."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._halts: list[_EndedHalt] = []
        self._kept = 0  # bytes in them
        self._streak = 0  # how many plain halts that are alike are the newest
        self.recording = False
        """A trace is recorded."""
        self._at_end = False  # the trace was ended in this halt
        self.inserted: tuple[Extent, ...] = ()
        """The memory of the software breakpoints that the stub has in it now."""
        self.version = 0
        """Changes with everything that is written and resumed."""
        self._begin_halt()

    def _begin_halt(self) -> None:
        self._halt = _CurrentHalt()
        self.version += 1

    # The trace

    def begin(self, *, is_running: bool, is_known: bool = True) -> None:
        """Note that a trace is started. *is_known*: now, and gdb is connected here; else it may have written before."""
        with self._guard:
            self.recording, self._at_end = True, False
            self._halts, self._streak, self._kept = [], 0, 0
            self._begin_halt()
            if not is_known:
                self._halts.append(_GAP)
            elif is_running:
                self._halts.append(_RAN)

    def end(self) -> None:
        """Note that the trace is ended. Its list stays."""
        with self._guard:
            self._at_end, self.recording = self.recording or self._at_end, False

    def written(self, harts: Sequence[int]) -> tuple[DebuggerWrites, ...]:
        """Return the list of each of the harts that are traced."""
        with self._guard:
            halts = list(self._halts)
        seen = set().union(*(halt.harts for halt in halts))
        if len(harts) == 1 and not seen - {None}:
            return tuple(halt.writes_of(harts[0], None) for halt in halts)
        return tuple(halt.writes_of(hart, hart) for hart in harts if hart in seen for halt in halts)

    # The halt

    @property
    def keeps(self) -> bool:
        """Whether old contents are to be kept: what the hart has now is where a trace ends."""
        return self.recording or self._at_end

    def wrote_register(self, hart: StubHart, number: int, value: int) -> None:
        """Note that a register was written; *number* is that of the Debug Specification."""
        with self._guard:
            self._halt.registers.setdefault(hart, {})[number] = value
            self.version += 1

    def wrote_memory(self, address: int, content: bytes) -> None:
        """Note that memory was written."""
        with self._guard:
            self._halt.size += len(content)
            if self._halt.size > _MOST_BYTES:
                self._halt.unknown = True
                self._halt.memory.clear()
            elif content:
                self._halt.memory.append((address, content))
            self.version += 1

    def wrote_unknown(self, *, may_have_run: bool = False) -> None:
        """Note that something may have been written, and nobody knows what. *may_have_run*: and harts were resumed."""
        with self._guard:
            self._halt.unknown = True
            self._halt.uncounted = self._halt.uncounted or may_have_run
            if may_have_run:
                self._at_end = False
            self.version += 1

    def keep_register(self, hart: StubHart, number: int, old: int | None) -> None:
        """Keep what a register held before it was written first. *old*: None if it could not be read."""
        with self._guard:
            self._halt.old_registers.setdefault(hart, {}).setdefault(number, old)

    def keeps_register(self, hart: StubHart, number: int | None = None) -> bool:
        """Return whether that is kept; without a *number*, that of any register."""
        if number is None:
            return hart in self._halt.old_registers
        return number in self._halt.old_registers.get(hart, ())

    def keep_memory(self, address: int, size: int, old: bytes) -> None:
        """Keep what memory held before it was written first. *old*: as much as could be read."""
        with self._guard:
            self._halt.unkept += size - len(old)
            if self._halt.unkept > _MOST_UNKEPT:
                self._halt.old_memory.clear()
                return
            for at in range(size):
                self._halt.old_memory.setdefault(address + at, old[at] if at < len(old) else None)

    def kept(self, hart: int) -> KeptWrites | None:
        """Return what a hart, and memory, held before gdb wrote in this halt; None: anything may have changed."""
        with self._guard:
            unkept = not self.keeps and bool(self._halt.registers or self._halt.memory)
            if self._halt.unknown or unkept or self._halt.unkept > _MOST_UNKEPT:
                return None
            registers = self._halt.old_registers.get(hart) or self._halt.old_registers.get(None) or {}
            inserted = {at for begin, size in self.inserted for at in range(begin, begin + size)}
            return KeptWrites(dict(registers), {**self._halt.old_memory, **dict.fromkeys(inserted)})

    def written_registers(self, hart: StubHart) -> set[int]:
        """Return which registers were written in this halt."""
        return set(self._halt.registers.get(hart, ()))

    # Its end

    def resumed(self, pcs: Mapping[StubHart, int], resumed: frozenset[StubHart] | None = None) -> None:
        """Note that harts (None: all) are resumed at *pcs*, with the breakpoints that are *inserted*."""
        with self._guard:
            now = self._halt
            halt = _EndedHalt(
                pcs=pcs,
                resumed=resumed,
                registers=now.registers,
                memory=() if now.unknown else tuple(joined(now.memory)),
                unknown=now.unknown,
                breakpoints=self.inserted,
                counted=0 if now.uncounted else 1,
            )
            self._at_end = False
            if self.recording:
                self._add_halt(halt)
            self._begin_halt()

    def lost_sight(self) -> None:
        """Note that from here on nobody knows what happens to the target: gdb has disconnected, or restarts it."""
        with self._guard:
            self._at_end = False
            if self.recording and self._halts[-1:] != [_GAP]:
                self._add_halt(_GAP)
            self._begin_halt()
            self._halt.unknown = True  # what was written in this halt until now

    def _add_halt(self, halt: _EndedHalt) -> None:
        halts = self._halts
        self._streak = self._streak + 1 if halts and halt.is_like(halts[-1]) else 1
        halts.append(halt)
        self._kept += halt.size
        if self._streak > 2 * _STREAK:  # what is between both ends of the streak becomes one
            oldest = halts.pop(-_STREAK - 1)
            before = halts[-_STREAK - 1]
            halts[-_STREAK - 1] = oldest._replace(counted=oldest.counted + before.counted)
        if len(halts) > _MOST_HALTS or self._kept > 4 * _MOST_BYTES:
            self._halts = [_GAP, *halts[-(len(halts) // 2) or 1 :]]
            self._kept = sum(it.size for it in self._halts)


def joined(writes: Sequence[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return what writes leave behind, one after the other: disjoint stretches in increasing order."""
    found = sorted(_merged(writes))
    if all(begin + len(data) < following for (begin, data), (following, _) in pairwise(found)):
        return found
    content: dict[int, int] = {}
    for address, data in writes:
        content.update(enumerate(data, address))
    return list(_merged([(address, bytes([content[address]])) for address in sorted(content)]))


def _merged(writes: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the writes, those that follow upon the one before as one with it."""
    begin, parts, end = 0, list[bytes](), None
    for address, data in writes:
        if address != end and parts:
            yield begin, b"".join(parts)
            parts = []
        if not parts:
            begin = address
        parts.append(data)
        end = address + len(data)
    if parts:
        yield begin, b"".join(parts)
