"""The methods of the session protocol for going back in time: connecting gdb, positions in the past, frames, recording.

| method  | params                             | result                                                           |
|---------|------------------------------------|------------------------------------------------------------------|
| connect | context, host, port, listen, socket | {where, elf}: where gdb is to connect; no port: no target        |
| past    | thread_hart, prompt                | {connected, number, said, left}: *said*: lines to print, once    |
| gone    |                                    | {gone}: whether the target has closed the connection             |
| notes   |                                    | {lines}: the lines to print alone                                |
| place   | thread_hart, tasks                 | {number, length, runner}: where a hart is in the past, how long  |
|         |                                    | its history is, and with *tasks* who runs there, a `RunningThread` |
| enter   | context, pc                        | {number, lines}: enter the past, at its end                      |
| entered_at | thread_hart, number             | nothing: the next way back stops at no other of its executions   |
| show_place | thread_hart, number             | nothing: gdb is shown this place, without a stop                 |
| follow_program | context                     | {lines}: gdb has loaded another program                          |
| goto    | context, pc, number, to or what    | {number, lines, moves, match, of}: where the next resumption leads |
| registers_known | thread_hart, number, registers | {known}: registers are known; these stay known from there on |
| frames  | thread_hart, number, first, count, pc | {frames, more}, see below                                     |
| steps   | thread_hart, number, ranges, repeats | nothing: gdb goes on in *ranges*, see `step_regions`            |
| native  | context, limit, seconds            | {instructions, length, first, lines}, for gdb's `record btrace`  |

connect: the proxy waits for gdb at the TCP port *listen* (0: any), or at a socket whose path is *socket* ("": in a
folder that only its owner can enter). *elf*: the program of a trace without a target, if it has one.

goto: *from_end* counts from the newest instruction, which is 1; *to* is begin, end or live; *what* is that of `find`,
with its parameters, and *nth*, the number in that list, *last*, for its last row, or
*direction*, "back" or "forth". *pc*: where the program is
now, if gdb is in the present: a line says if the trace does not lead there. *match*: the event that is gone to, a
`rows.list_rows.FoundRow`, of *of* such events; None for other places.

frames: the call stack at a number of a history, for gdb's unwinder, as rows `rows.answers.FrameRow`. The first row is
the function that runs: its number is that of its next instruction. The others are the callers: their number is that of
the call, or of the last instruction before a trap. Where registers are known, see `session.replay.unwinder`.

native: reads the trace out and decodes it for gdb's `record btrace`. *limit*: the highest number of positions;
*seconds*: how long gdb waits for answers. gdb gets *instructions* of *length*, the first of which has the number
*first* in the history.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice, starmap

from rvtrace_gdb.decode.calls.frames import CallFrame
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.decode.program.debug_info import CallFrameInformation as Cfi
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.answers import OFF_HART, FrameRow
from rvtrace_gdb.session.errors import OtherTarget
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.proxy.backend import RegisterBatches
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.replay.debugger import Destination, NotConnected, NotOnHart, ProxyDebugger, debugger_of
from rvtrace_gdb.session.replay.gdb_commands import GdbCommands
from rvtrace_gdb.session.replay.record_btrace import Btrace, BtraceRequest
from rvtrace_gdb.session.replay.step_regions import StepRegion
from rvtrace_gdb.session.replay.unwinder import Unwinder, UnwoundFrame
from rvtrace_gdb.session.rpc.protocol import BadRequest, JsonMessage, Params
from rvtrace_gdb.session.selected_history import SelectedHistory, call_frames
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

_MOST = 1 << 32  # no call stack is deeper
_KINDS = {StackOperationKind.CALL: "call", StackOperationKind.TRAP: "trap", StackOperationKind.BEGIN: ""}


def frame_rows(
    session: Session,
    selected: SelectedHistory,
    number: int,
    first: int,
    count: int,
    progress: Progress = silent,
    pc: int | None = None,
) -> JsonMessage:
    """Return {frames, more}: *count* rows from *first* on (0: the function that runs), and whether there are more.

    *number* may be the one after the last: then all has run, and *pc* is where the program is. Gaps and numbers that
    the history does not have have no frames.
    """
    if not 1 <= number <= len(selected.history) + 1:
        return {"frames": [], "more": False}
    first, count = min(first, _MOST), min(count, _MOST)
    found = call_frames(session, selected, progress)
    position = history_position(number)
    unwinder = _unwinder(session, selected, position, pc, progress)
    if unwinder is None:
        frames = found.frames(position, first, pc)
        rows = [_row(frame, number) for frame in islice(frames, count)]
        more = next(frames, None) is not None
    else:
        unwound = islice(unwinder.frames(position, found.frames(position, 0, pc)), first, None)
        rows = [_full_row(frame, number) for frame in islice(unwound, count)]
        more = next(unwound, None) is not None
    return {"frames": rows, "more": more}


def _unwinder(
    session: Session, selected: SelectedHistory, position: int, pc: int | None, progress: Progress
) -> Unwinder | None:
    """Return an unwinder; None if no registers are known, or not those of where the program is."""
    past = (
        session.debugger.past_of(selected, progress)
        if isinstance(session.debugger, ProxyDebugger)
        else past_of(session, selected)
    )
    if past is None or past.traced_registers() is None:
        return None
    if position == len(selected.history) and pc != past.registers(position).get("pc"):
        return None
    image = selected.program.image_of(selected.history.context_at(min(position, len(selected.history) - 1)))
    return session.cached(_Unwinders, selected.history, _Unwinders).unwinder_of(past, image)


class _Unwinders:
    """The unwinder that was used last: gdb requests the frames of a step one by one."""

    def __init__(self) -> None:
        self._last: tuple[Past, Image, Unwinder] | None = None

    def unwinder_of(self, past: Past, image: Image) -> Unwinder:
        if self._last is None or self._last[0] is not past or self._last[1] is not image:
            self._last = past, image, Unwinder(past, Cfi(image), image.xlen)
        return self._last[2]


def _full_row(unwound: UnwoundFrame, number: int) -> FrameRow:
    saved = tuple(unwound.saved.items())
    return _row(unwound.frame, number)._replace(native=unwound.native, sp=unwound.sp, saved=saved)


def _row(frame: CallFrame, number: int) -> FrameRow:
    if frame.kind is not StackOperationKind.BEGIN:
        number = 0 if frame.call is None else frame.call + 1
    function = None if frame.function == UNKNOWN else frame.function
    return FrameRow(
        pc=frame.pc,
        function=function,
        level=frame.level,
        number=number or None,
        kind=_KINDS[frame.kind],
        stack=frame.stack,
    )


def connect(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Start the proxy, and return where gdb is to connect to it."""
    context = params.context()
    if not isinstance(session.debugger, ProxyDebugger):
        session.debugger = ProxyDebugger(session, context, (GdbCommands(), Btrace(session), RegisterBatches()))
        if session.live is not None and session.live.tracing:
            session.debugger.trace_begins(now=False)
        session.debugger.corrects_state()
    session.debugger.context = context
    port = params.optional_number("port")
    stub = None if port is None else StubAddress(params.text("host", "localhost"), port)
    port, path = params.optional_number("listen") or 0, params.optional_path("socket")
    where = session.debugger.listen(stub, port, progress, path).where
    return {"where": where, "elf": session.elf if stub is None else None}


def past(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return whether gdb is connected, where it is, and lines to print. Called whenever gdb has stopped."""
    hart, debugger = params.optional_number("thread_hart"), session.debugger
    if not isinstance(debugger, ProxyDebugger):
        return {"connected": False, "number": None, "said": [], "left": False}
    debugger.proxy.shown()
    left = params.given("prompt") and debugger.leave_end()
    said = _notes(debugger) if params.given("prompt") else debugger.proxy.take_lines()
    said = [*said, *debugger.value_notes(hart)]
    return {"connected": debugger.connected, "number": debugger.number(hart), "said": said, "left": left}


def gone(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return whether gdb's target has ended the connection, which gdb has not seen yet."""
    it = session.debugger
    return {"gone": isinstance(it, ProxyDebugger) and it.connected and it.is_target_gone}


def notes(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the lines to print. Called where nobody sees gdb's prompt."""
    return {"lines": _notes(session.debugger) if isinstance(session.debugger, ProxyDebugger) else []}


def _notes(debugger: ProxyDebugger) -> list[str]:
    return [*debugger.proxy.take_lines(), *debugger.proxy.memory_note(away=debugger.away())]


def place(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return where a hart is in the past, how long its history is, and who runs; None in the present."""
    hart, debugger = params.optional_number("thread_hart"), session.debugger
    number = None if debugger is None else debugger.number(hart)
    if number is None or not isinstance(debugger, ProxyDebugger):
        return {"number": None, "length": None, "runner": {}}
    selected, runner = debugger.timeline.selected(hart), JsonMessage()
    if params.given("tasks"):
        from rvtrace_gdb.session.tasks.labels import runner_at  # few programs have tasks

        runner = runner_at(session, selected, history_position(number), progress)._asdict()
    return {"number": number, "length": len(selected.history), "runner": runner}


def enter(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Enter the past without moving."""
    pc = params.optional_number("pc")
    return debugger_of(session, params.context()).enter(progress, pc)._asdict()


def follow_program(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Let gdb's past follow the program that gdb has loaded meanwhile; return the lines to print."""
    if not isinstance(session.debugger, ProxyDebugger):
        return {"lines": []}
    session.debugger.context = params.context()
    return {"lines": session.debugger.follow_program(progress)}


def goto(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Set where the next resumption leads."""
    debugger = debugger_of(session, params.context())
    return _goto(debugger, params, progress)._asdict()


def _goto(debugger: ProxyDebugger, params: Params, progress: Progress) -> Destination:
    pc = params.optional_number("pc")
    if params.given("number"):
        return debugger.go_to(params.number("number"), progress, pc)
    if params.given("from_end"):
        return debugger.go_to(-params.number("from_end"), progress, pc)
    if params.given("what"):
        back = params.text("direction", "back") == "back"
        nth = -1 if params.given("last") else params.optional_number("nth")
        return debugger.go_to_found(params.list_query(), nth, -1 if back else 1, progress, pc)
    to = params.text("to")
    if to == "live":
        return debugger.go_live()
    if to not in ("begin", "end"):
        raise BadRequest(f"goto: to is {to!r}, which is not begin, end or live")
    return debugger.go_to(1 if to == "begin" else -1, progress, pc)


def frames_at(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the call stack at a number of the history."""
    debugger, hart = session.debugger, params.optional_number("thread_hart")
    if not isinstance(debugger, ProxyDebugger):
        raise NotConnected
    it, pc = debugger.timeline.selected(hart), params.optional_number("pc")
    number, first, count = params.number("number"), params.number("first"), params.number("count")
    return frame_rows(session, it, number, first, count, progress, pc)


def steps(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Note where gdb goes on if it takes a step from a number: ranges of addresses, each as its beginning and its end.
    Without a number: gdb's command has ended.
    """
    hart, number = params.optional_number("thread_hart"), params.optional_number("number")
    if not isinstance(session.debugger, ProxyDebugger):
        return {}
    regions, ends = session.debugger.timeline.regions, params.numbers("ranges")
    if number is None:
        regions.clear()
    else:
        ranges = tuple(starmap(range, zip(ends[::2], ends[1::2], strict=False)))
        regions.expect(hart, history_position(number), StepRegion(ranges, params.given("repeats")))
    return {}


def registers_known(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return whether registers are known in the past, and whether those in *registers* are from *number* on."""
    debugger, hart = session.debugger, params.optional_number("thread_hart")
    past = None
    if isinstance(debugger, ProxyDebugger):
        past = debugger.past_of(debugger.timeline.selected(hart), progress)
    number, names = params.optional_number("number"), params.texts("registers")
    if past is None or past.traced_registers() is None:
        return {"known": False}
    if not names:
        return {"known": past.has_memory}
    if number is None or not 1 <= number <= len(past.history) + 1:
        return {"known": False}
    return {"known": past.values_stay_known(history_position(number), names)}


def entered_at(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Let the next way back pass over other executions of the instruction with a number; see `Timeline.only_at`."""
    hart, number = params.optional_number("thread_hart"), params.number("number")
    if isinstance(session.debugger, ProxyDebugger):
        session.debugger.timeline.only_at(hart, history_position(number))
    return {}


def show_place(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Show gdb another place of the past, without a stop: gdb itself has to forget what it read of the one before."""
    hart, number = params.optional_number("thread_hart"), params.number("number")
    if isinstance(session.debugger, ProxyDebugger) and session.debugger.timeline.position(hart) is not None:
        session.debugger.timeline.go_to(hart, history_position(number))
    return {}


class RecordsInThePast(RvtraceError):
    """gdb cannot record while it is in rvtrace's past."""

    def __init__(self) -> None:
        super().__init__("gdb is in the past, and its own recording begins in the present: `trace live` first")


def native(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Read out and decode what gdb is going to record. Raises NotConnected, InThePast, and as `Session.history`."""
    debugger = debugger_of(session, params.context())
    if not debugger.connected:
        raise NotConnected
    if debugger.away():
        raise RecordsInThePast
    context, limit = debugger.context, params.number("limit")
    thread_hart = context.thread_hart
    if thread_hart == OFF_HART:
        raise NotOnHart(context.on_hart)
    if session.live is not None and not session.live.is_of(context.openocd):
        raise OtherTarget
    if thread_hart is not None:
        context = replace(context, hart=None)  # gdb records each thread by itself, whichever hart is selected
    it = session.selected(context, progress)
    history, hart, lines = it.history, it.hart, it.lines
    _btrace(debugger).prepare(BtraceRequest(context, limit, params.number("seconds")))
    if thread_hart and thread_hart != hart:
        said = f"note:     hart {thread_hart} is not in this trace: gdb gets the recording of the other threads only"
        return {"instructions": 0, "length": 0, "first": 1, "lines": [said]}
    length = len(history)
    first = max(0, length - limit)
    if length and history.pc(first) == GAP:
        first += 1
    return {"instructions": length - first, "length": length, "first": first + 1, "lines": lines}


def _btrace(debugger: ProxyDebugger) -> Btrace:
    return next(it for it in debugger.extensions if isinstance(it, Btrace))


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {
    "connect": connect,
    "past": past,
    "gone": gone,
    "notes": notes,
    "place": place,
    "enter": enter,
    "follow_program": follow_program,
    "goto": goto,
    "frames": frames_at,
    "entered_at": entered_at,
    "show_place": show_place,
    "steps": steps,
    "registers_known": registers_known,
    "native": native,
}
