"""The trigger module of the simulated hart, and what its triggers do.

Triggers are hardware breakpoints and watchpoints, and places that switch or mark the trace: match control triggers of
type 2 (mcontrol), on addresses. What a debugger writes reads back exactly as far as the fields exist; the others read
as zero. All take effect before the instruction.

Sources: RISC-V Debug Specification 1.0, chapter 5, 5.7 (5.7.11); actions 2 to 4 of triggers are those of the RISC-V
Trace Control Interface 1.0, "Debug Trigger Module".
"""

from collections.abc import Callable
from enum import IntEnum, IntFlag
from typing import Protocol

from rvtrace_gdb.transport.simulated.hart.block import (
    BREAKPOINT,
    DebugCause,
    DebugEntry,
    HartBlock,
    HartTrap,
    TraceTrigger,
)

_TYPE_MCONTROL = 2
_HIT = 1 << 20
_ACTION_SHIFT, _MATCH_SHIFT = 12, 7
_M, _U = 1 << 6, 1 << 3
_MATCHES = (0, 1, 2, 3)  # equal, NAPOT, greater or equal, less
TINFO = 1 << _TYPE_MCONTROL


class TriggerAccess(IntFlag):
    """The kinds of access that a trigger watches; the values are the bits of mcontrol."""

    LOAD = 1
    STORE = 2
    EXECUTE = 4


class TriggerAction(IntEnum):
    """The action of a trigger (mcontrol.action)."""

    BREAKPOINT = 0
    DEBUG_MODE = 1
    TRACE_ON = 2
    TRACE_OFF = 3
    TRACE_NOTIFY = 4


class HartTrigger:
    """One trigger: tdata1 without its type field, and tdata2."""

    def __init__(self) -> None:
        self.control = 0
        self.compare = 0
        self.debug_only = False

    @property
    def action(self) -> TriggerAction:
        return TriggerAction(self.control >> _ACTION_SHIFT & 0xF)

    def watches(self, access: TriggerAccess) -> bool:
        return bool(self.control & access) and bool(self.control & (_M | _U))

    def in_mode(self, privilege: int) -> bool:
        return bool(self.control & (_M if privilege == 3 else _U))

    def matches(self, address: int, size: int) -> bool:
        """Return whether any byte of the access matches tdata2, in the way the match field selects."""
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


class TriggerCsrs:
    """`count` triggers, which tselect, tdata1 and tdata2 access. `changed` is called when compiled code has to be
    replaced.
    """

    def __init__(self, xlen: int, count: int, changed: Callable[[], None]) -> None:
        self._xlen = xlen
        self._changed = changed
        self._triggers = [HartTrigger() for _ in range(count)]
        self.select = 0
        self.watched = TriggerAccess(0)
        """The kinds of access any trigger looks at."""

    def reset(self) -> None:
        self._triggers = [HartTrigger() for _ in self._triggers]
        self.select = 0
        self._update()

    def write_select(self, value: int) -> None:
        """Write tselect, which keeps its value when there is no such trigger (5.7.1)."""
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
        trigger.control = value & (_HIT | _M | _U | TriggerAccess.LOAD | TriggerAccess.STORE | TriggerAccess.EXECUTE)
        action = value >> _ACTION_SHIFT & 0xF
        if action in tuple(TriggerAction) and (action != TriggerAction.DEBUG_MODE or trigger.debug_only):
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

    def fitting(
        self, access: TriggerAccess, address: int, size: int, privilege: int | None = None
    ) -> list[HartTrigger]:
        """Return the triggers that this access fires (in any privilege when None)."""
        return [
            trigger
            for trigger in self._triggers
            if trigger.watches(access)
            and (privilege is None or trigger.in_mode(privilege))
            and trigger.matches(address, size)
        ]

    def _update(self) -> None:
        self.watched = TriggerAccess(0)
        for access in TriggerAccess:
            if any(trigger.watches(access) for trigger in self._triggers):
                self.watched |= access
        self._changed()


class HartWithTriggers(Protocol):
    """The part of the hart that its triggers use."""

    privilege: int
    triggers: TriggerCsrs
    block: HartBlock
    position: int

    @property
    def now(self) -> int: ...

    @property
    def takes_breakpoints(self) -> bool:
        """Whether a breakpoint exception may be raised: not in a handler (5.4)."""


class TriggerEffects:
    """What triggers that fire do to the hart and its trace.

    trace_action  called with the action (2 to 4) of each trigger that acts on the trace, while `Hart.pc` is what it
                  fired at
    """

    def __init__(self, hart: HartWithTriggers) -> None:
        self._hart = hart
        self.trace_action: Callable[[int], None] = lambda action: None
        self._fired_at = (-1, 0)  # `Hart.now` and pc when triggers last had their effect on the trace,
        self._fired: list[HartTrigger] = []  # and which ones

    def fire(self, access: TriggerAccess, address: int, nbytes: int) -> None:
        """Do what the matching triggers demand: act on the trace (once), enter Debug Mode, or trap."""
        hart = self._hart
        fitting = hart.triggers.fitting(access, address, nbytes, hart.privilege)
        self._fire_on_trace([trigger for trigger in fitting if trigger.action >= TriggerAction.TRACE_ON])
        for trigger in fitting:
            if trigger.action == TriggerAction.DEBUG_MODE:
                trigger.hit()
                raise DebugEntry(DebugCause.TRIGGER)
        for trigger in fitting:
            if trigger.action == TriggerAction.BREAKPOINT and hart.takes_breakpoints:
                trigger.hit()
                raise HartTrap(BREAKPOINT, address)

    def _fire_on_trace(self, fitting: list[HartTrigger]) -> None:
        """Raise TraceTrigger for triggers that act on the trace. The instruction is executed again after that, and
        these triggers do not act on it twice.
        """
        here = self._hart.now, self._hart.block.pcs[self._hart.position]
        if fitting and self._fired_at != here:
            self._fired_at, self._fired = here, []
        due = [trigger for trigger in fitting if trigger not in self._fired]
        if due:
            self._fired += due
            for trigger in due:
                trigger.hit()
            raise TraceTrigger(tuple(trigger.action for trigger in due))

    def act_on_trace(self, trigger: TraceTrigger) -> None:
        """Let the trace know of the triggers that fired."""
        for action in trigger.actions:
            self.trace_action(action)
