"""`trace connect`, `trace replay`, `trace goto`, `trace live`: the commands with which gdb goes back."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import between, completing, finding, osabi, position, stubs, unwinder, who_wrote
from rvtrace_gdb.gdbext.going import going_back, going_either_way, goto, live
from rvtrace_gdb.gdbext.options import is_plain_number
from rvtrace_gdb.gdbext.printing import print_line
from rvtrace_gdb.gdbext.tracer import arguments, print_lines, program, tracer

STUB = ("localhost", 3333)
_PLACES = ("begin", "end", "live", "event", "-next", "-wrote")
_SOCKET = "" if os.name == "posix" else None
"""Where the proxy waits for gdb: at a socket in a folder of its own. gdb connects to such since 8.3."""
_SECONDS = 20  # gdb waits for answers while it connects
_ADDRESS = re.compile(r"(?:(?P<host>\[[^]]+\]|[^:\s]*):)?(?P<port>[0-9]+)")


class Connect(gdb.Command):
    """Put rvtrace between gdb and the target, so that gdb can go backward.
    Usage: trace connect [-listen PORT|PATH] [HOST:PORT]

    HOST:PORT is where OpenOCD or QEMU waits for gdb; without it, where gdb is
    connected now, or was last, or localhost:3333. A connection there is, is
    ended first.
    Everything works as before, and besides, as far as the trace reaches:
      reverse-stepi, reverse-step, reverse-next, reverse-finish,
      reverse-continue, reverse-until, and forward again;
      breakpoints both ways, backtrace, up, finish;
      trace goto, trace live.
    In the past only pc is known, and memory that cannot change; of a tandem
    trace registers and memory, too.

    gdb connects through a socket that no other user of the machine can
    connect to.

    -listen PORT: do not connect, but say where to: for an IDE, which does
    that itself (`target extended-remote :PORT`). 0: any free port. Any user
    of the machine can connect to a port. -listen /PATH: the same at a unix
    socket, for you alone (`target extended-remote /PATH`)."""

    def __init__(self) -> None:
        super().__init__("trace connect", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace connect`.")
        listen = _listen(words)
        if len(words) > 1:
            raise gdb.GdbError("Usage: trace connect [-listen PORT|PATH] [HOST:PORT]")
        host, port = _stub(words[0]) if words else _connected_to() or STUB
        _connect(host, port, listen)

    def complete(self, text: str, word: str | None) -> list[str]:
        return completing.words(text, word, () if "-listen" in text.split(" ")[:-1] else ("-listen",))


class Replay(gdb.Command):
    """Go backward and forward in a trace alone, without a target.
    Usage: trace replay

    gdb is connected to the trace that `trace open FILE` shows, and stands at
    its end. `disconnect` ends it; `trace live` connects gdb again to the
    target that it was connected to before with `trace connect`."""

    def __init__(self) -> None:
        super().__init__("trace replay", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if argument.strip():
            raise gdb.GdbError("Usage: trace replay")
        connected = stubs.connected_to()
        if connected is not None and not stubs.in_trace_alone() and gdb.selected_inferior().pid:
            target = "{}:{}".format(*stubs.behind() or ()) if stubs.is_ours() and stubs.behind() else connected
            back = "`trace live`" if stubs.is_ours() else f"`trace connect {target}`"
            raise gdb.GdbError(
                f"trace replay: gdb is connected to a target ({target}), and cannot go back in a trace alone besides:"
                f" `disconnect` it before; {back} connects it again then."
            )
        _name_program(_connect(None, None, None)["elf"])


class Goto(gdb.Command):
    """Go to a place in the past, and show it.
    Usage: trace goto NUMBER | begin | end | live
           trace goto [-next] FUNCTION | FILE:LINE | *EXPRESSION
           trace goto [-next] event [KIND ...] [NUMBER]
           trace goto -wrote $REGISTER | EXPRESSION | ADDRESS[,SIZE]

    NUMBER    of an instruction, as `trace history` and others print it; -1 is
              the newest, -2 the one before
    begin     the oldest instruction; `end`, the newest
    live      back to the present; `trace live` is the same
    FUNCTION  where it was entered last before this place, or FILE:LINE or
              *EXPRESSION, an address, ran: what `trace find` finds
    event     where the last event before this place happened, of any KIND
              as for `trace events`; NUMBER: the one with that number in the
              list `trace events [KIND ...]` prints
    -next     not the last one before this place but the next one behind it
    -wrote    the instruction that wrote it last: see `trace who-wrote`

    The instruction at the place is the one that runs next. From there, gdb's
    commands go backward and forward: `reverse-step`, `step`, `finish`, `bt`."""

    def __init__(self) -> None:
        super().__init__("trace goto", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.dont_repeat()
        if argument.strip() == "live":
            _go_live()
        else:
            print_lines(goto(argument))

    def complete(self, text: str, word: str | None) -> list[str] | int:
        """gdb asks twice, first without *word*."""
        before = text.split(" ")[:-1]
        if before and before[0] in ("-wrote", "--wrote"):
            return who_wrote.written_to(text, word)
        if "event" in before:
            return completing.words(text, word, finding.KINDS)
        return completing.words_and_places(text, word, ("event",) if any(before) else _PLACES)


class Live(gdb.Command):
    """Return to the present.
    Usage: trace live

    From a trace alone (`trace replay`): to the target that gdb was connected
    to before, with `trace connect`."""

    def __init__(self) -> None:
        super().__init__("trace live", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if argument.strip():
            raise gdb.GdbError("Usage: trace live")
        self.dont_repeat()
        _go_live()


class Enter(gdb.Command):
    """Go into the past, at its end, without moving.
    Usage: trace enter [COMMAND]

    gdb's commands that go backward need that first. rvtrace's hooks of them
    do it; a hook of your own should, too: `trace enter reverse-next`."""

    def __init__(self) -> None:
        super().__init__("trace enter", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        command = argument.strip()
        if command in between.EITHER_WAY:
            going_either_way(command)
        else:
            going_back(command)


class Backward(gdb.Command):
    """A command of gdb that has no reverse twin: `until` and `advance`, backward."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.__doc__ = (
            f"Execute backward what `{name}` does forward.\nUsage: reverse-{name} [LOCATION]\n\nSee `help {name}`."
        )
        super().__init__(f"reverse-{name}", gdb.COMMAND_RUNNING, gdb.COMPLETE_LOCATION)

    def invoke(self, argument: str, from_tty: bool) -> None:
        going_back()
        gdb.execute("set exec-direction reverse")
        try:
            gdb.execute(f"{self._name} {argument}", from_tty)
        finally:
            gdb.execute("set exec-direction forward")


def _listen(words: list[str]) -> int | str | None:
    """The port or the path of -listen, taken out of *words*."""
    if "-listen" not in words:
        return None
    i = words.index("-listen")
    place = words[i + 1] if i + 1 < len(words) else ""
    del words[i : i + 2]
    if "/" in place:
        return os.path.abspath(os.path.expanduser(place))
    if not is_plain_number(place) or int(place) > 65535:
        got = place or "none"
        raise gdb.GdbError(f"trace connect: -listen takes a port, 0 for any, or the path of a socket, got: {got}.")
    return int(place)


def _stub(text: str) -> tuple[str, int]:
    """HOST:PORT, as `target remote` takes it."""
    match = _ADDRESS.fullmatch(text.partition("tcp:")[2] if text.startswith("tcp:") else text)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise gdb.GdbError(f"trace connect: {text} is not HOST:PORT.")
    return match["host"] or "localhost", int(match["port"])


def _connected_to() -> stubs.Stub | None:
    """The target that gdb is connected to, or was last, if that can be said with a host and a port."""
    if stubs.is_ours():
        if position.available() and not stubs.in_trace_alone():
            raise gdb.GdbError("rvtrace is between gdb and the target already.")
        return stubs.behind() or stubs.last()
    details = stubs.connected_to()
    if details is None:
        return stubs.last()
    if position.available():
        raise gdb.GdbError("rvtrace is between gdb and the target already.")
    try:
        return _stub(details)
    except gdb.GdbError:
        return None


def _go_live() -> None:
    """To the present; from a trace alone, to the target there was before."""
    if not stubs.in_trace_alone():
        print_lines(live())
        return
    stub = stubs.last()
    if stub is None:
        raise gdb.GdbError(
            "there is no present to return to: this is a trace alone; `trace connect HOST:PORT` connects gdb to a"
            " target"
        )
    _connect(*stub, None)
    print("gdb is connected to the target at {}:{} again.".format(*stub))


def _name_program(elf: str | None) -> None:
    """Where gdb has no program, it has no names, either. *elf*: that with which the trace is read."""
    if elf and program() is None:
        gives = "gives it the one that the trace is read with"
        print_line(f"gdb has no program, and knows no names: `file {elf}` {gives}.")


def _connect(host: str | None, port: int | None, listen: int | str | None) -> dict[str, Any]:
    """Connect gdb through the proxy, or with *listen* say where it can be done. The session's answer."""
    if getattr(gdb.selected_inferior(), "connection", None) is not None:
        gdb.execute("disconnect", to_string=True)  # OpenOCD takes one gdb only
    at: dict[str, int | str | None] = {"listen": listen} if isinstance(listen, int) else {"socket": listen or _SOCKET}
    found: dict[str, Any] = tracer().request("connect", context=tracer().context(), host=host, port=port, **at)
    where = found["where"]
    stubs.remember(where, None if host is None or port is None else (host, port))
    if listen is not None:
        print(f"rvtrace waits for gdb: target extended-remote {where}")
        return found
    osabi.set_for_tracing("the connection ends")
    try:
        with _patiently():
            gdb.execute(f"target extended-remote {where}")
    except gdb.error as error:
        osabi.restore()
        said = between.said()
        raise gdb.GdbError(said[0] if said else str(error)) from None
    between.seen()
    return found


@contextlib.contextmanager
def _patiently() -> Iterator[None]:
    """OpenOCD may take long before it says anything; the proxy finds out sooner whether there is anything at all."""
    before = int(gdb.parameter("remotetimeout") or 0)
    gdb.execute(f"set remotetimeout {max(before, _SECONDS)}")
    try:
        yield
    finally:
        gdb.execute(f"set remotetimeout {before}")


COMMANDS = (
    Connect,
    Replay,
    Goto,
    Live,
    Enter,
    lambda: Backward("until"),
    lambda: Backward("advance"),
    *unwinder.COMMANDS,
)
