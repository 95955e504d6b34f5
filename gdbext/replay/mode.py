"""Being in the past: the changes that rvtrace makes in gdb while gdb is connected through the proxy, and in the past.

`mode` is the one object that knows whether gdb is there. Its event handlers adapt gdb's settings to where gdb is and
print the notices of the proxy; hooks enter the past before a reverse command. With some settings gdb would print wrong
values in the past. They are put aside there and restored in the present:

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
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import neutral, settings
from rvtrace_gdb.gdbext.harts import selected_hart
from rvtrace_gdb.gdbext.replay import partial_values, position, position_display, record_btrace, unwinder
from rvtrace_gdb.gdbext.replay.connection import connection
from rvtrace_gdb.gdbext.replay.line_steps import line_steps
from rvtrace_gdb.gdbext.text import print_at_stop
from rvtrace_gdb.gdbext.tracer import print_lines, tracer

_LOCKING = "scheduler-locking"
_FINISH = ("print finish", "off")
SETTINGS_WITHOUT_REGISTERS = (_FINISH, ("print entry-values", "no"), ("print frame-arguments", "none"))
PAST_SETTINGS = (*SETTINGS_WITHOUT_REGISTERS, (_LOCKING, "on"))
_REVERSIBLE = ("step", "stepi", "next", "nexti", "finish", "continue")
REVERSE_COMMANDS = tuple(f"reverse-{name}" for name in _REVERSIBLE)
DIRECTED_COMMANDS = (*_REVERSIBLE, "until", "advance")
"""Commands that go backward after `set exec-direction reverse`, and when an IDE sends them with --reverse."""


class SavedSettings:
    """The user's settings that are put aside in the past: gdb's names, and the values."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def put_aside(self, *, registers: bool) -> None:
        """Set gdb's settings for the past. *registers*: whether registers are known there."""
        for name, value in PAST_SETTINGS:
            if not registers or (name, value) not in SETTINGS_WITHOUT_REGISTERS:
                self._replace(name, value)

    def restore(self, *, keep_locking: bool = False) -> None:
        """Restore the settings that were put aside, unless the user has changed them since.

        *keep_locking*: leave the scheduler locked, so that the other harts stay where they are.
        """
        for name, value in PAST_SETTINGS:
            if keep_locking and name == _LOCKING:
                continue
            before = self._values.pop(name, None)
            if before is not None and _setting(name) == value:
                with contextlib.suppress(gdb.error):  # without a target gdb has no scheduler-locking
                    gdb.execute(f"set {name} {before}", to_string=True)

    def allow_return_value(self, *, known: bool) -> None:
        """Let the `finish` that follows print a return value if it is *known* and the user's settings ask for it."""
        name, value = _FINISH
        if not known:
            self._replace(name, value)
        elif name in self._values and _setting(name) == value:
            gdb.execute(f"set {name} {self._values.pop(name)}", to_string=True)

    def _replace(self, name: str, value: str) -> None:
        before = _setting(name)
        if name not in self._values and before is not None and before != value:
            self._values[name] = before
            gdb.execute(f"set {name} {value}", to_string=True)


def _setting(name: str) -> str | None:
    """Return a setting as the user would type it; None if this gdb does not have it."""
    try:
        value = gdb.parameter(name)
    except RuntimeError:
        return None
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


class OsAbi:
    """gdb's OS ABI while tracing: "none" in place of GNU/Linux, if the user has left it on "auto"."""

    def __init__(self) -> None:
        self._user: str | None = None
        self._until = ""

    def set_for_tracing(self, until: str = "`trace stop`") -> None:
        """Set `osabi none` unless the user chose one. *until*: when it will be restored."""
        chosen = str(gdb.parameter("osabi"))
        guessed_linux = "GNU/Linux" in neutral.printed("show osabi")
        if self._user is not None or chosen != "auto" or not guessed_linux:
            return
        self._user, self._until = chosen, until
        with contextlib.suppress(gdb.error):  # it is set, but the registers of a hart without power cannot be read
            gdb.execute("set osabi none", to_string=True)

    def lines(self) -> list[str]:
        """Return a line for `trace status` while gdb's OS ABI is not the one it guessed."""
        if self._user is None or str(gdb.parameter("osabi")) != "none":
            return []
        why = "gdb guessed GNU/Linux and would single-step in software"
        return [f"gdb:      OS ABI none until {self._until} ({why})"]

    def restore(self) -> None:
        """Restore the OS ABI that `set_for_tracing` changed, unless the user has changed it since."""
        before, self._user = self._user, None
        if before is None or str(gdb.parameter("osabi")) != "none":
            return
        for _ in range(2):
            try:
                gdb.execute(f"set osabi {before}", to_string=True)
                return
            except gdb.error:  # only now does gdb notice that the connection is lost, or that the hart is dead
                continue  # the second attempt succeeds


class ReplayMode:
    """Whether gdb is connected through the proxy and in the past, and what is different in gdb meanwhile."""

    def __init__(self) -> None:
        self.settings, self.osabi = SavedSettings(), OsAbi()
        self._is_connected = False  # through the proxy, when this was last checked
        self._is_past = False  # when gdb last stopped
        self._is_suggested = False
        self._has_prompts = False  # notices are printed before them; under an IDE there are none

    # Where gdb is

    @property
    def is_connected(self) -> bool:
        """Whether rvtrace is between gdb and the target."""
        return self._is_connected and position.is_available()

    @property
    def has_past(self) -> bool:
        """Whether gdb can go back: also if the registers of the target cannot be read any more."""
        return position.is_available() or (self._is_connected and position.is_target_unreadable())

    @property
    def has_prompts(self) -> bool:
        """Whether gdb shows prompts, to somebody who types commands; else an IDE has it, or a script."""
        return self._has_prompts

    def are_registers_known(self, names: list[str] | None = None) -> bool:
        """Whether the trace records registers; with *names*, whether these are known here and later."""
        place = {"thread_hart": selected_hart(), "number": position.number()}
        found: bool = tracer().request("registers_known", registers=names or [], **place)["known"]
        return found

    # Ways in and out

    def connect(self) -> None:
        """Note that gdb is connected through the proxy, and define the hooks of its commands."""
        if not self._is_connected:
            self._is_connected = True
            connection.attach_session()
            _define_hooks()

    def enter(self) -> None:
        """Prepare gdb before it enters the past."""
        self.connect()
        self._is_past, partial_values.is_active = True, self.are_registers_known()
        self.osabi.set_for_tracing("the connection ends")
        self.settings.put_aside(registers=partial_values.is_active)
        unwinder.clear_cache()

    def follow_program(self) -> None:
        """Let the past be that of the program that gdb has now, as the lists are: after `file`, in the past."""
        if not self._is_past or not self.is_connected or not tracer().has_session:
            return
        with _errors_suppressed():
            context = tracer().context()
            lines = tracer().request("follow_program", context=context)["lines"] if context["elf"] else []
            if lines:
                unwinder.clear_cache()
                gdb.execute("maint flush register-cache", to_string=True)
                print_lines({"lines": lines})

    def follow_values(self) -> None:
        """Show the values of the past that are wanted now: after `set trace values`, in the past."""
        if not self._is_past or not self.is_connected or not tracer().has_session:
            return
        with _errors_suppressed():
            tracer().request("follow_program", context=tracer().context())
            self.settings.restore(keep_locking=True)
            self.enter()
            gdb.execute("maint flush register-cache", to_string=True)

    def leave(self) -> None:
        """Restore the user's settings before gdb returns to the present, so that it shows the frame there with them.

        The scheduler stays locked: the resumption that leads out of the past is that of one hart, and the other harts
        must not step over breakpoints meanwhile.
        """
        self.settings.restore(keep_locking=True)
        unwinder.clear_cache()

    def disconnect(self) -> None:
        """End gdb's connection through the proxy before rvtrace is loaded again, which ends the session."""
        with _errors_suppressed():
            self.settings.restore()
            if self.is_connected:
                gdb.execute("disconnect", to_string=True)
                self.osabi.restore()
                again = "gdb is no longer connected (`trace connect`), and the trace is closed"
                print(f"rvtrace is loaded again: {again}.")

    # Notices

    def take_notices(self) -> list[str]:
        """Return the notices that the proxy has for the user, each of them once."""
        if not tracer().has_session:
            return []
        lines: list[str] = tracer().request("past", thread_hart=selected_hart())["said"]
        return lines

    def prompt_lines(self) -> list[str]:
        """Return what is printed before a prompt, for an IDE, which has none: notices, and why memory is not known."""
        return list(tracer().request("notes")["lines"]) if tracer().has_session else []

    def suggest_connect(self) -> None:
        """Print a hint, once, that going backward needs `trace connect`."""
        if not self._is_suggested and not position.is_available() and gdb.selected_thread() is not None:
            self._is_suggested = True
            print("`trace connect` lets gdb go backward in what is traced.")

    # Events of gdb

    def event_handlers(self) -> list[tuple[Any, Callable[..., None]]]:
        """Return the handlers of gdb's events: (event registry, function)."""
        found: list[tuple[Any, Callable[..., None]]] = [
            (gdb.events.stop, self.on_stop),
            (gdb.events.before_prompt, self.on_prompt),
        ]
        if hasattr(gdb.events, "connection_removed"):  # gdb >= 12
            found.append((gdb.events.connection_removed, self.on_connection_removed))
        return found

    def on_stop(self, event: object) -> None:
        """Adapt the settings to where gdb has stopped, and print where in the past that is.

        Until gdb stops in the present, the target does not move.
        """
        with _errors_suppressed():
            line_steps.end()
            self._update()
            if self._is_past:
                position_display.print_after_stop(event)

    def on_prompt(self) -> None:
        """Before gdb's prompt, print the notices of the proxy, and check that the session still runs."""
        self._has_prompts = True
        with _errors_suppressed():
            line_steps.end()
        position_display.past_prompt.update()
        if not self._is_connected:
            return
        with _errors_suppressed():
            if connection.is_session_lost():
                connection.disconnect()
            else:
                self._print_prompt_notices()
            if not gdb.selected_inferior().pid:  # no target any more
                self._is_connected = False
                self.settings.restore()
                self.osabi.restore()
                if connection.connected_to() is None:
                    connection.forget_description()

    def on_connection_removed(self, event: object) -> None:
        """Restore the settings when a connection has ended. In a script or under an IDE no prompt may follow."""
        if self._is_connected:
            with _errors_suppressed():
                self.settings.restore()
                if connection.leads_to_trace_alone(getattr(event, "connection", None)):
                    connection.forget_description()

    def _update(self) -> None:
        if not position.is_available():
            return
        self.connect()
        before, self._is_past = self._is_past, position.number() is not None
        if not self._is_past:
            unwinder.clear_cache()
            self.settings.restore()
            if before:
                _flush_registers_of_other_harts()
                _print_at_stop(self.take_notices())
        elif not record_btrace.is_active():
            if not before:
                partial_values.is_active = self.are_registers_known()
            self.settings.put_aside(registers=partial_values.is_active)
        if not self._has_prompts:
            _print_at_stop(self.prompt_lines())

    def _print_prompt_notices(self) -> None:
        """Print the notices of the proxy. If a command failed on its way into the past, gdb is in the present again."""
        if not tracer().has_session:
            return
        found = tracer().request("past", thread_hart=selected_hart(), prompt=True)
        if found["left"]:
            gdb.execute("maint flush register-cache", to_string=True)
            self._update()
        _print_at_stop(found["said"])


def _define_hooks() -> None:
    """Define hooks that gdb runs before its commands. A hook that the user has defined is kept.

    The hooks run a command, not Python: gdb prints an error of the command `python` with a traceback.
    """
    for name in (*REVERSE_COMMANDS, *DIRECTED_COMMANDS):
        try:
            gdb.execute(f"show user hook-{name}", to_string=True)
        except gdb.error:
            gdb.execute(f"define hook-{name}\ntrace enter {name}\nend")
    try:
        gdb.execute("help info hookpost-record", to_string=True)
    except gdb.error:
        gdb.execute("define info hookpost-record\ntrace position -past\nend")


@contextlib.contextmanager
def _errors_suppressed() -> Iterator[None]:
    """Suppress errors in an event handler, which gdb would print as Python errors.

    The next command meets the same problem and reports it.
    """
    with contextlib.suppress(gdb.error, gdb.GdbError, KeyboardInterrupt):
        yield


def _flush_registers_of_other_harts() -> None:
    """Drop gdb's cached registers: it still has those of the past for the harts that did not move last."""
    if len(gdb.selected_inferior().threads()) > 1:
        gdb.execute("maint flush register-cache", to_string=True)


def _print_at_stop(lines: list[str]) -> None:
    for line in lines:
        print_at_stop(line)


mode = ReplayMode()
settings.changed["values"] = mode.follow_values
