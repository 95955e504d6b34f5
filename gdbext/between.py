"""What is done while gdb is connected through the proxy: settings that suit where it is, hooks, lines for the user."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import aside, lost, native, osabi, partly, position, stubs, unwinder
from rvtrace_gdb.gdbext.printing import print_line
from rvtrace_gdb.gdbext.tracer import selected_hart, tracer

REVERSE = ("reverse-step", "reverse-stepi", "reverse-next", "reverse-nexti", "reverse-finish", "reverse-continue")
EITHER_WAY = ("step", "stepi", "next", "nexti", "finish", "continue", "until", "advance")
"""These go backward after `set exec-direction reverse`, and under an IDE that says --reverse."""

_through = False
"""gdb is connected through the proxy, as far as was seen."""
_away = False
"""gdb was in the past when it stopped last, as far as was seen."""
_advised = False
_prompted = False
"""gdb shows prompts: what there is to say is said before them. Under an IDE there are none."""


def seen() -> None:
    """gdb is connected through the proxy."""
    global _through
    if not _through:
        _through = True
        lost.leads_through()
        _define_hooks()


def going() -> None:
    """gdb is about to be in the past."""
    global _away
    seen()
    _away, partly.active = True, registers_known()
    osabi.set_for_tracing("the connection ends")
    aside.put(registers=partly.active)


def returning() -> None:
    """gdb is about to be in the present, and shows the frame there with the user's settings.

    Until it is there, what resumes is still one hart's way out of the past: others must not step over breakpoints.
    """
    aside.put_back(still_there=True)


def _define_hooks() -> None:
    """gdb runs these before the commands. A hook the user has defined stays.

    They are a command, not Python: gdb prints an error of the command `python` with a traceback.
    """
    for name in (*REVERSE, *EITHER_WAY):
        try:
            gdb.execute(f"show user hook-{name}", to_string=True)
        except gdb.error:
            gdb.execute(f"define hook-{name}\ntrace enter {name}\nend")


def said() -> list[str]:
    """What the proxy has for the user."""
    if not tracer().has_session:
        return []
    lines: list[str] = tracer().request("past", thread_hart=selected_hart())["said"]
    return lines


def _tell() -> None:
    for line in said():
        print_line(line)


def notes() -> list[str]:
    """What is told at a prompt, for who has none: what the proxy has for the user, and why memory is not known."""
    return list(tracer().request("notes")["lines"]) if tracer().has_session else []


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """gdb prints an exception of an event's handler as one: the command that follows meets the problem, and says it."""
    with contextlib.suppress(gdb.error, gdb.GdbError, KeyboardInterrupt):
        yield


def _stopped(event: object) -> None:
    """The settings follow where gdb is. Until it stops in the present, nothing it sends moves the target."""
    with _quietly():
        _follow()


def _follow() -> None:
    global _away
    if not position.available():
        return
    seen()
    before, _away = _away, position.number() is not None
    if not _away:
        unwinder.forget()
        aside.put_back()
        if before:
            _forget_places()
            _tell()
    elif not native.active():
        if not before:
            partly.active = registers_known()
        aside.put(registers=partly.active)
    if not _prompted:
        for line in notes():
            print_line(line)


def registers_known(result: list[str] | None = None) -> bool:
    """Whether the trace tells registers; with names, whether they are known, and stay so."""
    number = position.number()
    found: bool = tracer().request("told", thread_hart=selected_hart(), number=number, registers=result or [])["told"]
    return found


def _forget_places() -> None:
    """All harts are in the present again: of those that did not move last gdb still has the registers of the past."""
    if len(gdb.selected_inferior().threads()) > 1:
        gdb.execute("maint flush register-cache", to_string=True)


def _prompt() -> None:
    """Before gdb's prompt: what the proxy has to say, and whether it is still there."""
    global _through, _prompted
    _prompted = True
    if not _through:
        return
    with _quietly():
        if lost.is_lost():
            lost.let_go()
        else:
            _tell_at_prompt()
        if not gdb.selected_inferior().pid:  # no target any more
            _through = False
            aside.put_back()
            osabi.restore()
            if stubs.connected_to() is None:
                stubs.forget_description()


def _tell_at_prompt() -> None:
    """What the proxy has to say; and gdb is back where it was if the command that went back has failed."""
    if not tracer().has_session:
        return
    found = tracer().request("past", thread_hart=selected_hart(), prompt=True)
    if found["left"]:
        gdb.execute("maint flush register-cache", to_string=True)
        _follow()
    for line in found["said"]:
        print_line(line)


def _removed(event: object) -> None:
    """A connection has ended. Before the next command there may be no prompt: in a script, or under an IDE."""
    if _through:
        with _quietly():
            aside.put_back()
            if stubs.is_trace_alone(getattr(event, "connection", None)):
                stubs.forget_description()


def handlers() -> list[tuple[Any, Callable[..., None]]]:
    """(event registry, function)."""
    found: list[tuple[Any, Callable[..., None]]] = [(gdb.events.stop, _stopped), (gdb.events.before_prompt, _prompt)]
    if hasattr(gdb.events, "connection_removed"):  # gdb >= 12
        found.append((gdb.events.connection_removed, _removed))
    return found


def is_between() -> bool:
    """Whether rvtrace is between gdb and the target."""
    return _through and position.available()


def is_blind() -> bool:
    """Whether rvtrace is between gdb and a target that does not say its registers any more: the past is still there."""
    return _through and position.unreadable()


def advise() -> None:
    """Say once that going back needs a connection of its own."""
    global _advised
    if not _advised and not position.available() and gdb.selected_thread() is not None:
        _advised = True
        print("`trace connect` lets gdb go backward in what is traced.")


def release() -> None:
    """rvtrace is loaded again: the session ends, and with it gdb's connection."""
    with _quietly():
        aside.put_back()
        if is_between():
            gdb.execute("disconnect", to_string=True)
            osabi.restore()
            print("rvtrace is loaded again: gdb is not connected any more (`trace connect`), the trace is let go.")
