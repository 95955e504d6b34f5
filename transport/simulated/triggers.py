"""The trigger module: hardware breakpoints and watchpoints, and places that switch or mark the trace.

Source: RISC-V Debug Specification 1.0, chapter 5; only match control triggers of type 2 (5.7.11, mcontrol), on
addresses. What a debugger writes reads back exactly as far as the fields exist; the others read as zero. Actions 2 to 4
are those of the RISC-V Trace Control Interface 1.0, "Debug Trigger Module". All take effect before the instruction.
"""

from collections.abc import Callable
from enum import IntEnum, IntFlag

_TYPE_MCONTROL = 2
_HIT = 1 << 20
_ACTION_SHIFT, _MATCH_SHIFT = 12, 7
_M, _U = 1 << 6, 1 << 3
_MATCHES = (0, 1, 2, 3)  # equal, NAPOT, greater or equal, less
TINFO = 1 << _TYPE_MCONTROL


class Access(IntFlag):
    """What a trigger looks at; the values are the bits of mcontrol."""

    LOAD = 1
    STORE = 2
    EXECUTE = 4


class Action(IntEnum):
    """What a trigger does (mcontrol.action)."""

    BREAKPOINT = 0
    DEBUG_MODE = 1
    TRACE_ON = 2
    TRACE_OFF = 3
    TRACE_NOTIFY = 4


class Trigger:
    """One trigger: tdata1 without its type field, and tdata2."""

    def __init__(self) -> None:
        self.control = 0
        self.compare = 0
        self.debug_only = False

    @property
    def action(self) -> Action:
        return Action(self.control >> _ACTION_SHIFT & 0xF)

    def watches(self, access: Access) -> bool:
        return bool(self.control & access) and bool(self.control & (_M | _U))

    def in_mode(self, privilege: int) -> bool:
        return bool(self.control & (_M if privilege == 3 else _U))

    def matches(self, address: int, size: int) -> bool:
        """Whether any byte of the access fits tdata2, in the way the match field says."""
        match self.control >> _MATCH_SHIFT & 0xF:
            case 1:
                mask = ~(self.compare ^ (self.compare + 1))
                return any((address + i) & mask == self.compare & mask for i in range(size))
            case 2:
                return address + size > self.compare
            case 3:
                return address < self.compare
            case _:
                return address <= self.compare < address + size

    def hit(self) -> None:
        self.control |= _HIT


class TriggerModule:
    """`count` triggers behind tselect, tdata1, tdata2. `changed` is called when compiled code no longer fits them."""

    def __init__(self, xlen: int, count: int, changed: Callable[[], None]) -> None:
        self._xlen = xlen
        self._changed = changed
        self._triggers = [Trigger() for _ in range(count)]
        self.select = 0
        self.watched = Access(0)
        """The kinds of access any trigger looks at."""

    def reset(self) -> None:
        self._triggers = [Trigger() for _ in self._triggers]
        self.select = 0
        self._update()

    def write_select(self, value: int) -> None:
        """tselect keeps its value when there is no such trigger (5.7.1)."""
        if value < len(self._triggers):
            self.select = value

    def read_tdata1(self) -> int:
        trigger = self._triggers[self.select]
        top = _TYPE_MCONTROL << 1 | trigger.debug_only
        return top << (self._xlen - 5) | trigger.control

    def write_tdata1(self, value: int, debug: bool) -> None:
        trigger = self._triggers[self.select]
        if trigger.debug_only and not debug:
            return
        trigger.debug_only = bool(value >> (self._xlen - 5) & 1) and debug
        trigger.control = value & (_HIT | _M | _U | Access.LOAD | Access.STORE | Access.EXECUTE)
        action = value >> _ACTION_SHIFT & 0xF
        if action in tuple(Action) and (action != Action.DEBUG_MODE or trigger.debug_only):
            trigger.control |= action << _ACTION_SHIFT
        if value >> _MATCH_SHIFT & 0xF in _MATCHES:
            trigger.control |= value & 0xF << _MATCH_SHIFT
        self._update()

    def read_tdata2(self) -> int:
        return self._triggers[self.select].compare

    def write_tdata2(self, value: int, debug: bool) -> None:
        trigger = self._triggers[self.select]
        if not trigger.debug_only or debug:
            trigger.compare = value
            self._update()

    def fitting(self, access: Access, address: int, size: int, privilege: int | None = None) -> list[Trigger]:
        """The triggers this access sets off (in any privilege when None)."""
        return [
            trigger
            for trigger in self._triggers
            if trigger.watches(access)
            and (privilege is None or trigger.in_mode(privilege))
            and trigger.matches(address, size)
        ]

    def _update(self) -> None:
        self.watched = Access(0)
        for access in Access:
            if any(trigger.watches(access) for trigger in self._triggers):
                self.watched |= access
        self._changed()
