"""`trace goto`, `trace live` and the reverse commands: the ways into the past and back.

gdb's own commands step, and the proxy answers them. `trace goto` sends the session the destination of the next
resumption, and resumes, so that gdb, its TUI and IDEs see a stop like any other. Before a reverse command of gdb, a
hook enters the past (`trace enter`).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext import completion, neutral, results, settings
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.commands import find, intervals, who_wrote, why
from rvtrace_gdb.gdbext.commands.connect import connect_gdb
from rvtrace_gdb.gdbext.harts import hart_of, selected_hart
from rvtrace_gdb.gdbext.options import is_plain_number
from rvtrace_gdb.gdbext.replay import position, position_display, record_btrace, unwinder
from rvtrace_gdb.gdbext.replay.connection import connection
from rvtrace_gdb.gdbext.replay.line_steps import line_steps
from rvtrace_gdb.gdbext.replay.mode import DIRECTED_COMMANDS, mode
from rvtrace_gdb.gdbext.replay.viewer import viewer
from rvtrace_gdb.gdbext.tracer import print_lines, tracer
from rvtrace_gdb.rows.list_rows import FoundRow
from rvtrace_gdb.rows.running_thread import RunningThread

_NUMBER = re.compile(r"-?[0-9]{1,4000}")  # `int` refuses more digits


def goto(where: str) -> dict[str, Any]:
    """Go to a place, as `trace goto` takes it. Returns {number: None for the present, lines}. Raises gdb.GdbError."""
    where = where.strip()
    return moved("goto", lambda: _target_params(where), to_present=where == "live")


def moved(
    method: str, params: Callable[[], dict[str, Any]], *, to_present: bool = False, forks: bool = False
) -> dict[str, Any]:
    """Go where a request of the session leads, see `goto`. *forks*: into a fork. Raises gdb.GdbError."""
    if record_btrace.is_active():
        raise gdb.GdbError("gdb uses its own recording now (`trace native`): use `record goto`, or `trace native off`.")
    _check_stopped()
    if not to_present:
        _replay_without_target(params)
        if position.number() is None:
            unwinder.check_calls()
    with _thread_of_hart(None if to_present else settings.hart()) as switched:
        place = {**params(), **position.present_pc(None)}
        found: dict[str, Any] = tracer().request(method, context=tracer().context(), **place)
    if found["moves"]:
        _jump_to(None if forks else found["number"])
    lines = [*switched, *found["lines"]]
    if found["match"] is not None:
        lines.append(find.event_line(FoundRow(*found["match"]), found["of"]))
    return {**found, "lines": lines}


def _replay_without_target(params: Callable[[], dict[str, Any]]) -> None:
    """Do `trace replay` where gdb has a trace to go back in, and no target."""
    if gdb.selected_thread() is None and connection.connected_to() is None and tracer().has_session:
        params()  # raises what is wrong with it
        print("There is no target: this is `trace replay`.")
        connect_gdb(None, None, None)


@contextlib.contextmanager
def _thread_of_hart(wanted: int | None) -> Iterator[list[str]]:
    """Select the thread of the requested hart, and keep it selected unless the context fails.

    Yields the lines to be printed about it. If there is no such thread, nothing changes: the session decides whether
    the selected one will do.
    """
    before, hart = gdb.selected_thread(), selected_hart()
    threads = gdb.selected_inferior().threads() if None not in (wanted, hart) and wanted != hart else ()
    found = next((thread for thread in threads if hart_of(thread) == wanted), None)
    if before is None or found is None:
        yield []
        return
    found.switch()
    try:
        yield [f"Thread {found.num} is selected now, which is hart {wanted} (`set trace hart`)."]
    except BaseException:
        before.switch()
        raise


def live() -> dict[str, Any]:
    """Return to the present; the result is that of `goto`."""
    return goto("live")


def enter_past(command: str = "") -> None:
    """Enter the past at its end, before a command that goes backward, if gdb is connected through the proxy.

    A step remembers the frame it began in. gdb identifies the frame of the present by its registers and those of the
    past by the trace, so that a step from the present would not find its frame again; in the past all frames are
    identified by the trace. Raises gdb.GdbError with the reason why there is no past.
    """
    if record_btrace.is_active() or not mode.has_past:
        return
    mode.connect()
    if position.number() is None:
        unwinder.check_calls()
        found = tracer().request("enter", context=tracer().context(), **position.present_pc(None))
        mode.enter()
        print_lines(found)
        gdb.execute("maint flush register-cache", to_string=True)
        reevaluate_watchpoints()  # in the present a stub may not tell gdb of all hits
    if command == "reverse-finish":
        _note_entry(gdb.selected_frame())


def enter_past_if_reverse(command: str) -> None:
    """Enter the past before a command that goes backward if gdb's execution direction is reverse.

    The text of `show exec-direction` has the direction in effect, the parameter only what the user set: MI's --reverse
    sets the direction for one command.
    """
    if mode.has_past and "everse" in neutral.printed("show exec-direction"):
        enter_past(f"reverse-{command}")
    elif command == "finish" and not record_btrace.is_active() and position.number() is not None:
        _allow_return_value(gdb.selected_frame())


def _allow_return_value(frame: gdb.Frame) -> None:
    """Let `finish` print a function's return value only if its registers are known: gdb takes unknown ones for 0."""
    if not mode.are_registers_known():
        return
    function = frame.function()
    result = None if function is None or function.type is None else function.type.target()
    kind = None if result is None else result.strip_typedefs()
    names = ["fa0"] if kind is not None and kind.code == gdb.TYPE_CODE_FLT else ["a0"]
    if kind is not None and kind.sizeof > neutral.address_bytes():
        names.append(names[0][:-1] + "1")
    mode.settings.allow_return_value(known=mode.are_registers_known(names))


def _note_entry(frame: gdb.Frame) -> None:
    """Let the next backward resumption end where this frame's function was entered, not where a recursive call was.

    `reverse-finish` sets a breakpoint at the function's beginning, which does not distinguish these.
    """
    caller = frame.older()
    called = position.number_of(caller) if caller is not None else None
    if called is not None and not _has_breakpoint(frame):
        tracer().request("entered_at", thread_hart=selected_hart(), number=called + 1)


def _has_breakpoint(frame: gdb.Frame) -> bool:
    """Whether the user has a breakpoint where a frame's function begins."""
    function = frame.function()
    address = None if function is None else function.value(frame).address
    start = None if address is None else int(address)
    locations = (it for breakpoint in gdb.breakpoints() for it in getattr(breakpoint, "locations", ()))
    return any(it.enabled and it.owner.enabled and it.address == start for it in locations)


def _check_stopped() -> None:
    """Raise gdb.GdbError if the program runs: the session notes a destination, and the resumption must follow now."""
    thread = gdb.selected_thread()
    if thread is not None and thread.is_running():
        raise gdb.GdbError("The program is running: stop it first (`interrupt`).")


def _jump_to(number: int | None) -> None:
    """Resume: the next resumption leads to the destination, and stops there. *number*: None for the present."""
    if number is None:
        mode.leave()
    else:
        mode.enter()
    try:
        with without_software_watchpoints():
            gdb.execute("stepi")
    except gdb.error as error:
        if position.number() is None:
            mode.leave()
        raise gdb.GdbError(str(error)) from None
    reevaluate_watchpoints()


def _target_params(where: str) -> dict[str, Any]:
    """Return the argument of `trace goto` as parameters of the request. Raises gdb.GdbError."""
    if where == "cursor":
        return {"number": viewer.cursor_number()}
    if where in ("begin", "start", "end", "live"):
        return {"to": "begin" if where == "start" else where}
    if _NUMBER.fullmatch(where):
        return {"from_end": int(where[1:])} if where.startswith("-") else {"number": int(where)}
    by_writer = re.match(r"--?wrote\b\s*", where)
    if by_writer:
        return who_wrote.goto_params(where[by_writer.end() :])
    by_row = re.match(r"--?why\b\s*", where)
    if by_row:
        return why.goto_params(where[by_row.end() :])
    words = where.split(None, 1)
    if words[:1] == ["worst"]:
        return {"number": intervals.worst("".join(words[1:]), "trace goto worst")}
    forward = re.match(r"-next\b\s*", where)
    rest = where[forward.end() :] if forward else where
    if not rest:
        raise gdb.GdbError("trace goto: where to? A number, begin, end, live, FUNCTION, event: see `help trace goto`.")
    direction = "forth" if forward else "back"
    kinds = rest.split()
    if kinds[0] == "event":
        nth = int(kinds.pop()) if len(kinds) > 1 and is_plain_number(kinds[-1]) else None
        return {"what": "events", "kinds": kinds[1:], "nth": nth, "direction": direction}
    if kinds[0] in _ENDS and len(kinds) > 1 and set(kinds[1:]) <= {"event", *find.KINDS}:
        wanted = [kind for kind in kinds[1:] if kind != "event"]
        return {"what": "events", "kinds": wanted, **_ENDS[kinds[0]], "direction": direction}
    return {"what": "executions", "direction": direction, **find.parse_location(rest, "trace goto")}


_ENDS: dict[str, dict[str, Any]] = {"first": {"nth": 1}, "last": {"last": True}}
_TYPES = (gdb.BP_HARDWARE_WATCHPOINT, gdb.BP_ACCESS_WATCHPOINT)
_MEMBER = re.compile(r"(?:\.|->)\s*[A-Za-z_]\w*|\$\w+|\"[^\"]*\"|'[^']*'|0[xX][0-9a-fA-F]+")
_NAME = re.compile(r"[A-Za-z_]\w*")
_TYPE_KEYWORDS = frozenset(("struct", "union", "enum", "unsigned", "signed", "const", "volatile", "sizeof"))


def reevaluate_watchpoints() -> None:
    """Let gdb read the values of all watchpoints on static memory again, after a jump.

    gdb compares with the value that the memory had at the place where gdb was before, and would print a wrong "Old
    value". It evaluates a watchpoint again when it is disabled and enabled. A watchpoint on a local variable is left
    alone: gdb would delete it where the variable's function does not run.
    """
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


_PLACES = ("begin", "cursor", "end", "live", "event", "first", "last", "worst", "-next", "-wrote", "-why")


class GotoCommand(Command, name="trace goto", kind=gdb.COMMAND_RUNNING):
    """Go to a place in the past, and show it.
    Usage: trace goto NUMBER | begin | end | live
           trace goto [-next] FUNCTION | FILE:LINE | *EXPRESSION
           trace goto [-next] event [KIND ...] [NUMBER]
           trace goto first | last KIND | event
           trace goto -wrote $REGISTER | EXPRESSION | ADDRESS[,SIZE]
           trace goto -why ROW
           trace goto worst [FUNCTION | FROM TO]
           trace goto cursor

    NUMBER    of an instruction, as `trace history` and others print it; -1 is
              the newest, -2 the one before
    begin     the oldest instruction; `end`, the newest
    live      back to the present; `trace live` is the same
    FUNCTION  where it was entered last before this place, or FILE:LINE or
              *EXPRESSION, an address, ran: what `trace find` finds;
              of several places, as there, the nearest
    event     where the last event before this place happened, of any KIND
              as for `trace events`; NUMBER: the one with that number in the
              list `trace events [KIND ...]` prints
    first     the first event of a KIND in the trace, as `first exception`, or
              of all; `last`, the last one
    -next     the next one after this place, instead of the last one before it
    -wrote    the instruction that wrote it last: see `trace who-wrote`
    -why      the instruction of a row of the last answer: see `trace why`
    worst     where the longest interval begins: of those that `trace intervals`
              measured last, or of what it takes
    cursor    where the cursor of the waveform viewer is: see `help trace waves`

    The instruction at the place is the one that runs next. From there, gdb's
    commands go backward and forward: `reverse-step`, `step`, `finish`, `bt`."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        if argument.strip() == "live":
            _go_live()
        else:
            print_lines(goto(argument))

    def complete(self, text: str, word: str | None) -> list[str] | int:
        """Complete the argument; gdb 16 calls first with *word* None."""
        before = text.split(" ")[:-1]
        if before and before[0] in ("-wrote", "--wrote"):
            return who_wrote.complete_storage(text, word)
        if "event" in before or any(end in before for end in _ENDS):
            ends = () if "event" in before else ("event",)
            return completion.words(text, word, (*ends, *find.KINDS))
        return completion.words_and_places(text, word, ("event",) if any(before) else _PLACES)


class LiveCommand(Command, name="trace live", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Return to the present.
    Usage: trace live

    After `trace replay`: to the target that gdb was connected to before, with
    `trace connect`."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        self.dont_repeat()
        _go_live()


class EnterCommand(Command, name="trace enter", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Go into the past, at its end, without moving.
    Usage: trace enter [COMMAND]

    gdb's commands that go backward need this first. rvtrace's hooks for them
    do it; a hook of your own should do it as well: `trace enter reverse-next`."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        command = argument.strip()
        if command in DIRECTED_COMMANDS:
            enter_past_if_reverse(command)
        else:
            enter_past(command)
        if position.number() is not None and not record_btrace.is_active():
            line_steps.begin(command, unwinder.unwinder.level())


class Backward(gdb.Command):
    """`reverse-until` and `reverse-advance`, which gdb itself does not have."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__doc__ = (
            f"Execute backward what `{name}` does forward.\nUsage: reverse-{name} [LOCATION]\n\nSee `help {name}`."
        )
        super().__init__(f"reverse-{name}", gdb.COMMAND_RUNNING, gdb.COMPLETE_LOCATION)

    def invoke(self, argument: str, from_tty: bool) -> None:
        enter_past()
        gdb.execute("set exec-direction reverse")
        try:
            gdb.execute(f"{self._name} {argument}", from_tty)
        finally:
            gdb.execute("set exec-direction forward")


class PositionCommand(Command, name="trace position", kind=gdb.COMMAND_STATUS, completer=gdb.COMPLETE_NONE):
    """Show where gdb is in the past.
    Usage: trace position [-past]

    -past     print nothing in the present

    `trace goto` goes elsewhere. `set trace position prompt` shows it in the
    prompt; without that it is shown after each stop."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        only_past = argument.strip() in ("-past", "--past")
        if not only_past:
            self.refuse_argument(argument)
        found = position_display.place()
        if found is not None:
            runner = RunningThread(**tracer().request("place", thread_hart=selected_hart(), tasks=True)["runner"])
            where = position_display.text(*found)
            results.add(runner.fields)
            print(f"In the past, at instruction {', '.join(filter(None, (where, runner.text)))}.")
        elif only_past:
            return
        elif position.is_forked():
            number = tracer().request("place", thread_hart=selected_hart())["number"]
            print(f"In a fork, made at instruction {number}.")
        elif record_btrace.is_active():
            print("gdb uses its own recording now (`trace native`): see `info record`.")
        else:
            print(f"In the present{'' if position.is_available() else ': `trace connect` lets gdb go back'}.")


def _go_live() -> None:
    """Return to the present; from a trace alone, connect gdb to the target that it was connected to before."""
    if not connection.is_without_target():
        print_lines(live())
        return
    stub = connection.last_target
    if stub is None:
        raise gdb.GdbError(
            "there is no present to return to: the trace is replayed without a target; `trace connect HOST:PORT`"
            " connects gdb to a target"
        )
    connect_gdb(*stub, None)
    print("gdb is connected to the target at {}:{} again.".format(*stub))


COMMANDS = (
    GotoCommand,
    LiveCommand,
    EnterCommand,
    PositionCommand,
    lambda: Backward("until"),
    lambda: Backward("advance"),
)
