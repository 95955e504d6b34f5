"""The call stack in the past, where no register but pc is known: the trace tells who called whom.

gdb asks for one frame after the other, and may ask at each instruction of a step. Therefore the session gives several
at once, over its own pipe: a packet to the target would end the frames that gdb is just making. In each frame the
register trace_pos says which frame it is: it is the number of the call that was made in it.

A tandem trace tells registers and memory, too. Frames whose callers gdb's own unwinder then finds are left to it; the
session knows which (`session.unwinding`). trace_pos stays the same in their callers, which are told apart by pc and sp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Optional

import gdb
import gdb.unwinder

from rvtrace_gdb.gdbext.replay import connection, partial_values, position
from rvtrace_gdb.gdbext.tracer import selected_hart, tracer

NAME = "rvtrace"
FIRST, MORE = 8, 256  # frames asked for at once: most steps need two
_TOP = 0xFFF0_0000  # of the stack that there would be; no program's stack is there
_FRAME = 16
_MIDDLE = 1 << 20  # levels may be negative: the caller of what ran first was not seen
_KEPT = 64
_SP = 2


class Frame(NamedTuple):
    """A row of `rpc.replay`. *number*: of the call made in it; None where that is not known, as with *function*.

    Of a tandem trace: *native*, it is left to gdb's unwinder; *sp* of the caller; *saved*, the caller's registers.
    """

    pc: int
    function: int | None
    level: int
    number: int | None
    kind: str
    native: bool = False
    sp: int | None = None
    saved: tuple[tuple[int, int], ...] = ()


class _Stack:
    """The frames at a number, fetched as they are asked for."""

    def __init__(self, hart: int | None, number: int, pc: int) -> None:
        self._hart, self._number, self._pc = hart, number, pc
        self.frames: list[Frame] = []
        self._more = True

    def frame(self, i: int) -> Frame | None:
        """The *i*-th frame, 0 the innermost; None where there is none."""
        while self._more and len(self.frames) <= i:
            self._fetch(FIRST if not self.frames else MORE)
        return self.frames[i] if i < len(self.frames) else None

    def _fetch(self, count: int) -> None:
        first = len(self.frames)
        place = {"thread_hart": self._hart, "number": self._number, "pc": self._pc}
        found = tracer().request("frames", first=first, count=count, **place)
        self.frames += (Frame(*row) for row in found["frames"])
        self._more = found["more"] and len(self.frames) > first


_Key = tuple[Optional[int], int, int, Optional[int]]  # hart, trace_pos, pc, sp if it is known


class _FrameId:
    """What gdb takes for a frame's identity: the same for the whole of a call."""

    def __init__(self, sp: gdb.Value, pc: gdb.Value) -> None:
        self.sp, self.pc = sp, pc


class TraceUnwinder(gdb.unwinder.Unwinder):
    """Unwinds frames whose register trace_pos is the number of an instruction."""

    def __init__(self) -> None:
        super().__init__(NAME)
        self._known: dict[_Key, tuple[_Stack, int]] = {}

    def forget(self) -> None:
        """The history is another one, or its numbers are."""
        self._known.clear()

    def __call__(self, pending_frame: Any) -> Any:
        with connection.ending_command():
            return self._frame(pending_frame)

    def _frame(self, pending_frame: Any) -> Any:
        number = _number(pending_frame)
        if number is None:
            return None
        try:
            stack, i = self._find(number, int(pending_frame.read_register("pc")), _stack_pointer(pending_frame))
            frame = stack.frame(i)
            caller = stack.frame(i + 1) if frame is not None else None
        except gdb.GdbError:  # gdb finds the one frame whose pc it knows
            return None
        if frame is None:
            return None
        if frame.native:
            if caller is not None:
                self._known[selected_hart(), number, caller.pc, frame.sp] = stack, i + 1
            return None
        return self._unwind(pending_frame, stack, i, frame, caller)

    def number(self, frame: gdb.Frame, trace_pos: int) -> int | None:
        """Of the call that was made in a frame where that register is *trace_pos*; None: it is not known."""
        found = self._known.get((selected_hart(), trace_pos, frame.pc() & _mask(), _stack_pointer(frame)))
        if found is None or not found[1]:
            return trace_pos
        it = found[0].frame(found[1])
        return trace_pos if it is None else it.number

    def _find(self, number: int, pc: int, sp: int | None) -> tuple[_Stack, int]:
        key = selected_hart(), number, pc & _mask(), sp
        found = self._known.get(key)
        if found is None:
            if len(self._known) > _KEPT:
                self._known.clear()
            found = self._known[key] = _Stack(key[0], number, key[2]), 0
        return found

    def _unwind(self, pending: Any, stack: _Stack, i: int, frame: Frame, caller: Frame | None) -> Any:
        address = _address_type()
        function = frame.pc if frame.function is None else frame.function
        top = _TOP << (32 if address.sizeof == 8 else 0)
        sp = top - (frame.level + _MIDDLE) * _FRAME if frame.sp is None else frame.sp
        info = pending.create_unwind_info(_FrameId(_value(sp, address), _value(function, address)))
        if caller is None:  # a frame whose caller is itself: gdb ends there. Without any it would raise errors
            caller = frame
        info.add_saved_register("pc", _value(caller.pc, address))
        for register, value in frame.saved:
            info.add_saved_register(f"x{register}", _value(value, address))
        if caller.number is not None:
            key = selected_hart(), caller.number, caller.pc, dict(frame.saved).get(_SP)
            self._known[key] = stack, i + (caller is not frame)
            info.add_saved_register(position.REGISTER, _value(caller.number, gdb.lookup_type("long long")))
        return info


def _number(pending: Any) -> int | None:
    try:
        number = int(pending.read_register(position.REGISTER))
    except (ValueError, gdb.error):  # a target without the proxy; not known in this frame
        return None
    return number if number >= 1 else None


def _stack_pointer(frame: Any) -> int | None:
    """Of a frame, pending or not; None where it is not known."""
    try:
        return int(frame.read_register("sp")) & _mask()
    except (ValueError, gdb.error):
        return None


def _address_type() -> gdb.Type:
    wide = gdb.lookup_type("void").pointer().sizeof == 8
    return gdb.lookup_type("unsigned long long" if wide else "unsigned int")


def _mask() -> int:
    return (1 << 8 * gdb.lookup_type("void").pointer().sizeof) - 1


def _value(number: int, kind: gdb.Type) -> gdb.Value:
    return gdb.Value(number).cast(kind)


class Ending:
    """A frame filter. With one, gdb does not call a stack corrupt whose beginning is not known; and variables are
    printed as far as they are known: see `partly`.

    Enabled in the past alone.
    """

    name, priority = NAME, 100

    def __init__(self) -> None:
        self._wanted = True

    @property
    def enabled(self) -> bool:
        with connection.ending_command():
            return self._wanted and position.number() is not None

    @enabled.setter
    def enabled(self, wanted: bool) -> None:
        self._wanted = wanted

    def filter(self, frames: Iterator[Any]) -> Iterator[Any]:
        """All of them."""
        return partial_values.frames(frames)


unwinder = TraceUnwinder()
position.number_in = unwinder.number


def register() -> None:
    """From now on gdb asks it first."""
    gdb.unwinder.register_unwinder(None, unwinder, replace=True)
    gdb.frame_filters[NAME] = Ending()


def forget() -> None:
    """The history is another one, or its numbers are."""
    unwinder.forget()


COMMANDS = (register,)
