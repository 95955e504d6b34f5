"""The calls under way at a number of a history, for gdb's unwinder: the method "frames" of the session protocol.

A row is [pc, start of the function or None, level, number, kind]. The first one is the function that runs: its number
is that of its next instruction, its kind "". The others are where those before them return to: their number is that of
the call through which they were left, or of the last instruction before a trap, their kind "call" or "trap". Levels
differ between a function and what it called, and stay the same within an invocation.

Of a tandem trace a row has besides, see `session.unwinding`: native, the stack pointer of the caller or None, and
[[n, value of xn in the caller], ...].
"""

from itertools import islice
from typing import TYPE_CHECKING, Any

from rvtrace_gdb.decode.calls.edges import UNKNOWN, Kind
from rvtrace_gdb.decode.calls.frames import CallFrame, CallFrames
from rvtrace_gdb.decode.calls.index import CallHistory
from rvtrace_gdb.decode.cfi import CallFrames as Cfi
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.tandem.decoder import Tandem
from rvtrace_gdb.session.calls import Functions
from rvtrace_gdb.session.shadow import Memory
from rvtrace_gdb.session.unwinding import Unwinder, Unwound
from rvtrace_gdb.support.progress import Progress, silent

if TYPE_CHECKING:
    from rvtrace_gdb.session.session import Selected, Session

Row = list[int | str | list[list[int]] | None]
_MOST = 1 << 32  # more calls are not under way
_KINDS = {Kind.CALL: "call", Kind.TRAP: "trap", Kind.BEGIN: ""}


def call_history(session: "Session", it: "Selected", progress: Progress = silent) -> CallHistory:
    """The functions that ran, found once for a history."""
    found = session.kept(CallHistory, it.history, lambda: CallHistory(it.history, it.program, None))
    found.go_on(progress)  # where it was interrupted
    return found


def functions_of(session: "Session", it: "Selected", progress: Progress = silent) -> Functions:
    """The same for who shows pages of them."""
    calls = call_history(session, it, progress)
    return session.kept(Functions, it.history, lambda: Functions(it.history, it.program, progress, calls))


def call_frames(session: "Session", it: "Selected", progress: Progress = silent) -> CallFrames:
    """The calls under way in a history."""
    return session.kept(CallFrames, it.history, lambda: CallFrames(it.history, call_history(session, it, progress)))


def rows(
    session: "Session",
    it: "Selected",
    number: int,
    first: int,
    count: int,
    progress: Progress = silent,
    pc: int | None = None,
) -> dict[str, Any]:
    """{frames, more}: *count* rows from *first* on, which is 0 for the function that runs, and whether there are more.

    *number* may be the one behind the last: then all has run, and *pc* is where the program is. Numbers that the
    history does not have, and gaps, have no frames.
    """
    if not 1 <= number <= len(it.history) + 1:
        return {"frames": [], "more": False}
    first, count = min(first, _MOST), min(count, _MOST)
    found = call_frames(session, it, progress)
    unwinder = _unwinder(session, it, number - 1, pc)
    if unwinder is None:
        frames = found.frames(number - 1, first, pc)
        rows = [_row(frame, number) for frame in islice(frames, count)]
        more = next(frames, None) is not None
    else:
        unwound = islice(unwinder.frames(number - 1, found.frames(number - 1, 0, pc)), first, None)
        rows = [_full_row(frame, number) for frame in islice(unwound, count)]
        more = next(unwound, None) is not None
    return {"frames": rows, "more": more}


def _unwinder(session: "Session", it: "Selected", position: int, pc: int | None) -> Unwinder | None:
    """None where the trace does not tell registers, or those it tells are not those of where the program is."""
    tandem = it.history.shadow
    if tandem is None or (position == len(it.history) and pc != tandem.before(position).pc):
        return None
    image = it.program.image_of(it.history.context_at(min(position, len(it.history) - 1)))
    known = session.kept(_Unwinders, it.history, _Unwinders)
    return known.of(tandem, image)


class _Unwinders:
    """The last one that was needed, for the frames of a step are asked for one by one."""

    def __init__(self) -> None:
        self._last: tuple[Image, Unwinder] | None = None

    def of(self, tandem: Tandem, image: Image) -> Unwinder:
        if self._last is None or self._last[0] is not image:
            self._last = image, Unwinder(tandem, Memory(tandem, image), Cfi(image))
        return self._last[1]


def _full_row(unwound: Unwound, number: int) -> Row:
    saved = [[register, value] for register, value in unwound.saved.items()]
    return [*_row(unwound.frame, number), unwound.native, unwound.sp, saved]


def _row(frame: CallFrame, number: int) -> Row:
    if frame.kind is not Kind.BEGIN:
        number = 0 if frame.call is None else frame.call + 1
    function = None if frame.function == UNKNOWN else frame.function
    return [None if frame.pc == UNKNOWN else frame.pc, function, frame.level, number or None, _KINDS[frame.kind]]
