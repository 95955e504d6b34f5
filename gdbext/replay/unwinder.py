"""The call stack in the past, where no register but pc is known: it is computed from the calls in the trace.

gdb requests one frame after the other, and may do so at each instruction of a step. Therefore the session returns
several at once, over its own pipe: a packet to the target would invalidate the frames that gdb is computing. In each
frame the register trace_pos identifies the frame: it is the number of the call that was made in it.

A tandem trace also records registers and memory. Where gdb's own unwinder can find a frame's caller, the frame is left
to it; the session decides which these are (`session.replay.unwinder`). trace_pos then has the same value in the caller,
and the frames are distinguished by pc and sp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Optional

import gdb
import gdb.unwinder

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.replay import partial_values, position
from rvtrace_gdb.gdbext.replay.connection import connection
from rvtrace_gdb.gdbext.replay.line_steps import InvocationLevel, line_steps
from rvtrace_gdb.gdbext.tracer import tracer
from rvtrace_gdb.rows.answers import FrameRow

NAME = "rvtrace"
FIRST, MORE = 8, 256  # frames in the first and in each further request: most steps need two frames
_TOP = 0xFFF0_0000  # the top of an invented stack, where no program has its own
_FRAME = 16  # bytes of a frame of the invented stack
_MIDDLE = 1 << 20  # levels may be negative: the caller of the first function in the trace is not in it
_STACK = 1 << 18  # levels between two stacks
_CACHE_SIZE = 64
_SP = 2


class _FrameStack:
    """The frames at an instruction number, fetched from the session when needed."""

    def __init__(self, hart: int | None, number: int, pc: int) -> None:
        self._hart, self._number, self.pc = hart, number, pc
        self.frames: list[FrameRow] = []
        self._more = True

    def frame(self, i: int) -> FrameRow | None:
        """Return the *i*-th frame, 0 the innermost; None if there is none."""
        while self._more and len(self.frames) <= i:
            self._fetch(FIRST if not self.frames else MORE)
        return self.frames[i] if i < len(self.frames) else None

    def _fetch(self, count: int) -> None:
        first = len(self.frames)
        place = {"thread_hart": self._hart, "number": self._number, "pc": self.pc}
        found = tracer().request("frames", first=first, count=count, **place)
        self.frames += (FrameRow(*row) for row in found["frames"])
        self._more = found["more"] and len(self.frames) > first


_FrameKey = tuple[Optional[int], int, int, Optional[int]]  # hart, trace_pos, pc, sp if known


class _FrameId:
    """The identity of a frame for gdb: the same from a function's entry to its return."""

    def __init__(self, sp: gdb.Value, pc: gdb.Value) -> None:
        self.sp, self.pc = sp, pc


class TraceUnwinder(gdb.unwinder.Unwinder):
    """Unwinds frames whose register trace_pos is the number of an instruction."""

    def __init__(self) -> None:
        super().__init__(NAME)
        self._frames: dict[_FrameKey, tuple[_FrameStack, int]] = {}

    def clear_cache(self) -> None:
        """Drop the frames found so far: the history or its numbering has changed."""
        self._frames.clear()

    def __call__(self, pending_frame: Any) -> Any:
        with connection.command_ends_with_session():
            return self._frame(pending_frame)

    def _frame(self, pending_frame: Any) -> Any:
        number = _frame_number(pending_frame)
        if number is None:
            return None
        try:
            stack, i = self._find(number, int(pending_frame.read_register("pc")), _stack_pointer(pending_frame))
            frame = stack.frame(i)
            caller = stack.frame(i + 1) if frame is not None else None
        except gdb.GdbError:  # gdb's own unwinder then finds the one frame whose pc is known
            return None
        if frame is None:
            return None
        if not i:
            line_steps.look(number, stack.pc, InvocationLevel(frame.stack, frame.level))
        if frame.native:
            if caller is not None:
                self._frames[selected_hart(), number, caller.pc, frame.sp] = stack, i + 1
            return None
        return self._unwind(pending_frame, stack, i, frame, caller)

    def number(self, frame: gdb.Frame, trace_pos: int) -> int | None:
        """Return the number of the call made in a frame whose register has the value *trace_pos*; None if unknown."""
        found = self._frames.get((selected_hart(), trace_pos, frame.pc() & _mask(), _stack_pointer(frame)))
        if found is None or not found[1]:
            return trace_pos
        it = found[0].frame(found[1])
        return trace_pos if it is None else it.number

    def level(self) -> InvocationLevel | None:
        """Return the level of the innermost frame in the past; None if it is not known."""
        frame = gdb.newest_frame()
        number = _frame_number(frame)
        if number is None:
            return None
        found = self._find(number, frame.pc(), _stack_pointer(frame))[0].frame(0)
        return None if found is None else InvocationLevel(found.stack, found.level)

    def _find(self, number: int, pc: int, sp: int | None) -> tuple[_FrameStack, int]:
        key = selected_hart(), number, pc & _mask(), sp
        found = self._frames.get(key)
        if found is None:
            if len(self._frames) > _CACHE_SIZE:
                self._frames.clear()
            found = self._frames[key] = _FrameStack(key[0], number, key[2]), 0
        return found

    def _unwind(self, pending: Any, stack: _FrameStack, i: int, frame: FrameRow, caller: FrameRow | None) -> Any:
        address = _address_type()
        function = frame.pc if frame.function is None else frame.function
        top = _TOP << (32 if address.sizeof == 8 else 0)
        invented = top - (frame.level + _MIDDLE + frame.stack * _STACK) * _FRAME
        sp = invented & _mask() if frame.sp is None else frame.sp
        info = pending.create_unwind_info(_FrameId(_typed_value(sp, address), _typed_value(function, address)))
        if caller is None:  # gdb ends at a frame whose caller is the frame itself; without a caller it raises errors
            caller = frame
        info.add_saved_register("pc", _typed_value(caller.pc, address))
        for register, value in frame.saved:  # by number: of "x9" gdb would read the value, and crash if it cannot
            info.add_saved_register(register, _typed_value(value, address))
        if caller.number is not None:
            key = selected_hart(), caller.number, caller.pc, dict(frame.saved).get(_SP)
            self._frames[key] = stack, i + (caller is not frame)
            info.add_saved_register(position.REGISTER, _typed_value(caller.number, neutral.long_type()))
        return info


def _frame_number(pending: Any) -> int | None:
    try:
        number = int(pending.read_register(position.REGISTER))
    except (ValueError, gdb.error):  # a target without the proxy; not known in this frame
        return None
    return number if number >= 1 else None


def _stack_pointer(frame: Any) -> int | None:
    """Return the stack pointer of a frame, pending or not; None if unknown."""
    try:
        return int(frame.read_register("sp")) & _mask()
    except (ValueError, gdb.error):
        return None


def _address_type() -> gdb.Type:
    return neutral.address_type()


def _mask() -> int:
    return neutral.address_mask()


def _typed_value(number: int, kind: gdb.Type) -> gdb.Value:
    return gdb.Value(number).cast(kind)


_DUMMY = re.compile(r"ptid=(\S+)$", re.MULTILINE)


def check_calls() -> None:
    """Raise gdb.GdbError if a function that the user has called (`print f()`) was interrupted, and has not returned.

    gdb keeps a frame for such a call, and looks at each frame that it finds whether it is that one: by sp, which is not
    known in most places of the past. In gdb 13 to 18 that ends the user's command ("Register 2 was not saved").
    """
    try:
        said = _DUMMY.findall(neutral.printed("maintenance print dummy-frames"))
    except gdb.error:  # after a command gdb looks at the frame, and the target may not report its registers
        return
    if not said:
        return
    threads = {".".join(map(str, thread.ptid)): thread.num for thread in gdb.selected_inferior().threads()}
    where = next((f" in thread {threads[it]}" for it in said if it in threads and len(threads) > 1), "")
    raise gdb.GdbError(
        f"The function that you called{where} has not returned, and gdb cannot find frames in the past while it keeps"
        " that call: let it return (`finish`), or give it up (`return` in its outermost frame), then go back."
    )


class BacktraceFilter:
    """A frame filter, enabled only in the past.

    With a frame filter, gdb does not report a stack without a known outermost frame as corrupt. The frames print
    variables as far as these are known (`partial_values`).
    """

    name, priority = NAME, 100

    def __init__(self) -> None:
        self._enabled_by_user = True

    @property
    def enabled(self) -> bool:
        with connection.command_ends_with_session():
            return self._enabled_by_user and position.number() is not None

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._enabled_by_user = enabled

    def filter(self, frames: Iterator[Any]) -> Iterator[Any]:
        """Decorate all frames; none is left out."""
        return partial_values.decorated(frames)


unwinder = TraceUnwinder()
position.caller_number = unwinder.number


def register() -> None:
    """Register the unwinder and the frame filter with gdb; gdb then calls this unwinder before its own."""
    gdb.unwinder.register_unwinder(None, unwinder, replace=True)
    gdb.frame_filters[NAME] = BacktraceFilter()


def clear_cache() -> None:
    """Drop the frames found so far: the history or its numbering has changed."""
    unwinder.clear_cache()


COMMANDS = (register,)
