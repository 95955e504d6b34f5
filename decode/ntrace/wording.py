"""The text of a trace's items: one line for each item.

A line contains the name of the message; the transmitted fields under the specification's names; in lower case the
values that they stand for; and after " # " the meaning. Values contain no blanks, so that a line can be split at
blanks. Meanings: N-Trace 1.0, "N-Trace Messages (Details)" and the table of SYNC values. The meaning of the messages
that only SiFive's encoders send is not published: the text follows their captures and the names that their users know.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.history.event_wording import context_text, fact_text, written_text
from rvtrace_gdb.decode.history.hart_events import HartEventKind
from rvtrace_gdb.decode.item_texts import TimedText, number_text
from rvtrace_gdb.decode.ntrace.in_circuit import hart_event, has_address, itc_write
from rvtrace_gdb.decode.ntrace.items import Item
from rvtrace_gdb.decode.ntrace.messages import VENDOR_TCODES, BType, Message, ProcessField, ProcessFormat, Rcode, Tcode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.csrs import ProgramContext


def _counted_text(value: int, what: str, plural: str = "s") -> str:
    return f"{number_text(value)} {what}{'' if value == 1 else plural}"


def in_circuit_trace(message: Message, options: Options) -> str:
    """Return the event with its number or its counters. A call is any call or return: only the program says which."""
    event = hart_event(message, ports=options.dialect.stimulus_ports)
    if event is None:
        return f"event {message.fields['cksrc']}"
    return "call or return" if event.kind is HartEventKind.CALL else fact_text(event)


def data_written(message: Message, options: Options) -> str:
    """Return what the program wrote to which channel, also as text if it is ASCII."""
    return written_text(itc_write(message, ports=options.dialect.stimulus_ports))


_COUNTS = frozenset({"sync", "b_type", "icnt", "etype", "rcode", "hrepeat", "bcnt", "evcode", "cdf", "cksrc", "ckdf"})
"""The fields shown in decimal; the others are bit patterns."""

_MOST_RAW = 64  # bytes of a message that are shown at most
_REMEMBERED = 1 << 15  # messages
_MOST_BITS = {"icnt": 22, "faddr": 63, "uaddr": 63, "hist": 32, "hrepeat": 18, "bcnt": 18}
"""The maximum field sizes (1.0, "Common Fields"). That of TSTAMP is 64."""

_ECODES = {2: "program trace lost", 3: "ownership trace lost", 7: "vendor defined messages lost"}


class _Words(NamedTuple):
    """The text of a message by itself, independent of the messages before it.

    head      the name and the fields, but TSTAMP
    columns   the columns between addr and time
    address   whether the message has an address that may not be known
    meaning   the meaning
    oddities  notes on unusual field values
    """

    head: str
    columns: str
    address: bool
    meaning: str
    oddities: tuple[str, ...]


class Wording:
    """Makes the lines of a trace. *options* are those of its encoder."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._words: dict[bytes, _Words] = {}

    def text(self, item: Item, *, raw: bool = False) -> str:
        """Return the line for *item*, without its offset. Any item is accepted.

        *raw*: also show the bytes. They are always shown for a message that is not in the table.
        """
        message = item.message
        if message is None:
            name = "Idle" if item.is_idle else "NoMessage"
            shown = _raw(item) if raw and item.raw else ""
            comment = item.problem or item.remark
            return f"{name} BYTES={item.length}{shown}" + (f" # {comment}" if comment else "")
        words = self._words.get(item.raw) or self._describe(item.raw, message)
        line = words.head + _stamp(message) + _address_columns(item, words) + words.columns + _time(item, message)
        if raw or message.layout is None:
            line += _raw(item)
        return line + _meaning_column(item, words, message)

    def timed_text(self, item: Item, body: bytes, *, raw: bool = False) -> TimedText | None:
        """Return the pieces of the line of a message that has a time. *body*: its bytes without TSTAMP. None: another
        TSTAMP may change more of the line.
        """
        message = item.message
        if message is None or message.layout is None or item.time is None or item.remark:
            return None
        words = self._words.get(item.raw) or self._describe(item.raw, message)
        meaning = _meaning_column(item, words, message)
        between = f"{_address_columns(item, words)}{words.columns} time="
        shown = f" RAW={body.hex()}" if raw else meaning
        return TimedText(f"{words.head} TSTAMP=", between, shown, meaning if raw else None)

    def is_odd(self, item: Item) -> bool:
        """Whether no encoder with these options sends the item: it has a reserved code or a field too many."""
        message = item.message
        if message is None:
            return not item.is_idle
        if message.tcode == Tcode.DATA_ACQUISITION and not self._options.dialect.stimulus_ports:
            return True  # N-Trace has no such message
        meaning = (self._words.get(item.raw) or self._describe(item.raw, message)).meaning
        return "reserved " in meaning or (message.tstamp is not None and not self._options.timestamps)

    def _describe(self, frame: bytes, message: Message) -> _Words:
        """Return the text of a message. It is remembered, because few messages of a trace are distinct."""
        words = _Words(
            " ".join((_message_name(message), *_sent(message, self._options))),
            "".join(f" {column}" for column in _interpretation(message)),
            "uaddr" in message.fields or has_address(message),
            "; ".join(_meaning(message, self._options)),
            tuple(_oddities(message)),
        )
        if len(self._words) >= _REMEMBERED:
            self._words.clear()
        self._words[frame] = words
        return words


def _address_columns(item: Item, words: _Words) -> str:
    """Return the address columns, with "?" for an address that is not known."""
    if item.address is None:
        return " addr=?" if words.address else ""
    target = "" if item.target is None else f" target={item.target:#x}"
    return f" addr={item.address:#x}{target}"


def _meaning_column(item: Item, words: _Words, message: Message) -> str:
    notes = (*_unknown_notes(item, words, message), *words.oddities, item.remark)
    meaning = "; ".join(filter(None, (words.meaning, *notes)))
    return f" # {meaning}" if meaning else ""


def _stamp(message: Message) -> str:
    return "" if message.tstamp is None else f" TSTAMP={number_text(message.tstamp)}"


def _time(item: Item, message: Message) -> str:
    if message.tstamp is None:
        return ""
    return " time=?" if item.time is None else f" time={number_text(item.time)}"


def _raw(item: Item) -> str:
    return f" RAW={item.raw[:_MOST_RAW].hex()}{'..' if len(item.raw) > _MOST_RAW else ''}"


def _message_name(message: Message) -> str:
    if message.layout is not None:
        return message.layout.name
    return "VendorDefined" if message.tcode in VENDOR_TCODES else "Reserved"


def _sent(message: Message, options: Options) -> Iterator[str]:
    yield f"TCODE={message.tcode}"
    if options.src_bits:
        yield f"SRC={message.src}"
    for field in message.layout.fields if message.layout else ():
        if field.name in message.fields:
            value = message.fields[field.name]
            decimal = field.name in _COUNTS or (field.name == "rdata" and not _is_history(message))
            yield f"{field.title}={number_text(value) if decimal else hex(value)}"


def _interpretation(message: Message) -> Iterator[str]:
    """Return the values for which the fields stand as columns, without addresses and times."""
    fields = message.fields
    hist = fields.get("hist")
    if _is_history(message):
        hist = fields["rdata"]
    if hist is not None:
        yield f"hist={branches(hist)}"
    process = ProcessField.from_field(message.fields["process"]) if message.tcode == Tcode.OWNERSHIP else None
    if process is not None:
        yield from _context(process)


def _is_history(message: Message) -> bool:
    """Whether a message is a ResourceFull whose RDATA is a HIST."""
    return message.fields.get("rcode") in (Rcode.HIST, Rcode.REPEATED_HIST)


def branches(hist: int) -> str:
    """Return the outcomes in a HIST field, oldest first: T taken, N not taken; "-" for none, "?" without a stop bit."""
    if not hist:
        return "?"
    return f"{hist:b}"[1:].translate({ord("0"): "N", ord("1"): "T"}) or "-"


def _context(process: ProcessField) -> Iterator[str]:
    if process.reserved:
        return
    yield f"prv={process.prv}"
    yield f"v={process.v}"
    if process.format in (ProcessFormat.SCONTEXT, ProcessFormat.HCONTEXT):
        yield f"{process.format.name.lower()}={number_text(process.context)}"


def _meaning(message: Message, options: Options) -> Iterator[str]:
    """Return the parts of the meaning, the most important one first."""
    fields, dialect = message.fields, options.dialect
    if message.layout is None:
        yield "vendor defined message" if message.tcode in VENDOR_TCODES else "reserved TCODE"
        return
    if "sync" in fields:
        yield _coded("SYNC", fields["sync"], {code: reason.text for code, reason in dialect.starts.items()}, vendor=14)
    own = _SPECIFIC.get(message.tcode)
    if own is not None:
        yield own(message, options)
    b_type = fields.get("b_type", BType.JUMP)
    if b_type != BType.JUMP:
        yield dialect.traps[b_type].text
    elif "uaddr" in fields:
        yield "indirect jump, call or return"


def _coded(name: str, value: int, texts: Mapping[int, str], vendor: int) -> str:
    """Return the text of a code. Codes from *vendor* on are vendor defined."""
    return texts.get(value) or f"{'vendor defined' if value >= vendor else 'reserved'} {name} {value}"


def _ownership(message: Message, options: Options) -> str:
    process = ProcessField.from_field(message.fields["process"])
    if process.reserved:
        return f"reserved {process.reserved} of PROCESS"
    mode = context_text(ProgramContext(process.prv, bool(process.v)))
    if process.format is ProcessFormat.PRIVILEGE:
        return mode
    return f"{mode}, {process.format.name.lower()} {number_text(process.context)}"


def _direct_branch(message: Message, options: Options) -> str:
    also_jumps = options.all_jumps or options.dialect.jump_ends_branch
    return "branch taken, or direct jump" if also_jumps else "branch taken"


def _error(message: Message, options: Options) -> str:
    etype, ecode = message.fields["etype"], message.fields["ecode"]
    known = {0: "messages lost in a FIFO overrun"}
    lost = [name for bit, name in _ECODES.items() if ecode >> bit & 1]
    return ", ".join([_coded("ETYPE", etype, known, vendor=8), *lost])


def _resource_full(message: Message, options: Options) -> str:
    rcode, rdata = message.fields["rcode"], message.fields["rdata"]
    if rcode == Rcode.ICNT:
        return "I-CNT full"
    if rcode == Rcode.HIST:
        return "HIST full"
    if rcode == Rcode.REPEATED_HIST:
        return f"HIST full, {_counted_text(message.fields['hrepeat'], 'time')} the same"
    if rcode in options.dialect.run_rcodes:
        outcome = "taken" if options.dialect.run_rcodes[rcode] else "not taken"
        return f"{_counted_text(rdata, 'branch', 'es')} {outcome}"
    return _coded("RCODE", rcode, {}, vendor=8)


def _repeat_branch(message: Message, options: Options) -> str:
    return f"the branch message before, {_counted_text(message.fields['bcnt'], 'time')} more"


def _correlation(message: Message, options: Options) -> str:
    texts = {code: reason.text for code, reason in options.dialect.stops.items()}
    reason = _coded("EVCODE", message.fields["evcode"], texts, vendor=8)
    cdf = message.fields["cdf"]
    return f"{reason}; reserved CDF {cdf}" if cdf > 1 else reason


_SPECIFIC: Mapping[int, Callable[[Message, Options], str]] = {
    Tcode.OWNERSHIP: _ownership,
    Tcode.DIRECT_BRANCH: _direct_branch,
    Tcode.ERROR: _error,
    Tcode.RESOURCE_FULL: _resource_full,
    Tcode.REPEAT_BRANCH: _repeat_branch,
    Tcode.PROG_TRACE_CORRELATION: _correlation,
    Tcode.DATA_ACQUISITION: data_written,
    Tcode.AUX_ACCESS_WRITE: data_written,
    Tcode.IN_CIRCUIT_TRACE: in_circuit_trace,
    Tcode.IN_CIRCUIT_TRACE_WS: in_circuit_trace,
}


def _unknown_notes(item: Item, words: _Words, message: Message) -> Iterator[str]:
    """Return notes on the address and time if they are relative to unknown ones."""
    if words.address and item.address is None:
        yield "its address is relative to one that is not known here"
    if message.tstamp is not None and item.time is None:
        yield "its TSTAMP is relative to a time that is not known here"


def _oddities(message: Message) -> Iterator[str]:
    for field in message.layout.fields if message.layout else ():
        value, most = message.fields.get(field.name, 0), _MOST_BITS.get(field.name)
        size = value.bit_length()
        if most is not None and size > most and not (field.name == "faddr" and _is_sign_extended(value, most)):
            yield f"{field.title} has {size} bits, more than {most}"


def _is_sign_extended(value: int, most: int) -> bool:
    """Return whether an address is only longer than it can be because its top bit is repeated, as the SpacemiT K3 does.
    """
    above = value >> most - 1
    return above == (1 << above.bit_length()) - 1
