"""`trace connect` and `trace replay`: connect gdb to the target through rvtrace, or to a trace without a target."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import completion, known_target, neutral
from rvtrace_gdb.gdbext.command import Command
from rvtrace_gdb.gdbext.options import is_plain_number
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.replay.connection import Stub, connection
from rvtrace_gdb.gdbext.replay.mode import mode
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import arguments, program, tracer

STUB = ("localhost", 3333)
_SOCKET = "" if os.name == "posix" else None
"""The empty path: the proxy waits for gdb at a unix socket in a folder of its own, which gdb supports since 8.3."""
_SECONDS = 20  # gdb waits for answers while it connects
_ADDRESS = re.compile(r"(?:(?P<host>\[[^]]+\]|[^:\s]*):)?(?P<port>[0-9]+)")


class ConnectCommand(Command, name="trace connect", kind=gdb.COMMAND_RUNNING):
    """Put rvtrace between gdb and the target, so that gdb can go backward.
    Usage: trace connect [-listen PORT|PATH] [HOST:PORT|PATH]

    HOST:PORT, or the path of a unix socket, is where OpenOCD or QEMU waits
    for gdb; without it, where gdb is connected now, or was last, or
    localhost:3333. What gdb is connected to now is kept until the new
    connection stands.
    Everything works as before; and as far back as the trace goes, so do:
      reverse-stepi, reverse-step, reverse-next, reverse-finish,
      reverse-continue, reverse-until, and forward again;
      breakpoints both ways, backtrace, up, finish;
      trace goto, trace live.
    In the past only pc is known, and memory that cannot change; with a tandem
    trace, and registers and memory.

    gdb connects through a socket that no other user of the machine can
    connect to.

    -listen PORT: do not connect, but print where to connect: for an IDE, which
    connects itself (`target extended-remote :PORT`). 0: any free port. Any
    user of the machine can connect to a port. -listen /PATH: the same at a
    unix socket, for you alone (`target extended-remote /PATH`)."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        words = arguments(argument, "See `help trace connect`.")
        listen = _listen(words)
        if len(words) > 1:
            raise gdb.GdbError("Usage: trace connect [-listen PORT|PATH] [HOST:PORT|PATH]")
        host, port = _stub(words[0]) if words else _connected_to() or STUB
        connect_gdb(host, port, listen)
        if listen is None:
            known_target.propose()

    def complete(self, text: str, word: str | None) -> list[str]:
        return completion.words(text, word, () if "-listen" in text.split(" ")[:-1] else ("-listen",))


class ReplayCommand(Command, name="trace replay", kind=gdb.COMMAND_RUNNING, completer=gdb.COMPLETE_NONE):
    """Go backward and forward in a trace, without a target.
    Usage: trace replay

    gdb is connected to the trace that `trace open FILE` shows, and is at its
    end. `disconnect` ends it; `trace live` connects gdb again to the target
    that it was connected to before with `trace connect`."""

    def invoke(self, argument: str, from_tty: bool) -> None:
        self.refuse_argument(argument)
        connected = connection.connected_to()
        if connected is not None and not connection.is_without_target() and gdb.selected_inferior().pid:
            target = (
                "{}:{}".format(*connection.target() or ())
                if connection.is_ours() and connection.target()
                else connected
            )
            back = "`trace live`" if connection.is_ours() else f"`trace connect {target}`"
            raise gdb.GdbError(
                f"trace replay: gdb is connected to a target ({target}), and cannot replay a trace at the same"
                f" time: `disconnect` first; {back} connects it again later."
            )
        _name_program(connect_gdb(None, None, None)["elf"])


def _listen(words: list[str]) -> int | str | None:
    """Remove -listen from *words* and return its port or path, None without it. Raises gdb.GdbError."""
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
    """Parse HOST:PORT, or the path of a unix socket, as `target remote` takes it; port 0 for a path. Raises
    gdb.GdbError.
    """
    path = text.removeprefix("unix:")
    if text.startswith("unix:") or "/" in text:
        return os.path.abspath(os.path.expanduser(path)), 0
    match = _ADDRESS.fullmatch(text.partition("tcp:")[2] if text.startswith("tcp:") else text)
    if match is None or not 0 < int(match["port"]) < 65536:
        raise gdb.GdbError(f"trace connect: {text} is not HOST:PORT, nor the path of a unix socket.")
    return match["host"] or "localhost", int(match["port"])


def _connected_to() -> Stub | None:
    """Return the target that gdb is connected to, or was last; None if it has no host and port."""
    if connection.is_ours():
        if position.is_available() and not connection.is_without_target():
            raise gdb.GdbError("rvtrace is already between gdb and the target.")
        return connection.target() or connection.last_target
    details = connection.connected_to()
    if details is None:
        return connection.last_target
    if position.is_available():
        raise gdb.GdbError("rvtrace is already between gdb and the target.")
    if details.lstrip().startswith("|"):
        raise gdb.GdbError(
            f"trace connect: gdb is connected through a pipe ({details.strip()}), whose other end is gdb's alone: start"
            " that program by itself, and `trace connect HOST:PORT` where it waits for gdb. Nothing has changed."
        )
    try:
        return _stub(details)
    except gdb.GdbError:
        raise gdb.GdbError(
            f"trace connect: gdb is connected to {details}, which is not HOST:PORT: `trace connect HOST:PORT` says"
            " where OpenOCD or QEMU waits for gdb. Nothing has changed."
        ) from None


def _name_program(elf: str | None) -> None:
    """Print how to give gdb the program, if it has none. *elf*: the program that the trace is decoded with."""
    if elf and program() is None:
        gives = "loads the one that the trace is decoded with"
        print_line(f"gdb has no program, so it knows no names: `file {elf}` {gives}.")


def connect_gdb(host: str | None, port: int | None, listen: int | str | None) -> dict[str, Any]:
    """Connect gdb through the proxy, or with *listen* print where an IDE can connect. Returns the session's answer.

    Without *host* and *port* gdb is connected to a trace alone. Raises gdb.GdbError.
    """
    other = connection.other_inferior()
    if other is not None:
        raise gdb.GdbError(
            f"trace connect: rvtrace is between inferior {other} and its target, and serves one inferior at a time:"
            f" `disconnect` in it first (`inferior {other}`). Nothing has changed."
        )
    if _is_connected_to(host, port):
        gdb.execute("disconnect", to_string=True)  # OpenOCD takes one gdb only
    at: dict[str, int | str | None] = {"listen": listen} if isinstance(listen, int) else {"socket": listen or _SOCKET}
    found: dict[str, Any] = tracer().request("connect", context=tracer().context(), host=host, port=port, **at)
    where = found["where"]
    if getattr(gdb.selected_inferior(), "connection", None) is not None:
        gdb.execute("disconnect", to_string=True)  # not before the new connection stands
    connection.remember(where, None if host is None or port is None else (host, port))
    if listen is not None:
        print(f"rvtrace waits for gdb: target extended-remote {where}")
        return found
    mode.osabi.set_for_tracing("the connection ends")
    try:
        with _long_timeout():
            gdb.execute(f"target extended-remote {where}")
    except gdb.error as error:
        mode.osabi.restore()
        notices = mode.take_notices()
        raise gdb.GdbError(notices[0] if notices else str(error)) from None
    mode.connect()
    return found


def _is_connected_to(host: str | None, port: int | None) -> bool:
    """Return whether gdb is connected to this place now, directly or through rvtrace. None stands for a trace alone."""
    details = connection.connected_to()
    if details is None:
        return False
    if connection.is_ours():
        return connection.target() == (None if host is None or port is None else (host, port))
    try:
        now = _stub(details)
    except gdb.GdbError:
        return False
    return host is not None and now[1] == port and _address_of(now[0]) == _address_of(host)


def _address_of(host: str) -> str:
    """Return the address of a host, or the path of a socket as it is."""
    import socket  # only here: every start of gdb would wait for it

    with contextlib.suppress(OSError, UnicodeError):
        return socket.gethostbyname(host)
    return host


@contextlib.contextmanager
def _long_timeout() -> Iterator[None]:
    """Raise gdb's timeout: OpenOCD may be slow to answer, and the proxy notices sooner if nothing answers at all."""
    given = gdb.parameter("remotetimeout")
    before = given if isinstance(given, int) else None
    neutral.set_number("remotetimeout", max(before or 0, _SECONDS))
    try:
        yield
    finally:
        neutral.set_number("remotetimeout", before)


COMMANDS = (ConnectCommand, ReplayCommand)
