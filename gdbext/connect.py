"""`trace connect`, `trace replay`, `trace goto`, `trace live`: the commands with which gdb goes back."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import gdb

from . import between, completing, finding, osabi, position, unwinder, who_wrote
from .going import going_back, going_either_way, goto, live
from .tracer import arguments, print_lines, tracer

STUB = ("localhost", 3333)
_PLACES = ("begin", "end", "live", "event", "-next", "-wrote")
_SECONDS = 20  # gdb waits for answers while it connects
_ADDRESS = re.compile(r"(?:(?P<host>\[[^]]+\]|[^:\s]*):)?(?P<port>[0-9]+)")


class Connect(gdb.Command):
    """Put rvtrace between gdb and the target, so that gdb can go backward.
    Usage: trace connect [-listen PORT] [HOST:PORT]

    HOST:PORT is where OpenOCD or QEMU waits for gdb; without it, where gdb is
    connected now, or localhost:3333. A connection there is, is ended first.
    Everything works as before, and besides, as far as the trace reaches:
      reverse-stepi, reverse-step, reverse-next, reverse-finish,
      reverse-continue, reverse-until, and forward again;
      breakpoints both ways, backtrace, up, finish;
      trace goto, trace live.
    In the past only pc is known, and memory that cannot change; of a tandem
    trace registers and memory, too.

    -listen PORT: do not connect, but say where to: for an IDE, which does
    that itself (`target extended-remote :PORT`). 0: any free port."""

    def __init__(self) -> None:
        super().__init__("trace connect", gdb.COMMAND_RUNNING)

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace connect`.")
        listen = _listen(words)
        if len(words) > 1:
            raise gdb.GdbError("Usage: trace connect [-listen PORT] [HOST:PORT]")
        host, port = _stub(words[0]) if words else _connected_to() or STUB
        _connect(host, port, listen)

    def complete(self, text: str, word: str | None) -> list[str]:
        return completing.words(text, word, () if "-listen" in text.split(" ")[:-1] else ("-listen",))


class Replay(gdb.Command):
    """Go backward and forward in a trace alone, without a target.
    Usage: trace replay

    gdb is connected to the trace that `trace open FILE` shows, and stands at
    its end. `disconnect` ends it."""

    def __init__(self) -> None:
        super().__init__("trace replay", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if argument.strip():
            raise gdb.GdbError("Usage: trace replay")
        _connect(None, None, None)


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
    Usage: trace live"""

    def __init__(self) -> None:
        super().__init__("trace live", gdb.COMMAND_RUNNING, gdb.COMPLETE_NONE)

    def invoke(self, argument: str, from_tty: bool) -> None:
        if argument.strip():
            raise gdb.GdbError("Usage: trace live")
        self.dont_repeat()
        print_lines(live())


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


def _listen(words: list[str]) -> int | None:
    """The port of -listen, taken out of *words*."""
    if "-listen" not in words:
        return None
    i = words.index("-listen")
    port = words[i + 1] if i + 1 < len(words) else ""
    del words[i : i + 2]
    if not port.isdecimal() or int(port) > 65535:
        raise gdb.GdbError(f"trace connect: -listen takes a port, 0 for any, got: {port or 'none'}.")
    return int(port)


def _stub(text: str) -> tuple[str, int]:
    """HOST:PORT, as `target remote` takes it."""
    match = _ADDRESS.fullmatch(text.partition("tcp:")[2] if text.startswith("tcp:") else text)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise gdb.GdbError(f"trace connect: {text} is not HOST:PORT.")
    return match["host"] or "localhost", int(match["port"])


def _connected_to() -> tuple[str, int] | None:
    """Where gdb is connected now, if that can be said with a host and a port, and is not the proxy."""
    details = getattr(getattr(gdb.selected_inferior(), "connection", None), "details", None)
    if not details:
        return None
    if position.available():
        raise gdb.GdbError("rvtrace is between gdb and the target already.")
    try:
        return _stub(details)
    except gdb.GdbError:
        return None


def _connect(host: str | None, port: int | None, listen: int | None) -> None:
    """Connect gdb through the proxy, or with *listen* say where it can be done."""
    if getattr(gdb.selected_inferior(), "connection", None) is not None:
        gdb.execute("disconnect", to_string=True)  # OpenOCD takes one gdb only
    found = tracer().request("connect", context=tracer().context(), host=host, port=port, listen=listen)
    if listen is not None:
        print(f"rvtrace waits for gdb: target extended-remote localhost:{found['port']}")
        return
    osabi.set_for_tracing("the connection ends")
    try:
        with _patiently():
            gdb.execute(f"target extended-remote localhost:{found['port']}")
    except gdb.error as error:
        osabi.restore()
        said = between.said()
        raise gdb.GdbError(said[0] if said else str(error)) from None
    between.seen()


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
