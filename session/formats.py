"""What is done differently for each trace format: choosing how to read an encoder's trace, and reading it."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.controlregs.encoder import Format
from rvtrace_gdb.decode.etrace.items import Itemizer as ETraceItemizer
from rvtrace_gdb.decode.etrace.streams import StreamDecoder as ETraceDecoder
from rvtrace_gdb.decode.etrace.wording import Wording as ETraceWording
from rvtrace_gdb.decode.ntrace.dialect import DIALECTS
from rvtrace_gdb.decode.ntrace.items import Itemizer as NTraceItemizer
from rvtrace_gdb.decode.ntrace.options import Options as NTrace
from rvtrace_gdb.decode.ntrace.streams import StreamDecoder as NTraceDecoder
from rvtrace_gdb.decode.ntrace.wording import Wording as NTraceWording
from rvtrace_gdb.decode.streams import Program, Streams
from rvtrace_gdb.decode.tandem.decoder import Decoding as TandemDecoding
from rvtrace_gdb.session import decoding, etrace
from rvtrace_gdb.session.captured import CapturedEncoder, TandemPort, Unregistered
from rvtrace_gdb.session.ctr import decoding as ctr
from rvtrace_gdb.session.ctr import items as ctr_items
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.etrace import ETrace
from rvtrace_gdb.session.etrace_settings import BadSetting
from rvtrace_gdb.session.resuming import Fed, OfTandem, Unfinished
from rvtrace_gdb.session.tandem import items as tandem_items
from rvtrace_gdb.session.tandem.wording import Wording as TandemWording
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.support.text import printable

How = NTrace | ETrace
"""How a trace was made by encoders."""
AnyHow = How | CtrInForce | TandemPort
"""How a trace was made."""


class Item(Protocol):
    """A message, filling, or bytes that are neither: where they are."""

    @property
    def offset(self) -> int: ...

    @property
    def end(self) -> int: ...


class Itemizer(Protocol):
    """Takes a trace apart, fed in pieces."""

    def feed(self, data: bytes) -> Iterator[Any]: ...
    def finish(self) -> Iterator[Any]: ...


class Wording(Protocol):
    """Puts its items into words. `is_odd`: whether one is nothing that such an encoder sends."""

    def text(self, item: Any, *, raw: bool = False) -> str: ...
    def is_odd(self, item: Any) -> bool: ...


def how_of(encoder: CapturedEncoder) -> How:
    """How to read what *encoder* sends, whoever else sends into the same sink. Raises `Unsupported`."""
    if encoder.in_force.format != Format.E_TRACE:
        return _overridden(decoding.ntrace_options(encoder.in_force, alone=True), encoder.unregistered)
    try:
        return etrace.of_registers(encoder.in_force, encoder.unregistered.etrace)
    except BadSetting as error:
        raise Unsupported(printable(f"{encoder.in_force.name}: {error}")) from None


def with_one_period(all_options: list[How]) -> list[How]:
    """The same; of encoders that synchronize after different numbers of messages none is known."""
    periods = {it.options.sync_packets if isinstance(it, ETrace) else it.sync_period for it in all_options}
    return all_options if len(periods) < 2 else [_without_period(it) for it in all_options]


def _without_period(how: How) -> How:
    if isinstance(how, ETrace):
        return replace(how, options=replace(how.options, sync_packets=0))
    return replace(how, sync_period=None)


def decode(
    data: bytes,
    program: Program,
    how: AnyHow,
    *,
    wrapped: bool = False,
    stop_at_error: bool = False,
    progress: Progress = silent,
) -> Streams:
    """The histories of all harts in *data*, by source. Raises only what *progress* raises."""
    return begun(data, program, how, wrapped=wrapped, stop_at_error=stop_at_error).result(progress)


def begun(
    data: bytes, program: Program, how: AnyHow, *, wrapped: bool = False, stop_at_error: bool = False
) -> Unfinished:
    """The same when it may be interrupted, and is to go on there later."""
    if isinstance(how, CtrInForce):
        return _OfRecords(data, program, how)
    if isinstance(how, TandemPort):
        parameters = how.parameters
        return OfTandem(
            lambda: TandemDecoding(data, program, parameters, wrapped=wrapped, stop_at_error=stop_at_error)
        )
    if isinstance(how, ETrace):
        options, encapsulation = replace(how.options, stop_at_error=stop_at_error), how.encapsulation
        return Fed(data, lambda: ETraceDecoder(program, options, encapsulation, wrapped=wrapped))
    options_of_n = replace(how, stop_at_error=stop_at_error)
    return Fed(data, lambda: NTraceDecoder(program, options_of_n, wrapped=wrapped))


class _OfRecords:
    """At most some hundred of them: they are decoded at once."""

    def __init__(self, data: bytes, program: Program, how: CtrInForce) -> None:
        self._data, self._program, self._how = data, program, how
        self._found: Streams | None = None

    def result(self, progress: Progress) -> Streams:
        """As `Unfinished`."""
        if self._found is None:
            history = ctr.decode(self._data, self._program, self._how, progress).history
            self._found = Streams({0: history}, history.accounting)
        return self._found


def tells_sources(how: AnyHow) -> bool:
    """Whether messages say whose they are."""
    if isinstance(how, CtrInForce | TandemPort):
        return False
    return how.tells_sources if isinstance(how, ETrace) else how.src_bits > 0


def itemizer(how: AnyHow, xlen: int, *, wrapped: bool = False) -> Itemizer:
    """What takes a trace apart that was made so."""
    if isinstance(how, CtrInForce):
        return ctr_items.Itemizer()
    if isinstance(how, TandemPort):
        return tandem_items.Itemizer(how.parameters, wrapped=wrapped)
    if isinstance(how, ETrace):
        return ETraceItemizer(how.options, how.encapsulation, xlen, wrapped=wrapped)
    return NTraceItemizer(how, xlen, wrapped=wrapped)


def wording(how: AnyHow) -> Wording:
    """What puts its items into words."""
    if isinstance(how, CtrInForce):
        return ctr_items.Wording()
    if isinstance(how, TandemPort):
        return TandemWording(how.parameters)
    return ETraceWording(how.options) if isinstance(how, ETrace) else NTraceWording(how)


def source_of(item: Any) -> int | None:
    """Who sent a message; None for what is no message."""
    if isinstance(item, ctr_items.Item):
        return None
    if hasattr(item, "source"):
        return item.source  # type: ignore[no-any-return]
    return None if item.message is None else item.message.src


def _overridden(options: NTrace, unregistered: Unregistered) -> NTrace:
    """*options* with what is known better than from the registers."""
    if unregistered.dialect is not None:
        options = replace(options, dialect=DIALECTS[unregistered.dialect])
    if unregistered.address_bits is not None:
        options = replace(options, address_bits=unregistered.address_bits)
    if unregistered.timestamp_bits is not None:
        options = replace(options, timestamp_bits=unregistered.timestamp_bits)
    return options
