"""Which hart a thread of gdb stands for, in the numbers of the target description: OpenOCD's order of its targets.

OpenOCD (-rtos hwthread) numbers threads by the core IDs of its configuration and names them as its targets, which may
be in another order and have holes; with a gdb server for each hart a connection has one thread without a number; and
with -rtos FreeRTOS and others threads are tasks, of which one is on the hart. So gdb asks OpenOCD once for its targets,
and the hart of a server is the one that has the mhartid gdb reads, else the one that OpenOCD has at this port. Other
stubs (QEMU) number threads from 1 and harts from 0.

OpenOCD is asked while the program is stopped, before a request to the session (`learn`), once, and where it may have
changed once in each stop: a connection that has ended is noticed by whoever asks first, and gdb's user is to see that
with the command that needs it.
All else looks at what is known, because gdb computes frames meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Callable, NamedTuple

import gdb

from rvtrace_gdb.gdbext import neutral
from rvtrace_gdb.gdbext.lost_connection import refusals_suppressed
from rvtrace_gdb.rows.answers import OFF_HART

HARTS_AT_MOST = 4096
_EACH = "monitor set _rvtrace_out {}; foreach _rvtrace_target [target names] "
_TARGETS = (
    f"{_EACH}{{catch {{$_rvtrace_target cget -gdb-port}} _rvtrace_port; lappend _rvtrace_out"
    ' "target $_rvtrace_target [$_rvtrace_target cget -coreid] $_rvtrace_port"}; join $_rvtrace_out "\\n"'
)
_HART_IDS = (
    f'{_EACH}{{if {{[$_rvtrace_target curstate] eq "halted" && ![catch {{$_rvtrace_target get_reg -force mhartid}}'
    ' _rvtrace_said]} {lappend _rvtrace_out "$_rvtrace_target $_rvtrace_said"}}; join $_rvtrace_out "\\n"'
)
_TARGET = re.compile(r"^target (\S+) (-?\d+) (\S*)", re.MULTILINE)
_HART_ID = re.compile(r"^(\S+) mhartid (0x[0-9a-fA-F]+)", re.MULTILINE)
_NAME = re.compile(r"Name: ([^,]+)")
_CURRENT = re.compile(r'received: "QC(?:p[0-9a-fA-F]+\.)?([0-9a-fA-F]+)"')


class _OpenOcdTarget(NamedTuple):
    """A target of OpenOCD's. *port*: that of its gdb server, None if it has none of its own."""

    name: str
    core: int
    port: int | None


class _ConnectionHarts:
    """What is known of the threads of one connection of gdb. *targets*: those of OpenOCD, none with other stubs.

    *threads*: those of the stop that was looked at last; gdb's own list would ask the stub. *served*: the hart of a gdb
    server without harts as threads; None if OpenOCD has one alone, which stands for any. *current*: the number of the
    task that is on the hart.
    """

    def __init__(self, connection: int | None) -> None:
        self.connection = connection
        self.targets: list[_OpenOcdTarget] = []
        self.threads: tuple[gdb.InferiorThread, ...] = ()
        self.served: int | None = None
        self.current: int | None = None
        self._named: dict[tuple[int, int, int], str | None] = {}
        self._ids: dict[int, int] = {}  # harts by mhartid
        self._stop: int | None = None
        self.stay = False
        """The harts of the threads do not change, until there is a new thread."""

    def knows(self, thread: gdb.InferiorThread, stop: int) -> bool:
        """Return whether this stop has been looked at, or need not be, and the thread was there."""
        return (self.stay or self._stop == stop) and thread in self.threads

    def look(self, stop: int, port: int | None) -> None:
        """Ask OpenOCD, once, for its targets; find the one of this server, the threads of this stop, and which task is
        on the hart. *port*: where gdb is connected. Raises gdb.error; the next command asks again then.
        """
        if not self.targets:
            found = _TARGET.findall(neutral.printed(_TARGETS))
            self.targets = [
                _OpenOcdTarget(name, int(core), int(at) if at.isdigit() else None) for name, core, at in found
            ]
        self.threads = tuple(gdb.selected_inferior().threads())
        is_served = len(self.targets) > 1 and _hart_number(gdb.selected_thread()) is None
        if is_served:
            self.served = self._served(port)
        has_tasks = self._look_for_tasks()
        self._stop, self.stay = stop, bool(self.targets) and not is_served and not has_tasks

    def _served(self, port: int | None) -> int | None:
        """Return the hart of a server that has no harts as threads: by mhartid, else by its port. OpenOCD may have let
        the server go on with another hart of a group.
        """
        own = _own_hart_id()
        if own is not None and own not in self._ids:
            said = {name: int(value, 16) for name, value in _HART_ID.findall(neutral.printed(_HART_IDS))}
            known = [said.get(target.name) for target in self.targets]
            self._ids.update({it: hart for hart, it in enumerate(known) if it is not None and known.count(it) == 1})
        by_port = _only(i for i, target in enumerate(self.targets) if port is not None and target.port == port)
        return by_port if own is None else self._ids.get(own, by_port)

    def _look_for_tasks(self) -> bool:
        """Look whether threads are tasks, and which one is on the hart."""
        self._named = {thread.ptid: self._named.get(thread.ptid) or _thread_name(thread) for thread in self.threads}
        self.current = None
        has_tasks = len(self.threads) > 1 and any(map(self.is_task, self.threads))
        if has_tasks:
            said = _CURRENT.search(neutral.printed("maintenance packet qC"))
            self.current = int(said[1], 16) if said else None
        return has_tasks

    def is_task(self, thread: gdb.InferiorThread) -> bool:
        """Return whether a thread is a task of an operating system: those of harts have the names of their targets."""
        if not self.targets or len(self._named) < 2:
            return False
        name = self._named.get(thread.ptid)
        if name is None:
            return _hart_number(thread) is None
        return name not in [target.name for target in self.targets]

    def hart(self, thread: gdb.InferiorThread) -> int | None:
        """Return the hart of a thread, as `hart_of`."""
        number = _hart_number(thread)
        if self.is_task(thread):
            return self.served if self.current in (None, 0, thread.ptid[1]) else OFF_HART
        if not self.targets:
            return number
        named = self._named.get(thread.ptid)
        by_name = _only(i for i, target in enumerate(self.targets) if target.name == named)
        by_core = _only(i for i, target in enumerate(self.targets) if target.core == number)
        found = by_core if by_name is None else by_name
        return self.served if found is None else found


_known = _ConnectionHarts(None)


def learn(*, stop: int, port: int | None, is_gone: Callable[[], bool]) -> None:
    """Find out what the threads of gdb's connection to an OpenOCD are, if that is possible now, and not known yet.

    *stop*: a number of its own for each stop of the program. *port*: where gdb is connected. *is_gone*: whether the
    target is, so that nothing can be asked.
    """
    global _known
    thread = gdb.selected_thread()
    if thread is None or not thread.is_valid() or thread.is_running():
        return
    number = getattr(gdb.selected_inferior(), "connection_num", None)
    if _known.connection != number:
        _known = _ConnectionHarts(number)
    if _known.knows(thread, stop) or is_gone():
        return
    with refusals_suppressed():
        _known.look(stop, port)


def on_new_thread(event: object) -> None:
    """Let the threads be looked at again: gdb has found another one."""
    _known.stay = False


def hart_of(thread: gdb.InferiorThread | None) -> int | None:
    """Return the hart that a thread stands for; None if that is not known, OFF_HART for a task that is on none."""
    if thread is None or not thread.is_valid():
        return None
    if _known.connection != getattr(gdb.selected_inferior(), "connection_num", None):
        return _hart_number(thread)
    return _known.hart(thread)


def is_any(thread: gdb.InferiorThread) -> bool:
    """Return whether a connection's only thread may stand for any hart: OpenOCD has not said which one it is."""
    return not _known.targets or hart_of(thread) is None


def selected_hart() -> int | None:
    """Return the hart of the selected thread, as `hart_of`."""
    return hart_of(gdb.selected_thread())


def table() -> list[list[int | None]]:
    """Return [thread number in the remote protocol, hart] of each thread that has another hart than its number says."""
    harts = [[thread.ptid[1], hart_of(thread)] for thread in _known.threads if thread.is_valid()]
    return harts if any(hart != _in_order(number or 0) for number, hart in harts) else []


def on_hart() -> int | None:
    """Return gdb's number of the thread that is on a hart, if the selected one is not."""
    if selected_hart() != OFF_HART:
        return None
    return next((it.num for it in _known.threads if it.is_valid() and hart_of(it) != OFF_HART), None)


def candidates() -> int:
    """Return how many harts the selected thread may be, 0 if it is known which one it is."""
    return len(_known.targets) if selected_hart() is None else 0


def _hart_number(thread: gdb.InferiorThread | None) -> int | None:
    """Return the hart by the number of its thread. Threads of an operating system, and the one thread of a target that
    has none, have large numbers, or 0.
    """
    return _in_order(thread.ptid[1]) if thread is not None and thread.is_valid() else None


def _in_order(number: int) -> int | None:
    return number - 1 if 0 < number <= HARTS_AT_MOST else None


def _thread_name(thread: gdb.InferiorThread) -> str | None:
    """Return the stub's name of a thread, None if it has none; the user may have named it otherwise."""
    details: Any = getattr(thread, "details", None)  # gdb 9
    found = _NAME.match(details or "")
    return found[1].strip() if found else thread.name


def _own_hart_id() -> int | None:
    """Return the mhartid that gdb reads, None if it cannot."""
    try:
        return int(gdb.newest_frame().read_register("mhartid")) & neutral.address_mask()
    except (gdb.error, ValueError):
        return None


def _only(harts: Iterable[int]) -> int | None:
    """Return the only one of some numbers, None if there are none or several."""
    numbers = list(harts)
    return numbers[0] if len(numbers) == 1 else None
