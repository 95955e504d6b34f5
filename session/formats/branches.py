"""Traces of transfers of control as a trace format: NEORV32's TRACER, TACIT, CTXP, gem5.

An entry of `trace dump` is a pair or a packet; bytes that are neither have a line with the reason.
"""

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn, Protocol

from rvtrace_gdb.decode.branches import READERS
from rvtrace_gdb.decode.branches.items import BranchItem, Settings
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.model import BranchPort
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats.format import Builders
from rvtrace_gdb.support.errors import Progress, silent

if TYPE_CHECKING:
    from rvtrace_gdb.decode.branches import ctxp, gem5, neorv32, tacit

    _NEORV32: "BranchReader" = neorv32
    _TACIT: "BranchReader" = tacit
    _CTXP: "BranchReader" = ctxp
    _GEM5: "BranchReader" = gem5


class BranchReader(Protocol):
    """What a module of `decode.branches` has."""

    def items_of(self, data: bytes, settings: Settings) -> Iterator[BranchItem]: ...
    def history_of(
        self, data: bytes, program: Program, settings: Settings, *, wrapped: bool = False, progress: Progress = silent
    ) -> SourceHistories: ...


def _reader(port: BranchPort) -> BranchReader:
    assert port.kind in READERS, port.kind
    reader: BranchReader = import_module(f"rvtrace_gdb.decode.branches.{port.kind}")
    return reader


def _settings(port: BranchPort) -> Settings:
    return dict(port.registers)


class _BranchDecoding:
    """The `Decoding` of a whole trace; one that is interrupted begins again."""

    def __init__(self, data: bytes, program: Program, port: BranchPort, wrapped: bool) -> None:
        self._data, self._program, self._port, self._wrapped = data, program, port, wrapped
        self._decoded: SourceHistories | None = None

    def result(self, progress: Progress) -> SourceHistories:
        """Return the history. Raises only what *progress* raises, and can be called again then."""
        if self._decoded is None:
            self._decoded = _reader(self._port).history_of(
                self._data, self._program, _settings(self._port), wrapped=self._wrapped, progress=progress
            )
        return self._decoded


class BranchItemizer:
    """Splits a trace that is fed in pieces into entries: at its end, because few are long."""

    def __init__(self, port: BranchPort) -> None:
        self._port, self._data = port, bytearray()

    def feed(self, data: bytes) -> Iterator[BranchItem]:
        self._data += data
        return iter(())

    def finish(self) -> Iterator[BranchItem]:
        return _reader(self._port).items_of(bytes(self._data), _settings(self._port))


class BranchWording:
    """Writes entries as text."""

    def text(self, item: BranchItem, *, raw: bool = False) -> str:
        """Return the line for *item*, without its offset. *raw*: with its bytes."""
        return f"{item.raw.hex(' ')} {item.text}" if raw and not item.problem else item.text

    def is_odd(self, item: BranchItem) -> bool:
        """Return whether it is something that no such encoder sends."""
        return bool(item.problem)


class BranchEntries:
    """All entries of a trace."""

    def __init__(self, data: bytes, trace_options: BranchPort) -> None:
        self.data, self.trace_options = data, trace_options
        self._items = list(_reader(trace_options).items_of(data, _settings(trace_options)))

    def __len__(self) -> int:
        return len(self._items)

    def items(self, begin: int, end: int) -> Iterator[tuple[int, BranchItem]]:
        """Yield (number, item) for the numbers *begin* to *end* - 1."""
        return ((number, self._items[number - 1]) for number in range(begin, min(end, len(self) + 1)))

    def number_at(self, offset: int) -> int:
        """Return the number of the entry that contains byte *offset*; after the end, the number of entries plus one."""
        return next((number for number, item in enumerate(self._items, 1) if offset < item.end), len(self) + 1)


def decoding(
    data: bytes, program: Program, trace_options: BranchPort, *, wrapped: bool, stop_at_error: bool
) -> _BranchDecoding:
    """See `TraceFormat`."""
    return _BranchDecoding(data, program, trace_options, wrapped)


def arriving_decoder(
    program: Program, trace_options: BranchPort, builders: Builders, *, wrapped: bool, stop_at_error: bool
) -> NoReturn:
    """Raises `Unsupported`: such a trace is read as a whole."""
    raise Unsupported("a trace of transfers is read as a whole, not as it arrives")


def checker(program: Program, trace_options: BranchPort, progress: Progress, *, wrapped: bool, total: int) -> NoReturn:
    """Raises `Unsupported`: every transfer is in the trace, and decoding compares each with the program."""
    raise Unsupported("a trace of transfers is compared with the program when it is decoded: gaps say what differs")


def itemizer(trace_options: BranchPort, xlen: int, *, wrapped: bool = False) -> BranchItemizer:
    """See `TraceFormat`."""
    return BranchItemizer(trace_options)


def wording(trace_options: BranchPort) -> BranchWording:
    """See `TraceFormat`."""
    return BranchWording()


def numbered_items(
    data: bytes, trace_options: BranchPort, xlen: int, *, wrapped: bool, progress: Progress
) -> BranchEntries:
    """See `TraceFormat`."""
    return BranchEntries(data, trace_options)


def has_sources(trace_options: BranchPort) -> bool:
    """Entries do not carry the hart."""
    return False


def has_times(trace_options: BranchPort) -> bool:
    """All but NEORV32's pairs have times."""
    return trace_options.kind in ("tacit", "ctxp", "gem5")


def source_of(item: BranchItem) -> None:
    """Entries do not carry the hart."""
