"""Messages about a hart that are not about its flow: InCircuitTrace, DataAcquisition, AuxAccessWrite.

InCircuitTrace has its event in CKSRC and the number of its data in CKDF; an address in CKDATA0 is sent like any other
address, full in InCircuitTraceWS. Most events put it there, and their number, if they have one, in CKDATA1.
DataAcquisition and AuxAccessWrite of SiFive's encoders have the byte address of an ITC stimulus register and what the
program wrote there: four bytes to a register, fewer to the end of it. Elsewhere the tag of DataAcquisition is a
channel.

Sources: IEEE-ISTO 5001 (the names of messages and fields); captures of SiFive's encoders with the output of SiFive's
decoder for what is not published.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.history.hart_events import COUNTER_BITS, MOST_COUNTERS, HartEvent, HartEventKind, ItcWrite
from rvtrace_gdb.decode.ntrace.messages import Message, Tcode


class Cksrc(IntEnum):
    """The values of CKSRC that are known."""

    CONTROL = 0
    EXTERNAL_TRIGGER = 8
    CALL = 9
    """A call or return. CKDF 0: the program determines where it led; 1: CKDATA1 does."""
    EXCEPTION = 10
    INTERRUPT = 11
    COUNTERS = 12
    CONTEXT = 13
    WATCHPOINT = 14
    PC_SAMPLE = 15


IN_CIRCUIT = (Tcode.IN_CIRCUIT_TRACE, Tcode.IN_CIRCUIT_TRACE_WS)
WRITES = (Tcode.DATA_ACQUISITION, Tcode.AUX_ACCESS_WRITE)
HART_EVENTS = frozenset((*IN_CIRCUIT, *WRITES))
"""The messages that are events of a hart."""

_MOST_BITS = 128  # eight counters
_WORD = 4  # bytes of a stimulus register
_KINDS: Mapping[int, HartEventKind] = {
    Cksrc.CONTROL: HartEventKind.CONTROL,
    Cksrc.EXTERNAL_TRIGGER: HartEventKind.TRIGGER,
    Cksrc.CALL: HartEventKind.CALL,
    Cksrc.EXCEPTION: HartEventKind.EXCEPTION,
    Cksrc.INTERRUPT: HartEventKind.INTERRUPT,
    Cksrc.COUNTERS: HartEventKind.COUNTERS,
    Cksrc.CONTEXT: HartEventKind.CONTEXT,
    Cksrc.WATCHPOINT: HartEventKind.WATCHPOINT,
    Cksrc.PC_SAMPLE: HartEventKind.PC_SAMPLE,
}


def has_address(message: Message) -> bool:
    """Whether a message carries an address in CKDATA0."""
    if message.tcode not in IN_CIRCUIT or message.layout is None:
        return False
    cksrc = message.fields["cksrc"]
    return cksrc != Cksrc.COUNTERS and (cksrc != Cksrc.CONTROL or bool(message.fields["ckdf"]))


class SentAddresses(NamedTuple):
    """The addresses in a message, without their bit 0.

    pc      F-ADDR or U-ADDR, in CKDATA0
    full   whether *pc* is F-ADDR; else it is relative to the last address
    target  relative to *pc*; None: the message has none
    """

    pc: int
    full: bool
    target: int | None


def sent_addresses(message: Message) -> SentAddresses | None:
    """Return the addresses in an InCircuitTrace, None if it has none."""
    if not has_address(message):
        return None
    fields = message.fields
    target = fields.get("ckdata1") if fields["cksrc"] == Cksrc.CALL else None
    return SentAddresses(fields["ckdata0"], message.tcode == Tcode.IN_CIRCUIT_TRACE_WS, target)


def hart_event(message: Message, *, ports: bool) -> HartEvent | None:
    """Return the event of a message that is one, a call for any call, return or jump. None: it is not a known one, or
    has more bits than any address or register.

    *ports*: as for `itc_write`.
    """
    if max(message.fields.values()) >> _MOST_BITS:
        return None
    if message.tcode in WRITES:
        return HartEvent(HartEventKind.WRITTEN, written=itc_write(message, ports=ports))
    kind, fields = _KINDS.get(message.fields["cksrc"]), message.fields
    if kind is None or fields["ckdf"] > 1:
        return None
    if kind is HartEventKind.COUNTERS:
        return HartEvent(kind, values=counters(fields))
    number = fields.get("ckdata1", None if has_address(message) else fields["ckdata0"])
    return HartEvent(kind, number if kind.numbered else None)


def counters(fields: Mapping[str, int]) -> tuple[int, ...]:
    """Return the counters of which CKDATA0 and CKDATA1 have 16 bits each, at most eight. Those above the last one that
    is not 0 are not transmitted.
    """
    value = fields["ckdata0"]
    count = min(max(-(-value.bit_length() // COUNTER_BITS), 1), MOST_COUNTERS)
    return tuple(value >> COUNTER_BITS * i & (1 << COUNTER_BITS) - 1 for i in range(count))


def itc_write(message: Message, *, ports: bool) -> ItcWrite:
    """Return what the program wrote. *ports*: the tag is the address of a stimulus register; else it is the channel,
    and high bytes that are 0 may not have been sent. A tag that no register has, and a value that does not fit, have no
    size.
    """
    tag, value = message.fields.values()
    if not ports:
        return ItcWrite(tag, max(-(-value.bit_length() // 8), 1), value)
    size = _WORD - tag % _WORD
    known = tag % _WORD != 1 and not value >> 8 * size
    return ItcWrite(tag // _WORD, size if known else 0, value)
