"""The state of a hart that is halted where its trace ends: registers, and memory that is declared as RAM.

It is read through gdb's connection (`trace connect`) or, where there is none, through the session's link to OpenOCD;
the registers at the first question, memory in pages, each once. What gdb has written there meanwhile is not what the
program left: the old content counts (`session.proxy.writes.write_log`). Nothing is read any more once the target was
resumed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from rvtrace_gdb.decode.program.csrs import SATP, F, X
from rvtrace_gdb.decode.reconstruction.facts import KERNEL_HALF, KnownValue, StopState
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.proxy.backend import HartExtensionContext, memory_read
from rvtrace_gdb.session.proxy.protocol.register_numbers import PC
from rvtrace_gdb.session.proxy.writes.write_log import WriteLog
from rvtrace_gdb.session.sources import TraceSource
from rvtrace_gdb.session.target.target_state import SavedTarget
from rvtrace_gdb.support.extents import Extent, cut

T = TypeVar("T")
PAGE = 4096
_PIECE = 1024  # bytes in a packet: less than the smallest PacketSize of OpenOCD and QEMU allows
_AT_ONCE = 16  # pages
KnownValues = list[KnownValue]
"""Bytes, None for unknown ones."""


class StopReader(Protocol):
    """The way to a hart that is halted. Nothing is raised: what cannot be read, or not any more, is missing."""

    def registers(self) -> Mapping[int, int] | None:
        """Return the registers by number, with the pc; None: they cannot be read."""

    def memory(self, extents: Sequence[Extent]) -> list[KnownValues] | None:
        """Return the bytes of extents of memory; None: nothing can be read now."""


class GdbConnection(Protocol):
    """gdb's connection through the proxy: `session.replay.debugger.ProxyDebugger`."""

    writes: WriteLog

    @property
    def resumes(self) -> int: ...

    def call(self, work: Callable[[HartExtensionContext], T]) -> T | None: ...


class StandingSession(Protocol):
    """The session, as far as it knows the target."""

    @property
    def live(self) -> TraceSource | None: ...

    @property
    def gdb(self) -> GdbConnection | None:
        """The debugger that is connected through the proxy."""

    def stands(self, context: Context) -> bool: ...


class ThroughGdb:
    """A `StopReader` through the connection of gdb. *alone*: the hart is the only one, and need not be a thread."""

    def __init__(self, debugger: GdbConnection, hart: int, *, alone: bool) -> None:
        self._debugger, self._hart, self._alone, self._resumes = debugger, hart, alone, debugger.resumes

    def _ask(self, work: Callable[[HartExtensionContext], T]) -> T | None:
        """Return what *work* returns in the proxy's thread, None if the hart is not halted where it was any more."""
        debugger = self._debugger

        def if_halted(connection: HartExtensionContext) -> T | None:
            still = connection.live() and debugger.resumes == self._resumes and debugger.writes.keeps
            return work(connection) if still and connection.reaches(self._hart, alone=self._alone) else None

        return debugger.call(if_halted)

    def registers(self) -> Mapping[int, int] | None:
        found, kept = self._ask(lambda it: it.registers(self._hart)), self._debugger.writes.kept(self._hart)
        if found is None or kept is None:
            return None
        return {number: value for number, value in {**found, **kept.registers}.items() if value is not None}

    def memory(self, extents: Sequence[Extent]) -> list[KnownValues] | None:
        pieces = list(cut(extents, _PIECE))
        answers = self._ask(lambda it: it.transact_all([b"m%x,%x" % piece for piece in pieces], self._hart))
        kept = self._debugger.writes.kept(self._hart)
        if answers is None or kept is None:
            return None
        content: dict[int, KnownValue] = {}
        for (address, size), answer in zip(pieces, answers, strict=True):
            content.update(enumerate(memory_read(answer)[:size], address))
        content.update(kept.memory)
        return [[content.get(at) for at in range(address, address + size)] for address, size in extents]


class ThroughLink:
    """A `StopReader` through the session's link, for a hart that nothing has resumed while *stands* returns true."""

    def __init__(self, state: SavedTarget, hart: int, stands: Callable[[], bool]) -> None:
        self._state, self._hart, self._stands = state, hart, stands

    def registers(self) -> Mapping[int, int] | None:
        found = self._state.registers_now(self._hart) if self._stands() else None
        return None if found is None else {**found.registers, PC: found.pc}

    def memory(self, extents: Sequence[Extent]) -> list[KnownValues] | None:
        return [self._state.memory_now(self._hart, *it) for it in extents] if self._stands() else None


def live_stop(
    session: StandingSession, hart: int, rams: Sequence[Extent], context: Context
) -> StopState | None:
    """Return the state of a hart that is halted where its trace ends; None if it is not, or cannot be read.

    *rams*: the memory that may be read. *context*: that of a request, or gdb's last.
    """
    live, debugger = session.live, session.gdb
    if live is None or not session.stands(context):
        return None
    readers: list[StopReader] = []
    if debugger is not None:
        traced = {*(it.hart for it in live.encoders), *(it.hart for it in live.records)}
        readers.append(ThroughGdb(debugger, hart, alone=len(traced) < 2))
    if live.state is not None:
        readers.append(ThroughLink(live.state, hart, lambda: session.live is live and session.stands(context)))
    states = (LiveStop(reader, rams).state() for reader in readers)
    return next((state for state in states if state is not None), None)


class LiveStop:
    """What a reader can read of a hart, each register and each page once. *rams*: what is read."""

    def __init__(self, reader: StopReader, rams: Sequence[Extent]) -> None:
        self._reader, self._rams = reader, rams
        self._pages: dict[int, KnownValues] = {}
        self._translated = False

    def state(self) -> StopState | None:
        """Return the state; None if not even the pc can be read."""
        found = self._reader.registers()
        if found is None or PC not in found:
            return None
        x: list[KnownValue] = [0, *(found.get(X + number) for number in range(1, 32))]
        f: list[KnownValue] = [found.get(F + number) for number in range(32)]
        csrs = {number: value for number, value in found.items() if 0 <= number < X}
        self._translated = bool(csrs.get(SATP))  # then stubs may translate addresses
        return StopState(found[PC], x, f, csrs, self.memory)

    def memory(self, address: int, size: int) -> bytes:
        """Return the bytes from an address on, up to the first one that is not known."""
        found = bytearray()
        for page in range(address & -PAGE, address + size, PAGE):
            begin, end = max(address - page, 0), address + size - page
            for byte in self._page(page, -(-end // PAGE))[begin:end]:
                if byte is None:
                    return bytes(found)
                found.append(byte)
        return bytes(found)

    def _page(self, page: int, wanted: int) -> KnownValues:
        """Return a page; it is read with those behind it, as many as are wanted."""
        if page not in self._pages:
            pages = range(page, page + min(wanted, _AT_ONCE) * PAGE, PAGE)
            self._read_pages([it for it in pages if it not in self._pages])
        return self._pages.get(page, [])

    def _read_pages(self, pages: Sequence[int]) -> None:
        extents = [it for page in pages for it in self._readable(page)]
        read = self._reader.memory(extents) if extents else []
        if read is None:
            return
        self._pages |= {page: [None] * PAGE for page in pages}
        for (address, size), data in zip(extents, read, strict=True):
            begin = address % PAGE
            self._pages[address - begin][begin : begin + size] = data

    def _readable(self, page: int) -> Iterator[Extent]:
        """Yield what of a page may be read: RAM. Where addresses are translated, the memory of a kernel alone, which is
        in the upper half of 64-bit addresses: nothing else can be meant by these.
        """
        if self._translated:
            yield from [Extent(page, PAGE)] if page >= KERNEL_HALF else []
            return
        for ram in self._rams:
            if (declared := ram.common(Extent(page, PAGE))) is not None:
                yield declared
