"""Frames where the calls that the trace has are not those that the stack has, too, or where the stack is not known."""

from pathlib import Path

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrame, CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.debug_info import CallFrameInformation as Cfi
from rvtrace_gdb.session.past.tandem.past import TandemPast
from rvtrace_gdb.session.replay.unwinder import Unwinder, UnwoundFrame, in_order
from tests.helpers.cross_compiler import demo
from tests.transport.simulated.devices.tandem_port import Ported


def test_a_frame_is_where_its_registers_say(tmp_path: Path) -> None:
    """A debugger's calls, or a switch to another task: the trace takes another function for the caller."""
    ported = Ported(demo(tmp_path), extensions="IMAC")
    for _ in range(200):
        ported.hart.step()
    tandem = ported.decoded()
    history, named = tandem.history, ported.image.symbol
    entered = [i for i, pc in enumerate(history.pcs()) if named(pc) == ("fib", 0)]
    position = entered[-2] + 8  # behind what saves registers
    frames = list(CallFrames(history, CallHistory(history, ContextImages(ported.image))).frames(position, 0, None))
    past = TandemPast(tandem, ContextImages(ported.image))
    unwinder = Unwinder(past, Cfi(ported.image), ported.image.xlen)
    right = list(unwinder.frames(position, frames))
    assert len(frames) > 3 and right[0].native and right[1].native
    (wrong, *_) = unwinder.frames(position, [frames[0], *frames[2:]])
    assert not wrong.native and wrong.sp == right[0].sp != right[1].sp


def ordered(*frames: tuple[bool, int | None]) -> list[tuple[bool, int | None]]:
    """(native, stack pointer) of frames, innermost first."""
    frame = CallFrame(0, 0, 0, None, StackOperationKind.BEGIN)
    return [(it.native, it.sp) for it in in_order(UnwoundFrame(frame, *it, {}) for it in frames)]


def test_no_frame_is_below_the_one_that_it_called() -> None:
    """gdb ends a backtrace there (frame.c, UNWIND_INNER_ID), and where two frames of a function are at one place."""
    known = (True, 0x100), (True, 0x100), (False, 0x140)
    assert ordered(*known) == list(known)
    assert ordered((False, None), (True, 0x100)) == [(False, 0xFF), (True, 0x100)]
    assert ordered((True, 0x100), (False, None), (False, None), (True, 0x180)) == [
        (True, 0x100), (False, 0x17E), (False, 0x17F), (True, 0x180),
    ]  # fmt: skip
    assert ordered((True, 0x100), (False, None), (True, 0x100), (True, 0x180)) == [
        (True, 0x100), (False, 0x101), (False, 0x102), (True, 0x180),
    ]  # fmt: skip
    assert ordered((True, 0x900), (True, 0x100), (True, 0x140), (True, 0x940)) == [
        (True, 0x900), (False, 0x901), (False, 0x902), (True, 0x940),
    ]  # fmt: skip
    assert ordered((True, 0x100), (False, None)) == [(True, 0x100), (False, None)]
    many = [(False, None)] * 20
    assert ordered(*many, (True, 0x100)) == [*many, (False, None)]
