"""The changes that rvtrace makes in gdb while gdb is connected through the proxy, and while gdb is in the past.

The event handlers adapt gdb's settings to where gdb is and print the notices of the proxy; hooks enter the past before
a reverse command. With some settings gdb would print wrong values in the past. They are overridden there and restored
in the present:

- `finish` prints a return value: gdb takes an unknown register for 0.
- `print entry-values`: gdb would print an error text for the entry value of each argument of each frame.
- `print frame-arguments`: where only pc is known, each argument of a frame would be `<error reading variable ...>`.
  A tandem trace records registers and memory: the user's values of these three settings apply where values are known.
- `scheduler-locking`: each hart has its own place in the past. Where another hart has stopped at a breakpoint, gdb
  would first step that hart over the breakpoint. gdb's own scheduler-locking mode "replay" does the same, for targets
  that gdb knows to be replaying.

The OS ABI is set while a bare-metal program is traced. Debian's gdb-multiarch takes every RISC-V program for GNU/Linux
and then single-steps in software, with breakpoints: that is slow, and it steps over traps. While tracing, an OS ABI
that the user left on "auto" is set to "none", and restored afterwards.

Watchpoints are re-evaluated after a jump: gdb compares with the value that the watched memory had at the place where
gdb was before, and would print a wrong "Old value". gdb evaluates a watchpoint again when it is disabled and enabled.
A watchpoint on a local variable is left alone: gdb would delete it where the variable's function does not run.
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
SETTINGS_WITHOUT_REGISTERS = (_FINISH, ("print entry-values", "no"), ("print frame-arguments", "none"))
PAST_SETTINGS = (*SETTINGS_WITHOUT_REGISTERS, (_LOCKING, "on"))

_user_settings: dict[str, str] = {}


def override_settings(*, registers: bool = False) -> None:
    """Set gdb's settings for the past. *registers*: whether registers are known there."""
    for name, value in PAST_SETTINGS:
        if not registers or (name, value) not in SETTINGS_WITHOUT_REGISTERS:
            _override_setting(name, value)


def allow_return_value(*, known: bool) -> None:
    """Let the `finish` that follows print a return value if it is *known* and the user's settings ask for it."""
    name, value = _FINISH
    if not known:
        _override_setting(name, value)
    elif name in _user_settings and _setting(name) == value:
        gdb.execute(f"set {name} {_user_settings.pop(name)}", to_string=True)


def _override_setting(name: str, value: str) -> None:
    if name not in _user_settings:
        before = _setting(name)
        if before is not None and before != value:
            _user_settings[name] = before
            gdb.execute(f"set {name} {value}", to_string=True)


def restore_settings(*, keep_locking: bool = False) -> None:
    """Restore the settings that `override_settings` changed, unless the user has changed them since.

    *keep_locking*: leave the scheduler locked, so that the other harts stay where they are.
    """
    for name, value in PAST_SETTINGS:
        if keep_locking and name == _LOCKING:
            continue
        before = _user_settings.pop(name, None)
        if before is not None and _setting(name) == value:
            with contextlib.suppress(gdb.error):  # without a target gdb has no scheduler-locking
                gdb.execute(f"set {name} {before}", to_string=True)


def _setting(name: str) -> str | None:
    """Return a setting as the user would type it; None if this gdb does not have it."""
    try:
        value = gdb.parameter(name)
    except RuntimeError:
        return None
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


_user_osabi: str | None = None


def _guessed_linux() -> bool:
    return "GNU/Linux" in gdb.execute("show osabi", to_string=True)


def set_osabi_for_tracing(until: str = "`trace stop`") -> None:
    """Set `osabi none` unless the user chose one, and print a line about it. *until*: when it will be restored."""
    global _user_osabi
    chosen = str(gdb.parameter("osabi"))
    if _user_osabi is not None or chosen != "auto" or not _guessed_linux():
        return
    _user_osabi = chosen
    gdb.execute("set osabi none", to_string=True)
    print(f"OS ABI set to none until {until} (gdb guessed GNU/Linux and would single-step in software).")


def restore_osabi() -> None:
    """Restore the OS ABI that `set_osabi_for_tracing` changed, unless the user has changed it since."""
    global _user_osabi
    before, _user_osabi = _user_osabi, None
    if before is None or str(gdb.parameter("osabi")) != "none":
        return
    for _ in range(2):
        try:
            gdb.execute(f"set osabi {before}", to_string=True)
            return
        except gdb.error:  # only now does gdb notice that the connection is lost, or that the hart is dead
            continue  # the second attempt succeeds


_TYPES = (gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT)
_MEMBER = re.compile(r"(?:\.|->)\s*[A-Za-z_]\w*|\$\w+|\"[^\"]*\"|'[^']*'|0[xX][0-9a-fA-F]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TYPE_KEYWORDS = frozenset(("struct", "union", "enum", "unsigned", "signed", "const", "volatile", "sizeof"))


def reevaluate_watchpoints() -> None:
    """Let gdb read the values of all watchpoints on static memory again."""
    for breakpoint in gdb.breakpoints():
        if breakpoint.type in _TYPES and breakpoint.enabled and _is_global(breakpoint.expression or ""):
            with contextlib.suppress(gdb.error):
                breakpoint.enabled = False
                breakpoint.enabled = True


@contextlib.contextmanager
def without_software_watchpoints() -> Iterator[None]:
    """Disable software watchpoints within this context.

    gdb itself compares the values of these (registers, and memory without a hardware watchpoint) after each step.
    Between two places that are far apart it would report any difference as a hit.
    """
    compared = [it for it in gdb.breakpoints() if it.type == gdb.BP_WATCHPOINT and it.enabled]
    for breakpoint in compared:
        breakpoint.enabled = False
    try:
        yield
    finally:
        for breakpoint in compared:
            with contextlib.suppress(gdb.error, RuntimeError):  # its value is not known there; or it was deleted
                # Where a local variable does not exist gdb prints that it deletes the watchpoint, but does not.
                gdb.execute(f"enable {breakpoint.number}", to_string=True)


def _is_global(expression: str) -> bool:
    if expression.startswith("-location "):
        return True
    names = set(_NAME.findall(_MEMBER.sub(" ", expression))) - _TYPE_KEYWORDS
    return all(map(_is_global_name, names))


def _is_global_name(name: str) -> bool:
    if gdb.lookup_global_symbol(name) is not None or gdb.lookup_static_symbol(name) is not None:
        return True
    with contextlib.suppress(gdb.error):
        gdb.lookup_type(name)
        return True
    return False


_REVERSIBLE = ("step", "stepi", "next", "nexti", "finish", "continue")
REVERSE_COMMANDS = tuple(f"reverse-{name}" for name in _REVERSIBLE)
DIRECTED_COMMANDS = (*_REVERSIBLE, "until", "advance")
"""Commands that go backward after `set exec-direction reverse`, and when an IDE sends them with --reverse."""

_is_connected = False
"""Whether gdb was connected through the proxy when this was last checked."""
_is_past = False
"""Whether gdb was in the past when it last stopped."""
_is_suggested = False
_has_prompts = False
"""Whether gdb shows prompts: notices are printed before them. Under an IDE there are none."""


def note_connection() -> None:
    """Note that gdb is connected through the proxy, and define the hooks of its commands."""
    global _is_connected
    if not _is_connected:
        _is_connected = True
        connection.attach_session()
        _define_hooks()


def prepare_past() -> None:
    """Prepare gdb's settings before gdb enters the past."""
    global _is_past
    note_connection()
    _is_past, partial_values.is_active = True, are_registers_known()
    set_osabi_for_tracing("the connection ends")
    override_settings(registers=partial_values.is_active)


def prepare_present() -> None:
    """Restore the user's settings before gdb returns to the present, so that it shows the frame there with them.

    The scheduler stays locked: the resumption that leads out of the past is that of one hart, and the other harts must
    not step over breakpoints meanwhile.
    """
    restore_settings(keep_locking=True)


def _define_hooks() -> None:
    """Define hooks that gdb runs before its commands. A hook that the user has defined is kept.

    The hooks run a command, not Python: gdb prints an error of the command `python` with a traceback.
    """
    for name in (*REVERSE_COMMANDS, *DIRECTED_COMMANDS):
        try:
            gdb.execute(f"show user hook-{name}", to_string=True)
        except gdb.error:
            gdb.execute(f"define hook-{name}\ntrace enter {name}\nend")


def take_notices() -> list[str]:
    """Return the notices that the proxy has for the user, each of them once."""
    if not tracer().has_session:
        return []
    lines: list[str] = tracer().request("past", thread_hart=selected_hart())["said"]
    return lines


def _print_notices() -> None:
    for line in take_notices():
        print_line(line)


def prompt_lines() -> list[str]:
    """Return what is printed before a prompt, for an IDE, which has none: notices, and why memory is not known."""
    return list(tracer().request("notes")["lines"]) if tracer().has_session else []


@contextlib.contextmanager
def _errors_suppressed() -> Iterator[None]:
    """Suppress errors in an event handler, which gdb would print as Python errors.

    The next command meets the same problem and reports it.
    """
    with contextlib.suppress(gdb.error, gdb.GdbError, KeyboardInterrupt):
        yield


def _on_stop(event: object) -> None:
    """Adapt the settings to where gdb has stopped. Until it stops in the present, the target does not move."""
    with _errors_suppressed():
        _update_state()


def _update_state() -> None:
    global _is_past
    if not position.is_available():
        return
    note_connection()
    before, _is_past = _is_past, position.number() is not None
    if not _is_past:
        unwinder.clear_cache()
        restore_settings()
        if before:
            _flush_registers()
            _print_notices()
    elif not record_btrace.is_active():
        if not before:
            partial_values.is_active = are_registers_known()
        override_settings(registers=partial_values.is_active)
    if not _has_prompts:
        for line in prompt_lines():
            print_line(line)


def are_registers_known(names: list[str] | None = None) -> bool:
    """Whether the trace records registers; with *names*, whether these are known here and later."""
    number = position.number()
    found: bool = tracer().request("told", thread_hart=selected_hart(), number=number, registers=names or [])["told"]
    return found


def _flush_registers() -> None:
    """Drop gdb's cached registers: it still has those of the past for the harts that did not move last."""
    if len(gdb.selected_inferior().threads()) > 1:
        gdb.execute("maint flush register-cache", to_string=True)


def _on_prompt() -> None:
    """Before gdb's prompt, print the notices of the proxy, and check that the session still runs."""
    global _is_connected, _has_prompts
    _has_prompts = True
    if not _is_connected:
        return
    with _errors_suppressed():
        if connection.is_session_lost():
            connection.disconnect()
        else:
            _print_prompt_notices()
        if not gdb.selected_inferior().pid:  # no target any more
            _is_connected = False
            restore_settings()
            restore_osabi()
            if connection.connected_to() is None:
                connection.forget_description()


def _print_prompt_notices() -> None:
    """Print the notices of the proxy. If a command failed on its way into the past, gdb is in the present again."""
    if not tracer().has_session:
        return
    found = tracer().request("past", thread_hart=selected_hart(), prompt=True)
    if found["left"]:
        gdb.execute("maint flush register-cache", to_string=True)
        _update_state()
    for line in found["said"]:
        print_line(line)


def _on_connection_removed(event: object) -> None:
    """Restore the settings when a connection has ended. In a script or under an IDE no prompt may follow."""
    if _is_connected:
        with _errors_suppressed():
            restore_settings()
            if connection.leads_to_trace_alone(getattr(event, "connection", None)):
                connection.forget_description()


def event_handlers() -> list[tuple[Any, Callable[..., None]]]:
    """Return the handlers of gdb's events: (event registry, function)."""
    found: list[tuple[Any, Callable[..., None]]] = [(gdb.events.stop, _on_stop), (gdb.events.before_prompt, _on_prompt)]
    if hasattr(gdb.events, "connection_removed"):  # gdb >= 12
        found.append((gdb.events.connection_removed, _on_connection_removed))
    return found


def is_connected() -> bool:
    """Whether rvtrace is between gdb and the target."""
    return _is_connected and position.is_available()


def is_target_unreadable() -> bool:
    """Whether rvtrace is between gdb and a target whose registers cannot be read: the past is still available."""
    return _is_connected and position.is_target_unreadable()


def suggest_connect() -> None:
    """Print a hint, once, that going backward needs `trace connect`."""
    global _is_suggested
    if not _is_suggested and not position.is_available() and gdb.selected_thread() is not None:
        _is_suggested = True
        print("`trace connect` lets gdb go backward in what is traced.")


def disconnect() -> None:
    """End gdb's connection through the proxy before rvtrace is loaded again, which ends the session."""
    with _errors_suppressed():
        restore_settings()
        if is_connected():
            gdb.execute("disconnect", to_string=True)
            restore_osabi()
            print("rvtrace is loaded again: gdb is no longer connected (`trace connect`), and the trace is closed.")
