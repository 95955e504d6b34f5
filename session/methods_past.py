"""The methods of the session protocol for going back in time: connecting gdb, places in the past, frames.

| method  | params                             | result                                                           |
|---------|------------------------------------|------------------------------------------------------------------|
| connect | context, host, port, listen, socket | {where, elf}: where gdb is to connect to; no port: to no target   |
| past    | thread_hart, prompt                | {connected, number, said, left}: what is to be told is told once |
| notes   |                                    | {lines}: what is to be told, and nothing else                    |
| enter   | context, pc                        | {number, lines}: into the past, at its end                       |
| goto    | context, pc, number, to or what    | {number, lines, moves}: where the next resumption leads          |
| told    | thread_hart, number, registers     | {told}: the trace tells registers; these are known from there on |
| frames  | thread_hart, number, first, count, pc | {frames, more}, see `session.frames`                          |

connect: gdb is waited for at the TCP port *listen* (0: any), or at a socket whose path is *socket* ("": in a folder to
which only its owner has access). *elf*: the program with which a trace without a target is read, if there is one.

goto: *from_end* counts from the newest instruction, which is 1; *to* is begin, end or live; *what* is that of `find`,
with the rest of its question, and *nth*, its number in that list, or *direction*, "back" or "forth". *pc*: where the
program is now, if gdb is in the present: it is said where the trace does not lead there.
"""

from collections.abc import Callable, Mapping
from typing import Any

from rvtrace_gdb.session import frames, shadow
from rvtrace_gdb.session.debugger import Debugger, Going, NotConnected, debugger_of, number_of
from rvtrace_gdb.session.params import BadRequest, Params
from rvtrace_gdb.session.proxy.btrace import Btrace
from rvtrace_gdb.session.proxy.csrs import Csrs
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.progress import Progress


def connect(session: Session, params: Params, progress: Progress) -> Any:
    """Where gdb finds its target with a past."""
    context = params.context()
    if not isinstance(session.debugger, Debugger):
        session.debugger = Debugger(session, context, (Btrace(session), Csrs()))
    session.debugger.context = context
    port = params.optional_number("port")
    stub = None if port is None else (params.text("host", "localhost"), port)
    port, path = params.optional_number("listen") or 0, params.optional_path("socket")
    where = session.debugger.listen(stub, port, progress, path).where
    return {"where": where, "elf": session.elf if stub is None else None}


def past(session: Session, params: Params, progress: Progress) -> Any:
    """Whether gdb is connected, where it is, and what it is to be told. Asked when gdb has stopped."""
    hart, debugger = params.optional_number("thread_hart"), session.debugger
    if not isinstance(debugger, Debugger):
        return {"connected": False, "number": None, "said": [], "left": False}
    debugger.proxy.shown()
    left = params.given("prompt") and debugger.leave_end()
    said = _notes(debugger) if params.given("prompt") else debugger.proxy.said()
    return {"connected": debugger.connected, "number": number_of(session, hart), "said": said, "left": left}


def notes(session: Session, params: Params, progress: Progress) -> Any:
    """What the user is to be told. Asked where nobody sees gdb's prompt."""
    return {"lines": _notes(session.debugger) if isinstance(session.debugger, Debugger) else []}


def _notes(debugger: Debugger) -> list[str]:
    return [*debugger.proxy.said(), *debugger.proxy.memory_note(away=debugger.away())]


def enter(session: Session, params: Params, progress: Progress) -> Any:
    """Into the past without moving."""
    pc = params.optional_number("pc")
    return debugger_of(session, params.context()).enter(progress, pc)._asdict()


def goto(session: Session, params: Params, progress: Progress) -> Any:
    """Where the next resumption leads."""
    debugger = debugger_of(session, params.context())
    return _goto(debugger, params, progress)._asdict()


def _goto(debugger: Debugger, params: Params, progress: Progress) -> Going:
    pc = params.optional_number("pc")
    if params.given("number"):
        return debugger.go_to(params.number("number"), progress, pc)
    if params.given("from_end"):
        return debugger.go_to(-params.number("from_end"), progress, pc)
    if params.given("what"):
        back = params.text("direction", "back") == "back"
        return debugger.go_to_found(params.question(), params.optional_number("nth"), -1 if back else 1, progress, pc)
    to = params.text("to")
    if to == "live":
        return debugger.go_live()
    if to not in ("begin", "end"):
        raise BadRequest(f"goto: to is {to!r}, which is not begin, end or live")
    return debugger.go_to(1 if to == "begin" else -1, progress, pc)


def frames_at(session: Session, params: Params, progress: Progress) -> Any:
    """The calls under way at a number of the history."""
    debugger, hart = session.debugger, params.optional_number("thread_hart")
    if not isinstance(debugger, Debugger):
        raise NotConnected
    it, pc = debugger.places.selected(hart), params.optional_number("pc")
    number, first, count = params.number("number"), params.number("first"), params.number("count")
    return frames.rows(session, it, number, first, count, progress, pc)


def told(session: Session, params: Params, progress: Progress) -> Any:
    """Whether the trace tells registers; with names of registers and a number, whether they are known from there on."""
    debugger, hart = session.debugger, params.optional_number("thread_hart")
    tandem = debugger.places.selected(hart).history.shadow if isinstance(debugger, Debugger) else None
    number, names = params.optional_number("number"), params.texts("registers")
    if tandem is None or not names:
        return {"told": tandem is not None}
    return {"told": number is not None and shadow.stay_known(tandem, number - 1, names)}


def entered_at(session: Session, params: Params, progress: Progress) -> Any:
    """The next way back passes over other executions of the instruction with a number: see `Places.only_at`."""
    hart, number = params.optional_number("thread_hart"), params.number("number")
    if isinstance(session.debugger, Debugger):
        session.debugger.places.only_at(hart, number - 1)


METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {
    "connect": connect,
    "past": past,
    "notes": notes,
    "enter": enter,
    "goto": goto,
    "frames": frames_at,
    "entered_at": entered_at,
    "told": told,
}
