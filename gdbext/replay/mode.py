"""What changes in gdb while it is connected through the proxy, and while it is in the past.

gdb's settings follow where it is, hooks enter the past before a reverse command, and what the proxy has to say is
printed. Some settings would make gdb print what is not true in the past. They are put aside there, and put back:

- `finish` prints a return value: gdb takes a register that is not known for 0.
- gdb would look for the values that arguments of each frame had at the call, with an error text for each of them.
- with only pc known, each argument of a frame would be `<error reading variable ...>`.
  A tandem trace tells registers and memory: these three settings are then the user's, where the value is known.
- each hart has its own place: where another hart has stopped at a breakpoint, gdb would move that hart first, to step
  over the breakpoint. gdb's own mode "replay" locks the scheduler, too, where it knows that it replays.

The OS ABI is set while a bare-metal program is traced. Debian's gdb-multiarch takes every RISC-V program for GNU/Linux
and then single-steps in software, with breakpoints: that is slow, and it steps over traps. While tracing, an OS ABI
that the user left on "auto" is set to "none", and put back afterwards.

Watchpoints are evaluated anew at another place: gdb compares with what the watched memory held at the place it came
from, and would print a wrong "Old value". A watchpoint that is disabled and enabled again is evaluated anew. That of a
local variable is left alone: gdb would delete it where its function does not run.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext.replay import connection, partial_values, position, record_btrace, unwinder
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import selected_hart, tracer

_LOCKING = "scheduler-locking"
_FINISH = ("print finish", "off")
WITHOUT_REGISTERS = (_FINISH, ("print entry-values", "no"), ("print frame-arguments", "none"))
IN_THE_PAST = (*WITHOUT_REGISTERS, (_LOCKING, "on"))

_settings_before: dict[str, str] = {}


def put_settings_aside(*, registers: bool = False) -> None:
    """Set them for the past, unless they are. *registers*: they are known there."""
    for name, value in IN_THE_PAST:
        if not registers or (name, value) not in WITHOUT_REGISTERS:
            _put_setting_aside(name, value)


def show_result(*, known: bool) -> None:
    """`finish` that comes prints its value, if the user wants it to and it is known."""
    name, value = _FINISH
    if not known:
        _put_setting_aside(name, value)
    elif name in _settings_before and _setting(name) == value:
        gdb.execute(f"set {name} {_settings_before.pop(name)}", to_string=True)


def _put_setting_aside(name: str, value: str) -> None:
    if name not in _settings_before:
        before = _setting(name)
        if before is not None and before != value:
            _settings_before[name] = before
            gdb.execute(f"set {name} {value}", to_string=True)


def put_settings_back(*, still_there: bool = False) -> None:
    """What `put` changed, unless the user has changed it since. *still_there*: but what keeps harts where they are."""
    for name, value in IN_THE_PAST:
        if still_there and name == _LOCKING:
            continue
        before = _settings_before.pop(name, None)
        if before is not None and _setting(name) == value:
            with contextlib.suppress(gdb.error):  # without a target gdb has no scheduler-locking
                gdb.execute(f"set {name} {before}", to_string=True)


def _setting(name: str) -> str | None:
    """As it is written; None where this gdb does not have it."""
    try:
        value = gdb.parameter(name)
    except RuntimeError:
        return None
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


_osabi_before: str | None = None


def _guessed_linux() -> bool:
    return "GNU/Linux" in gdb.execute("show osabi", to_string=True)


def set_osabi_for_tracing(until: str = "`trace stop`") -> None:
    """Set `osabi none` unless the user chose one, and say so once."""
    global _osabi_before
    chosen = str(gdb.parameter("osabi"))
    if _osabi_before is not None or chosen != "auto" or not _guessed_linux():
        return
    _osabi_before = chosen
    gdb.execute("set osabi none", to_string=True)
    print(f"OS ABI set to none until {until} (gdb guessed GNU/Linux and would single-step in software).")


def restore_osabi() -> None:
    """Put back what `set_for_tracing` changed, unless the user has changed it since."""
    global _osabi_before
    before, _osabi_before = _osabi_before, None
    if before is None or str(gdb.parameter("osabi")) != "none":
        return
    for _ in range(2):
        try:
            gdb.execute(f"set osabi {before}", to_string=True)
            return
        except gdb.error:  # gdb notices only now that the connection is gone, and lets go of it, or the hart is dead
            continue  # with that, the setting is made all the same


_TYPES = (gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT)
_MEMBER = re.compile(r"(?:\.|->)\s*[A-Za-z_]\w*|\$\w+|\"[^\"]*\"|'[^']*'|0[xX][0-9a-fA-F]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_OF_TYPES = frozenset(("struct", "union", "enum", "unsigned", "signed", "const", "volatile", "sizeof"))


def evaluate_watchpoints_anew() -> None:
    """All watchpoints on memory that has an address for ever."""
    for breakpoint in gdb.breakpoints():
        if breakpoint.type in _TYPES and breakpoint.enabled and _is_global(breakpoint.expression or ""):
            with contextlib.suppress(gdb.error):
                breakpoint.enabled = False
                breakpoint.enabled = True


@contextlib.contextmanager
def watchpoints_not_compared() -> Iterator[None]:
    """While this lasts, gdb does not compare what it watches by itself, without the target: registers, and what it has
    no hardware for. Between two places that are far apart it would print any difference as a hit.
    """
    compared = [it for it in gdb.breakpoints() if it.type == gdb.BP_WATCHPOINT and it.enabled]
    for breakpoint in compared:
        breakpoint.enabled = False
    try:
        yield
    finally:
        for breakpoint in compared:
            with contextlib.suppress(gdb.error, RuntimeError):  # what it watches is not known there; it was deleted
                # Of a local variable that is not there gdb says that it deletes the watchpoint, and does not.
                gdb.execute(f"enable {breakpoint.number}", to_string=True)


def _is_global(expression: str) -> bool:
    if expression.startswith("-location "):
        return True
    names = set(_NAME.findall(_MEMBER.sub(" ", expression))) - _OF_TYPES
    return all(map(_is_global_name, names))


def _is_global_name(name: str) -> bool:
    if gdb.lookup_global_symbol(name) is not None or gdb.lookup_static_symbol(name) is not None:
        return True
    with contextlib.suppress(gdb.error):
        gdb.lookup_type(name)
        return True
    return False


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
        connection.leads_through()
        _define_hooks()


def entering() -> None:
    """gdb is about to be in the past."""
    global _away
    seen()
    _away, partial_values.active = True, registers_known()
    set_osabi_for_tracing("the connection ends")
    put_settings_aside(registers=partial_values.active)


def leaving() -> None:
    """gdb is about to be in the present, and shows the frame there with the user's settings.

    Until it is there, what resumes is still one hart's way out of the past: others must not step over breakpoints.
    """
    put_settings_back(still_there=True)


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
        put_settings_back()
        if before:
            _forget_places()
            _tell()
    elif not record_btrace.active():
        if not before:
            partial_values.active = registers_known()
        put_settings_aside(registers=partial_values.active)
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
        if connection.is_lost():
            connection.let_go()
        else:
            _tell_at_prompt()
        if not gdb.selected_inferior().pid:  # no target any more
            _through = False
            put_settings_back()
            restore_osabi()
            if connection.connected_to() is None:
                connection.forget_description()


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
            put_settings_back()
            if connection.is_trace_alone(getattr(event, "connection", None)):
                connection.forget_description()


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
        put_settings_back()
        if is_between():
            gdb.execute("disconnect", to_string=True)
            restore_osabi()
            print("rvtrace is loaded again: gdb is not connected any more (`trace connect`), the trace is let go.")
