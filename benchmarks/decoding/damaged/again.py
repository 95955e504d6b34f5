"""Whether damaged bytes are what an encoder sends: the whole history, encoded again with the encoder's own settings.

That is what nobody can tell from the trace. It is decided here without the check: one encoder runs from the beginning
to the end, with its period, and everything is compared that the history determines.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder as EtraceEncoder
from rvtrace_gdb.decode.etrace.encoder.options import ContextType
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as EtraceEncoding
from rvtrace_gdb.decode.etrace.layout import MalformedPacket, Packet, TeInstFormat
from rvtrace_gdb.decode.etrace.layout import SyncSubformat as Kind
from rvtrace_gdb.decode.etrace.options import Options
from rvtrace_gdb.decode.etrace.packet import codec
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.history.events import ContextChange, TrapKind
from rvtrace_gdb.decode.history.events import Trap as TrapFact
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder as NtraceEncoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, MalformedMessage, Packer, Sync, parse
from rvtrace_gdb.decode.ntrace.options import EncoderOptions as NtraceEncoding
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image

_MOST = 1 << 18  # instructions; no stream has so many, undamaged
_ALWAYS_LEGAL = frozenset({"time", "ecause", "interrupt", "tval", "sync", "b_type", "evcode"})
_MACHINE = 3
_CONTEXT = TeInstFormat.SYNC | Kind.CONTEXT << 2

Item = Block | IngressTrap | ProgramContext


class Imprecise(NamedTuple):
    """A context that is reported by a packet without an address."""

    context: ProgramContext


def items(history: History, image: Image, data: bytes = b"") -> Iterator[Item | Imprecise]:
    """What ran, with the traps and changes of context that the trace reports. *data*: E-Trace's, framed."""
    marks: list[tuple[int, IngressTrap | ProgramContext | Imprecise]] = []
    for event in history.events:
        if isinstance(event.fact, ContextChange):
            changed = event.fact.now
            imprecise = data and data[event.offset + 1] & 15 == _CONTEXT
            marks.append((event.position, Imprecise(changed) if imprecise else changed))
        if isinstance(event.fact, TrapFact):
            fact = event.fact
            epc = -2 if event.last_pc is None else event.last_pc
            trap = IngressTrap(
                epc, fact.kind is TrapKind.INTERRUPT, fact.cause or 0, fact.value or 0, event.next_pc or 0
            )
            marks.append((event.position, trap))
    marks.sort(key=lambda mark: (mark[0], not isinstance(mark[1], IngressTrap)))
    at = 0
    for position, mark in marks:
        yield from blocks_from_pcs(history.pcs(at, position), image)
        yield mark
        at = position
    yield from blocks_from_pcs(history.pcs(at), image)


def etrace_packets(ran: Sequence[Item | Imprecise], encoding: EtraceEncoding, next_pc: int | None) -> list[bytes]:
    """The packets of an encoder that starts and stops."""
    packets: list[bytes] = []
    encoder = EtraceEncoder(encoding, packets.append)
    encoder.context(ProgramContext(_MACHINE))
    while ran and isinstance(ran[0], ProgramContext):
        encoder.context(ran[0])
        ran = ran[1:]
    encoder.start()
    for item in ran:
        if isinstance(item, Imprecise):
            encoder.context(item.context, ContextType.IMPRECISE)
        else:
            encoder.retire([item])
    encoder.stop(next_pc)
    return packets


def ntrace_messages(ran: Sequence[Item], encoding: NtraceEncoding, next_pc: int | None) -> list[bytes]:
    """The messages of an encoder that starts and stops."""
    messages: list[bytes] = []
    encoder = NtraceEncoder(encoding, messages.append)
    encoder.start(Sync.EXIT_FROM_DEBUG)
    encoder.retire(ran)
    encoder.stop(Evcode.DEBUG_MODE, next_pc)
    return messages


def ends(ran: Sequence[object]) -> list[int | None]:
    """Where the program may have gone on."""
    last = ran[-1] if ran else None
    return [None, last.fall, last.taken_target] if isinstance(last, Block) else [None]


def is_legal_etrace(data: bytes, history: History, *, image: Image, encoding: EtraceEncoding) -> bool:
    """Whether these packets, each after a byte with its length, are those of the history."""
    if len(history) > _MOST or history.gaps:
        return False
    reader = codec(encoding.decoder, encoding.modes)
    try:
        ran = list(items(history, image, data))
    except CodeMissing:
        return False

    def determined(packets: list[bytes]) -> list[object]:
        """What the history determines, without what the two encoders do differently (tests/decode/etrace/encoder)."""
        found: list[Packet] = []
        for packet in packets:
            try:
                format, subformat, fields = reader.parse(packet)
            except MalformedPacket:
                return [packets]
            kept = {name: value for name, value in fields.items() if name not in _ALWAYS_LEGAL}
            if (format, subformat) == (TeInstFormat.SYNC, Kind.TRAP) and fields["interrupt"] and not fields["thaddr"]:
                kept.pop("address", None)  # undefined
            if not kept.get("irdepth"):
                kept.pop("irdepth", None)
                kept.pop("irreport", None)
            found.append(Packet(format, subformat, kept))
            if found[-1][:2] == (TeInstFormat.SYNC, Kind.TRAP) and len(found) > 1:
                found[-2].fields.pop("updiscon", None)
        return list[object](found)

    packets, at = [], 0
    while at < len(data):
        size = data[at] & 31
        packets.append(data[at + 1 : at + 1 + size])
        at += 1 + size
    sent = determined(packets)
    freely = [replace(encoding, shortest=shortest) for shortest in (True, False)]
    return any(determined(etrace_packets(ran, one, end)) == sent for one in freely for end in ends(ran))


def is_legal_ntrace(data: bytes, history: History, *, image: Image, encoding: NtraceEncoding) -> bool:
    """Whether these messages are those of the history."""
    if len(history) > _MOST or history.gaps:
        return False
    ran = [item for item in items(history, image) if not isinstance(item, Imprecise)]

    def determined(message: bytes) -> object:
        try:
            found = parse(message, 0)
        except MalformedMessage:
            return message
        return found.tcode, {name: value for name, value in found.fields.items() if name not in _ALWAYS_LEGAL}

    messages, start = [], 0
    for at, byte in enumerate(data, 1):
        if byte & 3 == 3:
            messages.append(data[start:at])
            start = at
    sent = list(map(determined, messages))
    return any(list(map(determined, ntrace_messages(ran, encoding, end))) == sent for end in ends(ran))


def extreme_etrace(options: Options, rng: random.Random, framed: bytes) -> bytes | None:
    """A packet with one field at its least or greatest value; None if it has no such field."""
    made = codec(options, options.modes)
    try:
        format, subformat, fields = made.parse(framed[1:])
    except MalformedPacket:
        return None
    name = rng.choice(sorted(fields))
    widths = {"branches": 5, "branch_map": 31, "privilege": 2, "branch_count": 32, "branch_fmt": 2, "address": 20}
    value = rng.choice((0, (1 << widths.get(name, 1)) - 1))
    changed = {**fields, name: value << options.parameters.iaddress_lsb if name == "address" else value}
    try:
        payload = made.build(format, subformat, changed, compress=True)
    except (ValueError, KeyError, OverflowError):
        return None
    return bytes((len(payload),)) + payload if len(payload) < 32 else None


_EXTREMES = {
    "icnt": 16, "hist": 32, "uaddr": 20, "faddr": 32, "rdata": 20, "sync": 4, "b_type": 2, "evcode": 4, "cdf": 2,
}  # fmt: skip


def extreme_ntrace(encoding: NtraceEncoding, rng: random.Random, frame: bytes) -> bytes | None:
    """A message with one field at its least or greatest value; None if it cannot be built."""
    message = parse(frame, 0)
    if not message.fields:
        return None
    name = rng.choice(sorted(message.fields))
    value = rng.choice((0, (1 << _EXTREMES.get(name, 4)) - 1))
    changed = {**message.fields, name: value}
    try:
        return Packer(encoding.dialect.layouts, 0, 0).pack(message.tcode, *changed.values())
    except (ValueError, OverflowError):
        return None
