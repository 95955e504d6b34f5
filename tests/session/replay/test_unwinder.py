"""Frames where the calls that the trace has are not those that the stack has, too."""

from pathlib import Path

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.program.debug_info import CallFrames as Cfi
from rvtrace_gdb.decode.program.image import ContextImages
from rvtrace_gdb.session.past.tandem.past import TandemPast
from rvtrace_gdb.session.replay.unwinder import Unwinder
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
