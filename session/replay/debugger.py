"""gdb while it goes back in time: the proxy between it and the target, and its positions in the past."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.positions import history_number, history_number_if_known
from rvtrace_gdb.rows.answers import OFF_HART
from rvtrace_gdb.rows.list_rows import FoundRow
from rvtrace_gdb.session.capture.model import DebuggerWrites
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import OtherTarget
from rvtrace_gdb.session.fork.errors import NoFork
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.proxy.backend import Extension, ExtensionContext, HartExtensionContext
from rvtrace_gdb.session.proxy.protocol.packets import hart_of, number_of
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup, TargetState
from rvtrace_gdb.session.proxy.writes.write_log import WriteLog
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.queries.lists.search import ListQuery
from rvtrace_gdb.session.replay.reverse_lines import lines_before
from rvtrace_gdb.session.replay.timeline import Timeline
from rvtrace_gdb.session.selected_history import HistoryNumber, SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.text import warning

T = TypeVar("T")
RECONSTRUCTED = (
    "note:     registers and memory are reconstructed from what ran, if nothing else writes the memory: `trace values`"
)
_CONTRADICTED = (
    "instruction {}, at {:#x}, cannot have done what the trace says with the values that are reconstructed: something"
    " else wrote memory, and less is believed: `trace values`"
)
_NONE_BEFORE = "there is none before this place; `trace goto -next ...` goes to those after it"
_NONE_AFTER = "there is none after this place; without -next it goes to those before it"


class NotConnected(RvtraceError):
    """gdb is not connected to its target through the proxy."""

    def __init__(self) -> None:
        super().__init__("going back needs rvtrace between gdb and the target: `trace connect` puts it there")


class NoPlace(RvtraceError):
    """The requested place is not in the history."""


class NoThread(RvtraceError):
    """`set trace hart` selects a hart for which gdb has no thread."""

    def __init__(self, hart: int, thread_hart: int) -> None:
        super().__init__(
            f"`set trace hart` names hart {hart}, for which gdb has no thread that could go there: `set trace hart"
            f" auto` selects the past of hart {thread_hart}, that of the selected thread"
        )


class NotOnHart(RvtraceError):
    """The debugger's thread is a task of an operating system that does not run. *other*: the thread that does."""

    def __init__(self, other: int | None) -> None:
        which = "the thread that runs" if other is None else f"thread {other}"
        hint = "" if other is None else f" (`thread {other}`)"
        super().__init__(f"this task is not on a hart, so it has no past of its own: {which} is, and has one{hint}")


class TargetGone(RvtraceError):
    """The connection to the target has ended, so there is no present to return to."""

    def __init__(self) -> None:
        super().__init__(
            "there is no present to return to: the target's end of the connection is gone; `disconnect` ends gdb's, and"
            " `trace connect` connects it again"
        )


class NoTarget(RvtraceError):
    """The debugger has a trace alone, without a target."""

    def __init__(self) -> None:
        super().__init__(
            "there is no present to return to: the trace is replayed without a target; `trace connect` connects gdb"
            " to a target"
        )


class Destination(NamedTuple):
    """Where the next resumption leads: the number that `trace history` prints, None for the present.

    *moves*: False if gdb is there already. *match*: the event there, of *of* such events, if an event was asked for.
    """

    number: int | None
    lines: list[str]
    moves: bool = True
    match: FoundRow | None = None
    of: int = 0


class PlainService(NamedTuple):
    """What serves debuggers without rvtrace's commands. Each as in `ProxySetup`."""

    tell: Callable[[str], None]
    is_once: bool = False
    keeps_acknowledgments: bool = True
    worded: Callable[[str], str] = str


class ProxyDebugger:
    """A gdb that uses a stub through the proxy, or none. *service*: it has not rvtrace's commands."""

    def __init__(
        self,
        session: Session,
        context: Context,
        extensions: Sequence[Extension] = (),
        service: PlainService | None = None,
    ) -> None:
        self._session, self._service = session, service
        self.context = context
        """The program and settings that gdb sent last."""
        self.timeline = Timeline(self._select, self.past_of)
        self.extensions = extensions
        self.writes = WriteLog()
        """What gdb writes to the target."""
        self._proxy: Proxy | None = None
        self._resumes_before = 0  # resumptions of earlier connections
        self._stub: StubAddress | None = None
        self._xlen = 64
        self._is_noted = False  # that values are reconstructed
        self._contradicted: History | None = None  # of which it was said that they are wrong

    def past_of(self, selected: SelectedHistory, progress: Progress = silent) -> Past | None:
        """Return the values that are known in a history, by the settings that gdb sent last."""
        return past_of(self._session, selected._replace(values=self.context.values), progress)

    @property
    def proxy(self) -> Proxy:
        """The proxy. Raises `NotConnected`."""
        if self._proxy is None:
            raise NotConnected
        return self._proxy

    @property
    def connected(self) -> bool:
        return self._proxy is not None and self._proxy.connected

    @property
    def resumes(self) -> int:
        return self._resumes_before + (0 if self._proxy is None else self._proxy.resumes)

    @property
    def own_connection(self) -> ExtensionContext | None:
        """The connection to gdb and the stub for code in the proxy's own thread; None in other threads."""
        return None if self._proxy is None else self._proxy.own_connection

    def hart_of(self, thread: str | None) -> int | None:
        """Return the hart of a thread of the remote protocol: the one that gdb says, else the one of its number.

        Where gdb's threads are tasks, one that gdb has not seen yet is on no hart.
        """
        said = dict(self.context.threads)
        number = number_of(thread)
        if number not in said and OFF_HART in said.values():
            return OFF_HART
        return said[number] if number in said else hart_of(thread)

    def away(self) -> bool:
        """Return whether it is in the past."""
        return self.timeline.away()

    def number(self, hart: int | None) -> int | None:
        """Return the number of a hart's position in the past, None in the present."""
        position = self.timeline.position(hart)
        return history_number_if_known(position)

    def place(self, hart: int | None) -> HistoryNumber | None:
        """Return the place in a history where a thread's hart is; None in the present."""
        number = self.number(hart)
        return None if number is None else HistoryNumber(self.timeline.selected(hart).hart, number)

    def call(self, work: Callable[[HartExtensionContext], T]) -> T | None:
        """Return the result of *work* with the connection to the stub, as `Proxy.call` does; None without one."""
        return self.proxy.call(work) if self.connected else None

    def trace_begins(self, *, now: bool = True) -> None:
        """Note that a trace was started: from now on it is noted what the debugger writes. *now*: just now."""
        self.writes.begin(is_running=self._is_at(TargetState.RUNNING), is_known=now and self.connected)
        self.corrects_state()

    def corrects_state(self) -> None:
        """Let what is saved of the target where a trace ends be what the program left."""
        live = self._session.live
        if live is not None and live.state is not None:
            live.state.kept = self.writes.kept

    def trace_ends(self) -> None:
        """Note that the trace was stopped."""
        self.writes.end()

    def written(self, harts: Sequence[int]) -> tuple[DebuggerWrites, ...]:
        """Return what was written at each halt of these harts since the trace was started, () if it is not known."""
        return self.writes.written(harts)

    def _is_at(self, state: TargetState) -> bool:
        return self._proxy is not None and self._proxy.target is state

    @property
    def is_target_gone(self) -> bool:
        """Whether the target has ended the connection."""
        return self._is_at(TargetState.LOST)

    @property
    def has_target(self) -> bool:
        """Whether there is a target besides the trace."""
        return self._stub is not None

    def listen(
        self,
        stub: StubAddress | None,
        port: int = 0,
        progress: Progress = silent,
        path: str | None = None,
    ) -> Proxy:
        """Connect to *stub*, and wait for gdb at a port (0: any) or at the socket *path* ("": in a private folder).

        Raises RvtraceError.
        """
        if stub is None:
            with self._session.lock:
                for hart in self._replayed(progress):  # errors are reported now: gdb would only see the connection end
                    self.timeline.prepare(hart, progress)  # while gdb connects there is no progress
        xlen = 64 if stub is not None else self._session.capture().xlen
        same = stub == self._stub and (stub is not None or xlen == self._xlen)
        if self._proxy is not None and same and _is_at(self._proxy, port, path):
            return self._proxy
        if stub == self._stub:  # it may take one connection only; else that stands until the new one does
            self.close()
        self.context = replace(self.context, threads=())  # those of the connection before
        setup = ProxySetup(
            past=self.timeline, lock=self._session.proxy_lock, stub_address=stub, hart_of=self.hart_of,
            extensions=self.extensions, xlen=xlen, harts=self._replayed,
            hold_at_present=self._service is None or stub is not None,
            **({} if self._service is None else {**self._service._asdict(), "kept_xlen": self._kept_xlen}),
            line_before=lines_before(self._session, self.timeline),
        )  # fmt: skip
        proxy = Proxy(setup, self.writes)
        proxy.start(port, path)
        self.close()
        self._proxy, self._stub, self._xlen = proxy, stub, xlen
        return proxy

    def _kept_xlen(self) -> int | None:
        """Return XLEN of the trace, None if there is none."""
        return self._session.capture().xlen if self._session.has_trace() else None

    def close(self) -> None:
        """End the connections."""
        if self._proxy is not None:
            self._resumes_before = self.resumes + 1  # what ran while gdb was not connected is unknown
            self._proxy.close()
            self._proxy = None

    def enter(self, progress: Progress = silent, pc: int | None = None) -> Destination:
        """Enter the past at its end, if gdb is in the present. *pc*: where the program is in the present, if known.

        Raises NotConnected, and as `Session.history`.
        """
        self._check_connected()
        hart = self.context.thread_hart
        joins = self._enter_past(hart, progress, pc) if self.timeline.position(hart) is None else []
        position = self.timeline.position(hart)
        return Destination(history_number_if_known(position), [*self.timeline.selected(hart).lines, *joins])

    def follow_program(self, progress: Progress = silent) -> list[str]:
        """Decode the past anew where it was decoded with another program than gdb has now, and return what is to be
        said of it. Raises as `Session.history`.
        """
        if not self.timeline.away() or not self.timeline.follow(progress):
            return []
        hart = self.context.thread_hart
        number, length = self.number(hart), len(self.timeline.selected(hart).history)
        where = "" if number is None else f": it is at {min(number, length)} of {length}"
        said = f"The past was decoded anew, with the program that gdb has now{where}."
        return [said, *self.timeline.selected(hart).lines]

    def leave_end(self) -> bool:
        """Return from the end of the past to the present, which is the same place. False if gdb was not there."""
        readable = self.connected and self.proxy.target not in (
            TargetState.ABSENT, TargetState.LOST, TargetState.UNREADABLE
        )  # fmt: skip
        leaves = readable and self.timeline.all_at_end()
        if leaves:
            self.timeline.leave()
        return leaves

    def go_live(self) -> Destination:
        """Let the next resumption lead to the present."""
        self._check_connected()
        if not self.timeline.away():
            return Destination(None, ["This is the present."], moves=False)
        if not self.has_target:
            raise NoTarget
        if self.proxy.target is TargetState.LOST:
            raise TargetGone
        self.proxy.jump(self.context.thread_hart, None)
        return Destination(None, [])

    def go_to(self, number: int, progress: Progress = silent, pc: int | None = None) -> Destination:
        """Let the next resumption lead to a number of the history; negative numbers count from its end.

        Raises NoPlace, and as `enter`.
        """
        selected = self.past_history(progress)
        length = len(selected.history)
        position = number - 1 if number > 0 else length + number
        if not number or not 0 <= position < length:
            raise NoPlace(f"there is no number {number} in the history, which has 1 to {length}")
        return self._jump_to(selected, position, pc, progress)

    def go_into_fork(self, number: int | None, progress: Progress = silent) -> Destination:
        """Let the next resumption lead into a fork, which is made at a number of the history; None: where the hart is.

        Raises NoFork, NoPlace, and as `enter`.
        """
        from rvtrace_gdb.session.fork.fork import ForkedHart  # the simulated hart: few need it
        from rvtrace_gdb.session.replay.running_fork import RunningFork

        hart = self.context.thread_hart
        selected, here = self.past_history(progress), self.timeline.position(hart)
        if number is None and here is None:
            raise NoFork("a fork of the past: of which place? Go there first, or give its number")
        at = number if number is not None else history_number(here or 0)
        is_end = number is None and here == len(selected.history)
        leads = Destination(at, []) if is_end else self.go_to(at, progress)
        position = len(selected.history) if is_end else (leads.number or 1) - 1
        past = self.past_of(selected, progress)
        fork = ForkedHart(past, selected, self._session.capture(), position)
        self.timeline.forks.begin_at(hart, RunningFork(fork))
        self.proxy.jump(hart, position)
        line = f"A fork from number {at} on: nothing of it reaches the target, and going back leaves it."
        return leads._replace(lines=[*leads.lines, line])

    def leave_fork(self) -> Destination:
        """Let the next resumption lead to where the fork of the hart was made. Raises NoFork."""
        hart = self.context.thread_hart
        fork = self.timeline.forks.fork_of(hart)
        if fork is None:
            raise NoFork("there is no fork to leave")
        self.proxy.jump(hart, fork.fork.position)
        return Destination(fork.number, [])

    def go_to_found(
        self,
        query: ListQuery,
        number: int | None,
        direction: int,
        progress: Progress = silent,
        pc: int | None = None,
    ) -> Destination:
        """Let the next resumption lead to a result of *query*: the one numbered *number* in its list (-1: the last),
        or else the nearest one in a direction (-1: back).

        Raises NoPlace, BadQuery, and as `enter`.
        """
        selected = self.past_history(progress)
        results = self._session.searches.results(query, selected, progress)
        if not len(results):
            raise NoPlace(selected.unless_earlier(results.none_message))
        if number is None:
            here = self._here(selected)
            if direction < 0 and 0 < here < len(selected.history) and selected.history.pc(here - 1) == GAP:
                here -= 1  # the event of this gap leads to this place
            number = results.nearest(here, direction)
        if number is None:
            raise NoPlace(f"{_NONE_BEFORE}{selected.earlier()}" if direction < 0 else _NONE_AFTER)
        if number < 0:
            number = max(len(results) + 1 + number, 0)
        leads = self._jump_to(selected, results.position(number), pc, progress)
        if isinstance(query, ExecutionQuery):
            return leads
        return leads._replace(match=results.rows(number, number + 1)[0], of=len(results))

    def _here(self, selected: SelectedHistory) -> int:
        """Return the hart's position in this history, its end if the hart is in the present or in another history."""
        hart = self.context.thread_hart
        position = self.timeline.position(hart)
        return position if position is not None and self._is_in(hart, selected) else len(selected.history)

    def _is_in(self, hart: int | None, selected: SelectedHistory) -> bool:
        """Return whether a thread's hart is in the past, in this history."""
        return self.timeline.position(hart) is not None and self.timeline.selected(hart).hart == selected.hart

    def _jump_to(
        self, selected: SelectedHistory, position: int, pc: int | None, progress: Progress
    ) -> Destination:
        hart = self.context.thread_hart
        joins: list[str] = []
        if self.timeline.position(hart) is None:
            joins = self._enter_past(hart, progress, pc)
        elif not self._is_in(hart, selected):
            self.timeline.begin_anew(hart, progress)
        position = self.timeline.nearest_instruction(hart, min(position, len(selected.history) - 1))
        self.proxy.jump(hart, position)
        return Destination(history_number(position), [*selected.lines, *joins, *self.value_notes(hart)])

    def _enter_past(self, hart: int | None, progress: Progress, pc: int | None) -> list[str]:
        """Enter the past; return a line if the trace does not lead to where the program is."""
        self.timeline.enter(hart, progress)
        line = "" if pc is None else self.timeline.joins(hart, pc)
        return [*([line] if line else []), *self.value_notes(hart)]

    def value_notes(self, hart: int | None) -> list[str]:
        """Return, once, that values are reconstructed, and from which assumptions; of each history, once, that these do
        not hold.
        """
        if self.timeline.position(hart) is None:
            return []
        selected, lines = self.timeline.selected(hart), list[str]()
        past = self.past_of(selected)
        if past is None or not past.is_reconstructed:
            return []
        if not self._is_noted and past.has_memory:
            self._is_noted = True
            lines.append(RECONSTRUCTED)
        if past.disagreements and self._contradicted is not selected.history:
            self._contradicted, first = selected.history, past.disagreements[0]
            lines.append(warning(_CONTRADICTED.format(history_number(first.position), first.pc)))
        return lines

    def past_history(self, progress: Progress) -> SelectedHistory:
        """Return the history in which the hart can go back; the hart stays where it is. Raises as `enter`."""
        self._check_connected()
        hart, chosen = self.context.thread_hart, self.context.hart
        is_away = self.timeline.position(hart) is not None
        selected = self.timeline.selected(hart) if is_away else self._select(hart, progress)
        if hart is not None and hart == selected.hart:
            if chosen not in (None, hart):
                raise NoThread(chosen, hart)
        elif is_away:  # a thread that represents all harts: another one may be selected now
            meant = self._select(hart, progress)
            return selected if meant.hart == selected.hart else meant
        return selected

    def _check_connected(self) -> None:
        if not self.connected:
            raise NotConnected

    def _select(self, hart: int | None, progress: Progress) -> SelectedHistory:
        if hart == OFF_HART:
            raise NotOnHart(self.context.on_hart)
        live = self._session.live
        if live is not None and self.has_target and not live.is_of(self.context.openocd):
            raise OtherTarget
        return self._session.selected_of_thread(replace(self.context, thread_hart=hart), progress)

    def _replayed(self, progress: Progress = silent) -> list[int]:
        """Return the harts in a trace without a target, the selected one first.

        Raises as `Session.history`.
        """
        harts, selected = self._session.harts(self.context, progress).harts, self.context.hart
        ran = [hart for hart, history in harts.histories.items() if len(history)]
        shown = harts.number(selected, next(iter(ran), None))
        if shown not in ran:
            self._session.selected(self.context, progress)  # raises the reason why there is none
        return [shown, *(hart for hart in ran if hart != shown)]


def _is_at(proxy: Proxy, port: int, path: str | None) -> bool:
    """Return whether the proxy already listens there; "" and 0 accept any place."""
    if path is None:
        return proxy.port != 0 and port in (0, proxy.port)
    return path in ("", proxy.where)


def debugger_of(session: Session, context: Context) -> ProxyDebugger:
    """Return the debugger of a session, with the context that gdb sent. Raises NotConnected."""
    debugger = session.debugger
    if not isinstance(debugger, ProxyDebugger):
        raise NotConnected
    debugger.context = context
    return debugger
