"""N-Trace: the decoder's options from an encoder's registers, the history of a trace, and its messages by number.

The meaning of a message depends on those before it. So one pass over the trace saves the state at intervals, and a page
of messages is decoded from the saved state before it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from rvtrace_gdb.controlregs.encoder_features import RAW_NTRACE
from rvtrace_gdb.controlregs.trace_control.encoder_registers import InstMode, TeFormat
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.decode.ntrace.items import Item, Itemizer, SourceState
from rvtrace_gdb.decode.ntrace.options import DIALECTS, ImplicitReturn, Options
from rvtrace_gdb.decode.ntrace.wording import Wording
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.model import CapturedEncoder, Unregistered
from rvtrace_gdb.session.formats.format import Builders, Checker, PiecewiseDecoding, sync_period, undecodable
from rvtrace_gdb.support.errors import Progress, silent

N_TRACE_MAJOR = 1
"""The trTeProtocolMajor that can be decoded (N-Trace 1.0, "N-Trace Specific Trace Controls")."""


def ntrace_options(encoder: EncoderSettings, *, alone: bool) -> Options:
    """Return the decoder's options; *alone*: nothing else is in the same buffer. Raises `Unsupported`."""
    if encoder.format != TeFormat.N_TRACE:
        name = "E-Trace" if encoder.format == TeFormat.E_TRACE else f"trTeFormat {encoder.format}"
        raise undecodable(encoder, name)
    if (
        encoder.version and encoder.protocol_version[0] != N_TRACE_MAJOR
    ):  # a higher minor version adds only what is enabled
        raise undecodable(encoder, f"N-Trace {'.'.join(map(str, encoder.protocol_version))}")
    return Options(
        src_bits=encoder.src_bits,
        src_id=None if alone or not encoder.src_bits else encoder.src_id,
        timestamps=encoder.timestamps,
        timestamp_bits=encoder.timestamp_bits,
        btm=encoder.inst_mode == InstMode.BTM,
        implicit_return=_implicit_return(encoder),
        sync_period=sync_period(encoder),
        dialect=DIALECTS[encoder.dialect],
        **{feature.ntrace: bool(encoder.feature(feature.field)) for feature in RAW_NTRACE},
    )


def _implicit_return(encoder: EncoderSettings) -> ImplicitReturn:
    """Return the mode; if registers do not say it, that of most encoders: I-CNT shows what was not reported."""
    mode = encoder.implicit_return
    return ImplicitReturn.OFF if mode is None else ImplicitReturn(mode or ImplicitReturn.FULL_STACK)


def _overridden(options: Options, unregistered: Unregistered) -> Options:
    """Return *options* with settings that are known better than from the registers."""
    if unregistered.dialect is not None:
        options = replace(options, dialect=DIALECTS[unregistered.dialect])
    if unregistered.address_bits is not None:
        options = replace(options, address_bits=unregistered.address_bits)
    if unregistered.timestamp_bits is not None:
        options = replace(options, timestamp_bits=unregistered.timestamp_bits)
    if unregistered.repeat_bits is not None:
        options = replace(options, repeat_bits=unregistered.repeat_bits)
    return options


def options_of_encoder(encoder: CapturedEncoder) -> Options:
    """Return the decoder's options for an encoder, whoever else feeds the same sink. Raises `Unsupported`."""
    return _overridden(ntrace_options(encoder.in_force, alone=True), encoder.unregistered)


def without_sync_period(trace_options: Options) -> Options:
    """Return *trace_options* for several encoders that synchronize after different numbers of messages."""
    return replace(trace_options, sync_period=None)


def decoding(
    data: bytes, program: Program, trace_options: Options, *, wrapped: bool, stop_at_error: bool
) -> PiecewiseDecoding:
    """See `TeFormat`."""
    options = replace(trace_options, stop_at_error=stop_at_error)
    return PiecewiseDecoding(data, lambda: StreamDecoder(program, options, wrapped=wrapped))


def arriving_decoder(
    program: Program, trace_options: Options, builders: Builders, *, wrapped: bool, stop_at_error: bool
) -> StreamDecoder:
    """See `TeFormat`."""
    return StreamDecoder(
        program, replace(trace_options, stop_at_error=stop_at_error), wrapped=wrapped, builders=builders
    )


def checker(program: Program, trace_options: Options, progress: Progress, *, wrapped: bool, total: int) -> Checker:
    """See `TeFormat`."""
    from rvtrace_gdb.decode.check.ntrace import StreamChecker  # only where a trace is checked

    return StreamChecker(program, trace_options, progress, wrapped=wrapped, total=total)


def itemizer(trace_options: Options, xlen: int, *, wrapped: bool = False) -> Itemizer:
    """Return an object that splits such a trace into items."""
    return Itemizer(trace_options, xlen, wrapped=wrapped)


def wording(trace_options: Options) -> Wording:
    """Return an object that writes such items as text."""
    return Wording(trace_options)


def has_sources(trace_options: Options) -> bool:
    """Whether messages carry SRC."""
    return trace_options.src_bits > 0


def has_times(trace_options: Options) -> bool:
    """Whether messages may end with TSTAMP."""
    return trace_options.timestamps


def source_of(item: Item) -> int | None:
    """Return the source of a message; None for what is not a message."""
    return None if item.message is None else item.message.src


_STRIDE = 1024  # items between two saved states
_SLICE = 1 << 16  # bytes between two calls of the progress


class _ItemState(NamedTuple):
    """The state before an item that starts at *offset*."""

    offset: int
    source_states: dict[int, SourceState]


class Messages:
    """All items of *data* (messages, filling, bytes that are neither), numbered from 1. Raises what *progress* raises.

    *options*: the decoder's; *wrapped*: the trace may start inside a message.
    """

    def __init__(
        self, data: bytes, options: Options, xlen: int, *, wrapped: bool = False, progress: Progress = silent
    ) -> None:
        self.data, self.trace_options = data, options
        self._xlen, self._wrapped = xlen, wrapped
        self._notes = [_ItemState(0, {})]
        itemizer = Itemizer(options, xlen, wrapped=wrapped)
        self._count = 0
        for item in _all_items(itemizer, data, 0, progress):
            self._count += 1
            if self._count % _STRIDE == 0:
                self._notes.append(_ItemState(item.end, dict(itemizer.known)))

    def __len__(self) -> int:
        return self._count

    def items(self, begin: int, end: int) -> Iterator[tuple[int, Item]]:
        """Yield (number, item) for the numbers *begin* to *end* - 1."""
        if begin > self._count:
            return
        note = (begin - 1) // _STRIDE
        first = note * _STRIDE + 1
        yield from islice(enumerate(self._from(note), first), begin - first, max(end - first, 0))

    def number_at(self, offset: int) -> int:
        """Return the number of the item that contains byte *offset*; after the end, the number of items plus one."""
        note = bisect_right(self._notes, offset, key=lambda note: note.offset) - 1
        for number, item in enumerate(self._from(note), note * _STRIDE + 1):
            if offset < item.end:
                return number
        return self._count + 1

    def _from(self, note: int) -> Iterator[Item]:
        offset, known = self._notes[note]
        wrapped = self._wrapped and not note
        return _all_items(
            Itemizer(self.trace_options, self._xlen, wrapped=wrapped, offset=offset, known=known), self.data, offset
        )


def _all_items(itemizer: Itemizer, data: bytes, offset: int, progress: Progress = silent) -> Iterator[Item]:
    for start in range(offset, len(data), _SLICE):
        yield from itemizer.feed(data[start : start + _SLICE])
        progress("reading messages", start, len(data))
    yield from itemizer.finish()


numbered_items = Messages
