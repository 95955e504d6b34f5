"""The session's access to the CSRs of a hart: the access method (`set trace ctr-access`), and gdb's part in it.

In the middle of a request the session requests from gdb what only gdb can do:

    {"do": "packets", "packets": ["p96f", ...], "stop": true}        the replies; stop: end with the first refusal
    {"do": "registers", "accesses": [[["sctrctl", ...], 3], ...]}    {"xlen", "answers"}: values, 0, or an error text
    {"do": "monitor", "command": "..."}                              its output

Each need also has *hart*, whose thread is selected for it (null: the selected thread), and *connection*, the number of
gdb's connection to the target (null: any).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import gdb

from rvtrace_gdb.gdbext import harts, neutral, settings
from rvtrace_gdb.gdbext.client import defer_interrupt
from rvtrace_gdb.gdbext.lost_connection import refusals_suppressed

_NO_TARGET = "gdb has no target whose registers could be reached: connect it first (`target extended-remote`)"


class Refused(Exception):
    """The session's need cannot be met. *kind*: the class of the error in the session."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


# Access method


def access_params(method: str | None = None) -> dict[str, Any] | None:
    """Return the parameter `access` of a request; None if there is no target.

    *method*: auto, openocd, packets, named or usb; None means what the user has set.
    """
    method = method or settings.ctr_access()
    host, port = settings.openocd()
    found = _access_method(method, is_set=host is not None or port is not None)
    if found is None:
        return None
    if found["way"] == "openocd":
        found.update(host=host, port=port)
    number = None if found["way"] in ("usb", "auto") else connection()
    return {**found, "version": settings.ctr_version(), "connection": number}


def _access_method(method: str, *, is_set: bool) -> dict[str, Any] | None:
    """Return the access method. *is_set*: whether the user has set the address of OpenOCD's Tcl server.

    OpenOCD does not report where its Tcl server listens, but it can also be reached by gdb's `monitor`. The session
    decides whether there is a USB adapter.
    """
    if method == "usb":
        return {"way": "usb"}
    connected = gdb.selected_thread() is not None
    if method in ("auto", "openocd") and is_set:
        return {"way": "openocd"}
    if not connected:
        return {"way": method} if method in ("openocd", "auto") else None
    openocd = _is_openocd()
    if method == "openocd":
        return {"way": "monitor" if openocd else "openocd"}
    if method == "auto" and openocd:
        return {"way": "monitor"}
    if method == "named" or (method == "auto" and not _sends_packets()):
        return {"way": "named", "openocd": openocd}
    return {"way": "packets", "openocd": openocd}


def _is_openocd() -> bool:
    """Whether gdb is connected to OpenOCD; False also while the target runs, when gdb cannot find out."""
    version = ""
    with refusals_suppressed():
        version = neutral.printed("monitor version")
    return "Open On-Chip Debugger" in version


def connection() -> int | None:
    """Return the unique number of gdb's connection to the target (gdb 11 and later)."""
    return getattr(gdb.selected_inferior(), "connection_num", None)


def _sends_packets() -> bool:
    """Whether gdb can send packets: gdb 12 and later, connected to a stub."""
    return hasattr(getattr(gdb.selected_inferior(), "connection", None), "send_packet")


# Needs of the session


def answer(need: dict[str, Any]) -> dict[str, Any]:
    """Do what the session needs, and return {"result"} or {"error"}."""
    try:
        with _thread(need.get("hart")):
            _check_connection(need.get("connection"))
            return {"result": _ACTIONS[need["do"]](need)}
    except Refused as error:
        return {"error": {"message": str(error), "kind": error.kind}}
    except (gdb.error, RuntimeError, ValueError, KeyError) as error:
        return {"error": {"message": f"gdb: {error}", "kind": "Failed"}}


def _check_connection(wanted: int | None) -> None:
    if wanted is not None and connection() not in (wanted, None):
        raise Refused(
            "gdb was connected again, perhaps to another target: `trace ctr show` looks at the records there,"
            " `trace ctr stop` ends what is being recorded", "NoWay"
        )  # fmt: skip


def flush_registers() -> None:
    """Let gdb read all registers again, after they were changed without gdb. The selected frame stays selected."""
    with defer_interrupt(), contextlib.suppress(gdb.error), _selected_frame_kept():
        gdb.execute("maintenance flush register-cache", to_string=True)


def _packets(need: dict[str, Any]) -> list[str]:
    """Return the replies to packets.

    A packet goes to the stub's current thread: gdb reads pc before, which makes that the selected thread.
    """
    if len(_threads()) > 1:
        flush_registers()
        gdb.newest_frame().read_register("pc")
    connection: Any = gdb.selected_inferior().connection
    if not hasattr(connection, "send_packet"):
        raise Refused(
            "this gdb cannot send packets for rvtrace, or has no stub: `set trace ctr-access named`", "NoWay"
        )
    replies: list[str] = []
    for packet in need["packets"]:
        replies.append((connection.send_packet(packet.encode("latin-1")) or b"").decode("latin-1"))
        if need.get("stop") and _refuses(replies[-1]):
            break
    return replies


def _refuses(reply: str) -> bool:
    return not reply or (reply[0] == "E" and (len(reply) == 3 or reply[1] == "."))


def _monitor(need: dict[str, Any]) -> str:
    return neutral.printed("monitor " + need["command"])


def _access_registers(need: dict[str, Any]) -> dict[str, Any]:
    """Read and write registers by name.

    The names are looked up first: gdb takes the name of a register that does not exist for a convenience variable.
    """
    with _selected_frame_kept():
        frame = gdb.newest_frame()
        names = {register.name for register in frame.architecture().registers()}
        xlen = 8 * frame.read_register("pc").type.sizeof
        answers: list[Any] = []
        for candidates, value in need["accesses"]:
            name = next((name for name in candidates if name in names), None)
            answers.append("gdb has no such register" if name is None else _access_csr(name, value, xlen))
            if isinstance(answers[-1], str):
                break
    return {"xlen": xlen, "answers": answers}


def _access_csr(name: str, value: int | None, xlen: int) -> Any:
    try:
        if value is None:
            return int(gdb.newest_frame().read_register(name)) & ((1 << xlen) - 1)
        # After it gdb reads all registers again (value_assign in its valops.c), also those that this one maps.
        neutral.execute(f"set var ${name} = {value:#x}")
    except (gdb.error, ValueError) as error:
        return f"gdb: {error}"
    return 0


_ACTIONS = {"packets": _packets, "monitor": _monitor, "registers": _access_registers}


# Threads and frames


@contextlib.contextmanager
def _thread(hart: int | None) -> Iterator[None]:
    """Select the thread of *hart*, which must be halted, within this context; then the user's thread again."""
    selected = gdb.selected_thread()
    if selected is None or not selected.is_valid():
        raise Refused(_NO_TARGET, "NoWay")
    wanted = selected if hart is None else _hart_thread(hart, selected)
    if wanted.is_running():
        raise Refused("it runs", "HartRuns")
    if wanted.ptid == selected.ptid:
        yield
        return
    with _selected_frame_kept():
        wanted.switch()
        try:
            yield
        finally:
            selected.switch()


def _hart_thread(hart: int, selected: gdb.InferiorThread) -> gdb.InferiorThread:
    """Return the thread of a hart; a single thread whose hart is not known stands for any. Raises Refused."""
    threads = _threads() or (selected,)
    for thread in (selected, *threads):
        if harts.hart_of(thread) == hart:
            return thread
    if len(threads) == 1 and harts.is_any(selected):
        return selected
    raise Refused(f"gdb has no thread for hart {hart}", "NoWay")


def _threads() -> tuple[gdb.InferiorThread, ...]:
    """Return all threads; none if gdb cannot list them because all of them run."""
    try:
        return tuple(gdb.selected_inferior().threads())
    except gdb.error:
        return ()


@contextlib.contextmanager
def _selected_frame_kept() -> Iterator[None]:
    """Select the current frame again at the end of this context."""
    level = 0
    with contextlib.suppress(gdb.error):
        level = _level(gdb.selected_frame())
    try:
        yield
    finally:
        if level:
            with contextlib.suppress(gdb.error):
                neutral.execute(f"frame level {level}")


def _level(frame: gdb.Frame) -> int:
    level = 0
    newer = frame.newer()
    while newer is not None:
        level, newer = level + 1, newer.newer()
    return level
