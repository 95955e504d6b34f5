"""The items of a trace, read without the program: each packet with its address.

Addresses in most packets are relative to the last reported one (E-Trace 2.0, "Format 2 packets"), and packets are
parsed according to the last support packet, so both are kept for each source (`SourceState`). Addresses are unknown up
to the next full one at the start in the middle of a trace, after lost bytes, and after an unknown entry of the jump
target cache.
"""

from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.etrace.data import DataDecoder
from rvtrace_gdb.decode.etrace.data.packet import DataPacket
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, Encapsulation, Idle, SourcePackets
from rvtrace_gdb.decode.etrace.encapsulation import EncapsulatedItem as Found
from rvtrace_gdb.decode.etrace.layout import MalformedPacket, Packet, SyncSubformat, TeInstFormat
from rvtrace_gdb.decode.etrace.options import Options, Setup
from rvtrace_gdb.decode.etrace.packet import PacketCodec, codec, read_support
from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import Note, NoteCause
from rvtrace_gdb.decode.item_texts import MOST_TEXTS, ItemText
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from rvtrace_gdb.decode.stepping.reports import LostBytes

_NO_ADDRESS = -1


class SourceState:
    """The state of one source.

    setup, codec  the encoder's parameters and modes, and the codec for them
    """

    def __init__(self, options: Options, xlen: int) -> None:
        self.setup = Setup(options.parameters, options.modes)
        self.codec: PacketCodec = codec(options, options.modes)
        self._options = options
        self._mask = (1 << xlen) - 1
        self._reference: int | None = None  # the last address it reported
        self._targets: dict[int, int] = {}  # its jump target cache
        self._pending_target = _NO_ADDRESS  # an address that the cache has if no packet of format 3 follows
        self._transport_time = self._packet_time = 0

    def copy(self) -> "SourceState":
        """Return a copy that can be advanced independently."""
        new = copy(self)
        new._targets = dict(self._targets)
        return new

    def forget(self) -> None:
        """Forget the addresses, because packets were lost."""
        self._reference = None
        self._targets.clear()
        self._pending_target = _NO_ADDRESS

    def address(self, packet: Packet) -> int | None:
        """Return the address of *packet*; None: it has none, or it is not known.

        Call this once for each packet, in order.
        """
        return self._sync_address(packet) if packet.format == TeInstFormat.SYNC else self._branch_address(packet)

    def time_remark(self, item: "Item") -> str:
        """Return the note on a packet with an earlier time than the last one before it that has one, or nothing."""
        inside = item.packet.fields.get("time") if item.packet is not None else None
        before = self._transport_time, self._packet_time
        self._transport_time = before[0] if item.timestamp is None else item.timestamp
        self._packet_time = before[1] if inside is None else inside
        after = self._transport_time, self._packet_time
        back = (Note(NoteCause.TIME_BACK, pair) for pair in zip(before, after, strict=True) if pair[1] < pair[0])
        return "; ".join(map(fact_text, back))

    def set_up(self, packet: Packet) -> None:
        """Apply the parameters and modes of a support packet."""
        support = read_support(packet, self._options)
        before, self.setup = self.setup, Setup(support.parameters, support.modes)
        if self.setup != before:
            self.codec = codec(replace(self._options, parameters=support.parameters), support.modes)

    def _sync_address(self, packet: Packet) -> int | None:
        fields = packet.fields
        if packet.subformat == SyncSubformat.CONTEXT:
            return None
        self._pending_target = _NO_ADDRESS
        self._targets.clear()
        if packet.subformat == SyncSubformat.SUPPORT:
            return None
        address = fields.get("address")
        if packet.subformat == SyncSubformat.TRAP:
            if not fields["thaddr"]:
                # The EPC, to which no difference is relative; of an interrupt it is undefined.
                return None if fields["interrupt"] else address
            if address is None:
                address = self._options.trap_handlers.handler_of(fields["ecause"], bool(fields["interrupt"]))
        self._reference = address
        return address

    def _branch_address(self, packet: Packet) -> int | None:
        """Return the address of a packet of format 0 to 2.

        Since one of these follows, an uninferable discontinuity led to the address before (2.0, "Format 2 notify and
        updiscon fields"), so that address is in the cache ("Jump target cache mode").
        """
        fields, modes = packet.fields, self.setup.modes
        if self._pending_target >= 0:
            self._targets[self._index(self._pending_target)] = self._pending_target
            self._pending_target = _NO_ADDRESS
        if "index" in fields:
            # The documents disagree on whether targets that are not reported are in the cache.
            unseen = modes.implicit_return or modes.sijump or modes.resync_disabled
            self._reference = None if unseen else self._targets.get(fields["index"])
            return self._reference
        if "address" not in fields:
            return None
        if modes.full_address:
            self._reference = fields["address"]
        elif self._reference is not None:
            self._reference = self._reference + fields["address"] & self._mask
        if self._reference is None:
            self._targets.clear()  # any entry may have changed
        elif not fields.get("notify"):
            self._pending_target = self._reference
        return self._reference

    def _index(self, address: int) -> int:
        parameters = self.setup.parameters
        return address >> parameters.iaddress_lsb & (1 << parameters.cache_size) - 1


_REMEMBERED = 1 << 15  # packets
_SLICE = 1 << 12  # bytes; items are in order of their offsets within each


class Item(NamedTuple):
    """Consecutive bytes of a trace: a packet, idle bytes, or bytes that are neither.

    offset     the trace offset of the first byte
    length     the number of bytes, including what the transport adds; 0: a packet is known to be missing here
    raw        the payload
    packet     the instruction trace packet, None if it is none
    data       the data trace packet, None if it is none
    problem    why there is neither; "" for idle bytes
    source     the source of the packet; None if the item is not a packet
    address    the address for that of an instruction trace packet; None: it has none, or it is not known
    access     the access that a data packet reports
    timestamp  the timestamp of the transport
    setup      the parameters and modes of the encoder, as far as they are known here
    remark     a note on a time that goes back
    """

    offset: int
    length: int
    raw: bytes = b""
    packet: Packet | None = None
    data: DataPacket | None = None
    problem: str = ""
    source: int | None = None
    address: int | None = None
    access: MemoryAccess | None = None
    timestamp: int | None = None
    setup: Setup | None = None
    remark: str = ""

    @property
    def is_idle(self) -> bool:
        """Whether the item is idle bytes between packets."""
        return self.source is None and not self.problem

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.offset + self.length


class PacketWording(Protocol):
    """Makes the texts of items, as `wording.Wording` does."""

    def text(self, item: Item, *, raw: bool = False) -> str: ...


class _PacketTexts(NamedTuple):
    """The texts of a packet of format 0 to 2 without a time, by the address that it stands for."""

    packet: Packet
    by_address: dict[int | None, str]


class Itemizer:
    """Splits a trace, fed in pieces of any size, into items. Memory does not grow with the trace.

    options, encapsulation  as for the decoder
    xlen                    32 or 64
    wrapped                 whether the trace starts anywhere, as in a ring buffer that wrapped

    A deep copy continues from the same position.
    """

    def __init__(
        self, options: Options, encapsulation: Encapsulation, xlen: int = 64, *, wrapped: bool = False
    ) -> None:
        self._deframer = encapsulation.deframer(wrapped=wrapped)
        self._start = SourceState(options, xlen)
        self._states: dict[int, SourceState] = {}
        self._accesses: dict[int, DataDecoder] = {}
        self._packets: dict[tuple[PacketCodec, bytes], Packet] = {}  # few packets of a trace are distinct
        self._texts: dict[tuple[PacketCodec, int, bytes], _PacketTexts] = {}
        self._text_count = 0
        self._incomplete = b""  # the start of a slice
        self._idle: Item | None = None  # idle bytes that may continue

    def __deepcopy__(self, memo: dict[int, object]) -> "Itemizer":
        new = copy(self)
        new._deframer = deepcopy(self._deframer, memo)
        new._states = {source: known.copy() for source, known in self._states.items()}
        new._accesses = deepcopy(self._accesses, memo)
        return new

    def feed(self, data: bytes) -> Iterator[Item]:
        """Return the items that are complete with *data*, in order."""
        for found in self._slices(data):
            yield from self._in_order(found)

    def texts(self, data: bytes, wording: PacketWording, *, raw: bool = False) -> Iterator[ItemText]:
        """Return the items that are complete with *data* as *wording* says them. It must be the same in every call, as
        must *raw*: with the bytes.
        """
        text = partial(wording.text, raw=raw)
        for found in self._slices(data):
            for piece in _sorted_pieces(found):
                if isinstance(piece, Idle):
                    self._fill(piece)
                    continue
                for idle in self._end_of_filling():
                    yield idle.offset, idle.end, None, text(idle)
                if isinstance(piece, _LocatedPacket):
                    yield piece.offset, piece.offset + piece.length, piece.source, self._packet_text(piece, text)
                else:
                    yield piece.offset, piece.offset + piece.length, None, text(self._lost_item(piece))

    def _packet_text(self, piece: "_LocatedPacket", text: Callable[[Item], str]) -> str:
        if piece.kind is not ContentKind.INSTRUCTION or piece.time is not None:
            return text(self._packet(piece))
        known = self._state_of(piece.source)
        key = (known.codec, piece.source, piece.payload)
        texts = self._texts.get(key)
        if texts is None:
            item = self._packet(piece)
            line = text(item)
            packet = item.packet
            if packet is not None and packet.format != TeInstFormat.SYNC and "time" not in packet.fields:
                self._remember_text(_PacketTexts(packet, {}), key, item.address, line)
            return line
        address = known.address(texts.packet)
        found = texts.by_address.get(address)
        if found is None:
            item = _bare_item(piece, known)._replace(packet=texts.packet, address=address)
            found = text(item)
            self._remember_text(texts, key, address, found)
        return found

    def _remember_text(
        self, texts: _PacketTexts, key: tuple[PacketCodec, int, bytes], address: int | None, line: str
    ) -> None:
        if self._text_count >= MOST_TEXTS:
            self._texts.clear()
            self._text_count = 0
            texts.by_address.clear()
        self._texts[key] = texts
        texts.by_address[address] = line
        self._text_count += 1

    def _slices(self, data: bytes) -> Iterator[list[Found]]:
        """Yield what the deframer makes of each complete slice."""
        data = self._incomplete + data
        whole = len(data) - len(data) % _SLICE
        self._incomplete = data[whole:]
        for at in range(0, whole, _SLICE):
            yield list(self._deframer.feed(data[at : at + _SLICE]))

    def finish(self) -> Iterator[Item]:
        """End the trace and return the remaining items."""
        last, self._incomplete = self._incomplete, b""
        yield from self._in_order([*self._deframer.feed(last), *self._deframer.finish()])
        yield from self._end_of_filling()

    def _in_order(self, packets_by_source: list[Found]) -> Iterator[Item]:
        """Return items in trace order."""
        for piece in _sorted_pieces(packets_by_source):
            if isinstance(piece, Idle):
                self._fill(piece)
                continue
            yield from self._end_of_filling()
            yield self._packet(piece) if isinstance(piece, _LocatedPacket) else self._lost_item(piece)

    def _fill(self, idle: Idle) -> None:
        before = self._idle
        length = before.length + idle.length if before else idle.length
        self._idle = Item(before.offset if before else idle.offset, length)

    def _end_of_filling(self) -> Iterator[Item]:
        if self._idle is not None:
            idle, self._idle = self._idle, None
            yield idle

    def _lost_item(self, lost: LostBytes) -> Item:
        for known in self._states.values():
            known.forget()
        for accesses in self._accesses.values():
            accesses.lost()
        return Item(lost.offset, lost.length, problem=lost.why or "the start of the buffer, inside a packet")

    def _packet(self, piece: "_LocatedPacket") -> Item:
        known = self._state_of(piece.source)
        item = _bare_item(piece, known)
        if piece.kind is not ContentKind.OTHER:
            try:
                item = (
                    self._data(item, piece.source)
                    if piece.kind is ContentKind.DATA
                    else self._instruction_item(item, known)
                )
            except MalformedPacket as error:
                known.forget()
                return item._replace(problem=str(error))
        remark = known.time_remark(item)
        return item._replace(remark=remark) if remark else item

    def _data(self, item: Item, source: int) -> Item:
        data, access = self._data_decoder(source).decode_packet(item.raw)
        return item._replace(data=data, access=access)

    def _instruction_item(self, item: Item, source_state: SourceState) -> Item:
        assert item.source is not None
        key = (source_state.codec, item.raw)
        packet = self._packets.get(key)
        if packet is None:
            packet = source_state.codec.parse(item.raw)
            if len(self._packets) >= _REMEMBERED:
                self._packets.clear()
            self._packets[key] = packet
        address = source_state.address(packet)
        if packet.format == TeInstFormat.SYNC:
            self._synchronize(packet, source_state, item.source)
        return item._replace(packet=packet, address=address)

    def _synchronize(self, packet: Packet, source_state: SourceState, source: int) -> None:
        """Apply a packet of format 3 to the source's data packets, and a support packet to all of its packets."""
        accesses = self._accesses.get(source)
        if packet.subformat == SyncSubformat.SUPPORT:
            source_state.set_up(packet)
            if accesses is not None:
                accesses.configure(*source_state.setup)
        elif packet.subformat != SyncSubformat.CONTEXT and accesses is not None:
            accesses.synchronize(0)

    def _state_of(self, source: int) -> SourceState:
        known = self._states.get(source)
        if known is None:
            known = self._states[source] = self._start.copy()
        return known

    def _data_decoder(self, source: int) -> DataDecoder:
        decoder = self._accesses.get(source)
        if decoder is None:
            decoder = self._accesses[source] = DataDecoder(*self._state_of(source).setup)
        return decoder


class _LocatedPacket(NamedTuple):
    """A packet with its position in the trace."""

    offset: int
    length: int
    source: int
    kind: ContentKind
    payload: bytes
    time: int | None


def _bare_item(piece: _LocatedPacket, state: SourceState) -> Item:
    """Return the item of a packet before anything in it is read."""
    return Item(
        offset=piece.offset,
        length=piece.length,
        raw=piece.payload,
        source=piece.source,
        timestamp=piece.time,
        setup=state.setup,
    )


def _sorted_pieces(packets_by_source: list[Found]) -> "list[_LocatedPacket | Idle | LostBytes]":
    """Return packets in trace order. The deframer's are sorted by source; a loss may concern any source."""
    pieces = [piece for one in packets_by_source for piece in _located_items(one)]
    pieces.sort(key=attrgetter("offset"))
    return pieces


def _located_items(found: Found) -> "Iterator[_LocatedPacket | Idle | LostBytes]":
    if not isinstance(found, SourcePackets):
        yield found
        return
    times = found.times or [None] * len(found.payloads)
    for place in zip(found.offsets, found.sizes, found.payloads, times, strict=True):
        offset, size, payload, time = place
        yield _LocatedPacket(offset, size, found.source, kind=found.kind, payload=payload, time=time)
