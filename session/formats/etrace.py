"""E-Trace: the decoder's settings from an encoder's registers, the history of a trace, and its packets by number.

Where a packet begins depends on the encapsulation, and its meaning on the packets before it. So one pass over the trace
saves a copy of the itemizer at intervals, and a page of packets is decoded from the copy before it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from operator import attrgetter
from typing import NamedTuple

from rvtrace_gdb.controlregs.encoder_features import ETRACE
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    ENCODER_CONTROL,
    SYNC_MAX_LOWEST_UNIT,
    DataAddrCompress,
    SyncMode,
)
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings
from rvtrace_gdb.decode.etrace.decoder import StreamDecoder
from rvtrace_gdb.decode.etrace.items import Item, Itemizer
from rvtrace_gdb.decode.etrace.options import BRANCH_COUNT_BITS, SupportLayout
from rvtrace_gdb.decode.etrace.wording import Wording
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.etrace_settings import (
    BadSetting,
    EtraceTraceOptions,
    SettingValue,
    SettingValues,
    etrace_of,
)
from rvtrace_gdb.session.capture.model import CapturedEncoder
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats.format import Builders, Checker, PiecewiseDecoding, sync_period, undecodable
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import printable

_SLACK_BITS = 3
"""Four branches in a cycle, and a synchronization after twice the period, are still believed."""

E_TRACE_MAJOR = 0
"""The trTeProtocolMajor that can be decoded (E-Trace 2.0, "Basic Control")."""


def etrace_of_registers(encoder: EncoderSettings, values: SettingValues) -> EtraceTraceOptions:
    """Return the decoder's settings; *values*, which take precedence, are those that registers do not contain.

    Raises `BadSetting`, `Unsupported`.
    """
    if encoder.protocol_version[0] != E_TRACE_MAJOR:
        raise undecodable(encoder, f"E-Trace {'.'.join(map(str, encoder.protocol_version))}")
    modes = {feature.etrace: bool(encoder.feature(feature.field)) for feature in ETRACE}
    told: dict[str, SettingValue] = {
        **modes,
        "src_bits": encoder.src_bits,
        "timestamp_bytes": -(-encoder.timestamp_bits // 8) if encoder.timestamps else 0,
    }
    if encoder.base:  # registers that were read, not the user's options
        told["resync_disabled"] = encoder.sync[0] == SyncMode.OFF
        told["sync_packets"] = sync_period(encoder) or 0
        told["branch_count_bits"] = _branch_count_bits(encoder)
        told["unfiltered"] = encoder.inst_filters == 0 and not ENCODER_CONTROL.get(
            encoder.control, "trTeInstTrigEnable"
        )
    if encoder.data("trTeDataImplemented"):
        told |= {
            "type_bits": 1,
            "data_no_data": bool(encoder.data("trTeDataNoValue")),
            "data_no_address": bool(encoder.data("trTeDataNoAddr")),
            "data_full_address": encoder.data("trTeDataAddrCompress") == DataAddrCompress.FULL,
        }
    return etrace_of({**told, **values})


def _branch_count_bits(encoder: EncoderSettings) -> int:
    """Return the bits of the greatest believable branch_count: a period of cycles or halfwords bounds it."""
    mode, exponent = encoder.sync
    if not encoder.version or mode not in (SyncMode.CLOCK_CYCLES, SyncMode.HALFWORDS):
        return BRANCH_COUNT_BITS
    return min(exponent + SYNC_MAX_LOWEST_UNIT + _SLACK_BITS, BRANCH_COUNT_BITS)


def options_of_encoder(encoder: CapturedEncoder) -> EtraceTraceOptions:
    """Return the decoder's options for an encoder, whoever else feeds the same sink. Raises `Unsupported`."""
    try:
        return etrace_of_registers(encoder.in_force, encoder.unregistered.etrace)
    except BadSetting as error:
        raise Unsupported(printable(f"{encoder.in_force.name}: {error}")) from None


def without_sync_period(trace_options: EtraceTraceOptions) -> EtraceTraceOptions:
    """Return *trace_options* for several encoders that synchronize after different numbers of packets."""
    return replace(trace_options, options=replace(trace_options.options, sync_packets=0))


def decoding(
    data: bytes, program: Program, trace_options: EtraceTraceOptions, *, wrapped: bool, stop_at_error: bool
) -> PiecewiseDecoding:
    """See `TraceFormat`."""
    options = replace(trace_options.options, stop_at_error=stop_at_error)
    return PiecewiseDecoding(
        data, lambda: StreamDecoder(program, options, trace_options.encapsulation, wrapped=wrapped)
    )


def arriving_decoder(
    program: Program, trace_options: EtraceTraceOptions, builders: Builders, *, wrapped: bool, stop_at_error: bool
) -> StreamDecoder:
    """See `TraceFormat`."""
    options = replace(trace_options.options, stop_at_error=stop_at_error)
    return StreamDecoder(program, options, trace_options.encapsulation, wrapped=wrapped, builders=builders)


def checker(
    program: Program, trace_options: EtraceTraceOptions, progress: Progress, *, wrapped: bool, total: int
) -> Checker:
    """See `TraceFormat`."""
    from rvtrace_gdb.decode.check.etrace import StreamChecker  # only where a trace is checked

    return StreamChecker(
        program, trace_options.options, trace_options.encapsulation, progress, wrapped=wrapped, total=total
    )


def itemizer(trace_options: EtraceTraceOptions, xlen: int, *, wrapped: bool = False) -> Itemizer:
    """Return an object that splits such a trace into items."""
    return Itemizer(trace_options.options, trace_options.encapsulation, xlen, wrapped=wrapped)


def wording(trace_options: EtraceTraceOptions) -> Wording:
    """Return an object that writes such items as text."""
    return Wording(trace_options.options)


def has_sources(trace_options: EtraceTraceOptions) -> bool:
    """Whether the encapsulation carries the source of a packet."""
    return trace_options.has_sources


def has_times(trace_options: EtraceTraceOptions) -> bool:
    """Whether packets may have a time, or their encapsulation a timestamp: some encapsulations always may, and support
    packets may say it.
    """
    options, encapsulation = trace_options.options, trace_options.encapsulation
    in_packets = options.parameters.time_width > 0 or options.support is SupportLayout.STANDARD
    return in_packets or encapsulation.timestamp_bytes > 0 or encapsulation.name != "encap"


def source_of(item: Item) -> int | None:
    """Return the source of a message; None for what is not a message."""
    return item.source


_PACKET_SLICE = 1 << 14  # bytes between two saved states


class _PacketNote(NamedTuple):
    """The state of the itemizer before byte *at*. Item *number* is the next, and does not begin before *offset*."""

    at: int
    number: int
    offset: int
    itemizer: Itemizer


class Packets:
    """All items of *data* (packets, filling, bytes that are neither), numbered from 1. Raises what *progress* raises.

    *trace_options*: its settings; *wrapped*: it may start inside a packet.
    """

    def __init__(
        self,
        data: bytes,
        trace_options: EtraceTraceOptions,
        xlen: int,
        *,
        wrapped: bool = False,
        progress: Progress = silent,
    ) -> None:
        self.data, self.trace_options = data, trace_options
        self._notes: list[_PacketNote] = []
        self._count = end = 0
        taker = itemizer(trace_options, xlen, wrapped=wrapped)
        for at in range(0, len(data), _PACKET_SLICE):
            self._notes.append(_PacketNote(at, self._count + 1, end, deepcopy(taker)))
            for item in taker.feed(data[at : at + _PACKET_SLICE]):
                self._count += 1
                end = item.end
            progress("reading packets", at, len(data))
        self._count += sum(1 for _ in taker.finish())

    def __len__(self) -> int:
        return self._count

    def items(self, begin: int, end: int) -> Iterator[tuple[int, Item]]:
        """Yield (number, item) for the numbers *begin* to *end* - 1."""
        note = bisect_right(self._notes, begin, key=attrgetter("number")) - 1
        if note >= 0 and begin <= self._count:
            first = self._notes[note].number
            yield from islice(enumerate(self._from(note), first), begin - first, max(end - first, 0))

    def number_at(self, offset: int) -> int:
        """Return the number of the item that contains byte *offset*; after the end, the number of items plus one."""
        note = bisect_right(self._notes, offset, key=attrgetter("offset")) - 1
        if note >= 0:
            for number, item in enumerate(self._from(note), self._notes[note].number):
                if offset < item.end:
                    return number
        return self._count + 1

    def _from(self, note: int) -> Iterator[Item]:
        start = self._notes[note]
        taker = deepcopy(start.itemizer)
        for at in range(start.at, len(self.data), _PACKET_SLICE):
            yield from taker.feed(self.data[at : at + _PACKET_SLICE])
        yield from taker.finish()


numbered_items = Packets
