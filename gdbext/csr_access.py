"""How the session reaches the CSRs of a hart: the way (`set trace ctr-access`), and gdb's own part in it.

In the middle of a request the session asks gdb for what only gdb can do:

    {"do": "packets", "packets": ["p96f", ...], "stop": true}        the replies; stop: end with the first refusal
    {"do": "registers", "accesses": [[["sctrctl", ...], 3], ...]}    {"xlen", "answers"}: values, 0, or why not
    {"do": "monitor", "command": "..."}                              what it prints

Each question has *hart*, whose thread is meant (null: the selected thread), and *connection*, the number of gdb's
connection to the target (null: any).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import settings
from rvtrace_gdb.gdbext.client import defer_interrupt

_NO_TARGET = "gdb has no target whose registers could be reached: connect it first (`target extended-remote`)"


class Refused(Exception):
    """What is needed cannot be done. *kind*: the session's class for it."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


# Which way


def way(wish: str | None = None) -> dict[str, Any] | None:
    """The parameter *access* of a request, None: there is no target. *wish*: auto, openocd, packets, named
    or usb."""
    wish = wish or settings.ctr_access()
    host, port = settings.openocd()
    found = _way(wish, asked_for=host is not None or port is not None)
    if found is None:
        return None
    if found["way"] == "openocd":
        found.update(host=host, port=port)
    number = None if found["way"] in ("usb", "auto") else connection()
    return {**found, "version": settings.ctr_version(), "connection": number}


def _way(wish: str, *, asked_for: bool) -> dict[str, Any] | None:
    """*asked_for*: it was set where OpenOCD is. OpenOCD does not say where its Tcl server listens; but it is behind
    gdb's connection, too. Whether there is a USB adapter the session knows.
    """
    if wish == "usb":
        return {"way": "usb"}
    connected = gdb.selected_thread() is not None
    if wish in ("auto", "openocd") and asked_for:
        return {"way": "openocd"}
    if not connected:
        return {"way": wish} if wish in ("openocd", "auto") else None
    openocd = _is_openocd()
    if wish == "openocd":
        return {"way": "monitor" if openocd else "openocd"}
    if wish == "auto" and openocd:
        return {"way": "monitor"}
    if wish == "named" or (wish == "auto" and not _sends_packets()):
        return {"way": "named", "openocd": openocd}
    return {"way": "packets", "openocd": openocd}


def _is_openocd() -> bool:
    """Whether it is OpenOCD that gdb is connected to; while the target runs it cannot be asked."""
    with defer_interrupt(), contextlib.suppress(gdb.error):
        return "Open On-Chip Debugger" in gdb.execute("monitor version", to_string=True)
    return False


def connection() -> int | None:
    """The number of the connection to the target (gdb 11 and later): no two have the same."""
    return getattr(gdb.selected_inferior(), "connection_num", None)


def _sends_packets() -> bool:
    """gdb 12 and later, connected to a stub."""
    return hasattr(getattr(gdb.selected_inferior(), "connection", None), "send_packet")


# What the session needs


def answer(need: dict[str, Any]) -> dict[str, Any]:
    """The answer to the session: {"result"} or {"error"}."""
    try:
        with _thread(need.get("hart")):
            _check_connection(need.get("connection"))
            return {"result": _DONE[need["do"]](need)}
    except Refused as error:
        return {"error": {"message": str(error), "kind": error.kind}}
    except (gdb.error, RuntimeError, ValueError, KeyError) as error:
        return {"error": {"message": f"gdb: {error}", "kind": "Failed"}}


def _check_connection(wanted: int | None) -> None:
    if wanted is not None and connection() not in (wanted, None):
        raise Refused(
            "gdb is connected anew, perhaps to another target: `trace ctr show` looks at the records there,"
            " `trace ctr stop` ends what is being recorded", "NoWay"
        )  # fmt: skip


def forget() -> None:
    """Registers have changed behind gdb's back: it is to read them anew. The selected frame stays."""
    with defer_interrupt(), contextlib.suppress(gdb.error), _frame_kept():
        gdb.execute("maintenance flush register-cache", to_string=True)


def _packets(need: dict[str, Any]) -> list[str]:
    """A packet goes to the thread that the stub takes for the current one: reading pc makes it the selected one."""
    if len(_threads()) > 1:
        forget()
        gdb.newest_frame().read_register("pc")
    connection: Any = gdb.selected_inferior().connection
    if not hasattr(connection, "send_packet"):
        raise Refused(
            "this gdb sends no packets of ours, or has no stub to send them to: `set trace ctr-access named`", "NoWay"
        )
    replies: list[str] = []
    for packet in need["packets"]:
        replies.append(connection.send_packet(packet.encode("latin-1")).decode("latin-1"))
        if need.get("stop") and _refuses(replies[-1]):
            break
    return replies


def _refuses(reply: str) -> bool:
    return not reply or (reply[0] == "E" and (len(reply) == 3 or reply[1] == "."))


def _monitor(need: dict[str, Any]) -> str:
    return gdb.execute("monitor " + need["command"], to_string=True)


def _registers(need: dict[str, Any]) -> dict[str, Any]:
    """gdb takes the name of a register that there is not for a variable of its own, so that is looked up first."""
    with _frame_kept():
        frame = gdb.newest_frame()
        names = {register.name for register in frame.architecture().registers()}
        xlen = 8 * frame.read_register("pc").type.sizeof
        answers: list[Any] = []
        for candidates, value in need["accesses"]:
            name = next((name for name in candidates if name in names), None)
            answers.append("gdb has no such register" if name is None else _access(name, value, xlen))
            if isinstance(answers[-1], str):
                break
    return {"xlen": xlen, "answers": answers}


def _access(name: str, value: int | None, xlen: int) -> Any:
    try:
        if value is None:
            return int(gdb.newest_frame().read_register(name)) & ((1 << xlen) - 1)
        # After it gdb reads all registers anew (value_assign in its valops.c), so also what this one shows or hides.
        gdb.execute(f"with language c -- set var ${name} = {value:#x}", to_string=True)
    except (gdb.error, ValueError) as error:
        return f"gdb: {error}"
    return 0


_DONE = {"packets": _packets, "monitor": _monitor, "registers": _registers}


# Threads and frames


@contextlib.contextmanager
def _thread(hart: int | None) -> Iterator[None]:
    """The thread that is *hart* is selected, and stands still; afterwards the one the user has selected is again."""
    selected = gdb.selected_thread()
    if selected is None or not selected.is_valid():
        raise Refused(_NO_TARGET, "NoWay")
    wanted = selected if hart is None else _of_hart(hart, selected)
    if wanted.is_running():
        raise Refused("it runs", "HartRuns")
    if wanted.ptid == selected.ptid:
        yield
        return
    with _frame_kept():
        wanted.switch()
        try:
            yield
        finally:
            selected.switch()


def _of_hart(hart: int, selected: gdb.InferiorThread) -> gdb.InferiorThread:
    """OpenOCD (-rtos hwthread) and QEMU number threads from 1 and harts from 0; where there is one thread, it is it."""
    threads = _threads() or (selected,)
    for thread in (selected, *threads):
        if thread.ptid[1] - 1 == hart:
            return thread
    if len(threads) == 1:
        return selected
    raise Refused(f"gdb has no thread for hart {hart}", "NoWay")


def _threads() -> tuple[gdb.InferiorThread, ...]:
    """Those there are; while all of them run, gdb does not look which."""
    try:
        return tuple(gdb.selected_inferior().threads())
    except gdb.error:
        return ()


@contextlib.contextmanager
def _frame_kept() -> Iterator[None]:
    """Afterwards the frame is selected that is now."""
    level = 0
    with contextlib.suppress(gdb.error):
        level = _level(gdb.selected_frame())
    try:
        yield
    finally:
        if level:
            with contextlib.suppress(gdb.error):
                gdb.execute(f"frame level {level}", to_string=True)


def _level(frame: gdb.Frame) -> int:
    level = 0
    newer = frame.newer()
    while newer is not None:
        level, newer = level + 1, newer.newer()
    return level
