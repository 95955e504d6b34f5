"""The text of a trace's items: one line for each item.

A line contains the kind of packet; the transmitted fields under the specification's names, with flags (notify,
updiscon, irreport) only if they are set; the values that they stand for: addr, map (branches); and after " # " the
meaning. Values contain no blanks, so that a line can be split at blanks. Data packets have such lines too. Meanings:
E-Trace 2.0, "Instruction Trace Encoder Output Packets".
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.etrace import packet
from rvtrace_gdb.decode.etrace.data.codec import ValueEncoding, modes_of, response_mode
from rvtrace_gdb.decode.etrace.data.packet import Content, DataForm, DataOptions, DataPacket
from rvtrace_gdb.decode.etrace.dialects import is_uncounted, possible_branch_counts
from rvtrace_gdb.decode.etrace.items import Item
from rvtrace_gdb.decode.etrace.layout import (
    LEAST_BRANCH_COUNT,
    PRIVILEGES,
    BranchFmt,
    Ext,
    Packet,
    PacketKind,
    SyncSubformat,
    TeInstFormat,
)
from rvtrace_gdb.decode.etrace.options import Modes, Options, Setup
from rvtrace_gdb.decode.history.accesses import note_text
from rvtrace_gdb.decode.program.csrs import trap_text
from rvtrace_gdb.decode.program.instructions import MULTIPLE, MemoryAccess

_COUNTS = frozenset({"size", "lrid", "diff", "resp", "data_len", "op_len"})
"""The fields shown in decimal; the others are bit patterns."""

_ENCODINGS = {ValueEncoding.FULL: "full", ValueEncoding.XOR: "XOR-compressed", ValueEncoding.DIFFERENCE: "differential"}


def data_columns(packet: DataPacket) -> list[str]:
    """Return "name=value" for each field, in the order of the packet."""
    return [f"{name}={value}" if name in _COUNTS else f"{name}={value:#x}" for name, value in packet.fields.items()]


def data_meaning(packet: DataPacket, options: DataOptions) -> str:
    """Return the access of a data packet, and how it is encoded."""
    form, _, fields = packet
    if form in (DataForm.SPLIT_DATA, DataForm.SPLIT_ATOMIC_DATA):
        whose = f"data of load ID {fields['lrid']}"
        if not fields["resp"]:
            return f"{whose}: the load failed"
        return f"{whose}: {_ENCODINGS[response_mode(fields['resp'], options)]} data"
    parts = [_operation(packet)]
    by_address, by_value = modes_of(fields["diff"], form, options)
    if "address" in fields or (form is DataForm.CSR and options.content is Content.ADDRESS):
        parts.append(f"{_ENCODINGS[by_address]} address")
    if "data" in fields or "operand" in fields:
        names = [name for name in ("data", "operand") if name in fields]
        parts.append(f"{_ENCODINGS[by_value]} {'/'.join(names)}")
    if "lrid" in fields:
        parts.append(f"its data follows as load ID {fields['lrid']}")
    return ", ".join(parts)


def _operation(packet: DataPacket) -> str:
    """Return the access in words, e.g. "unaligned load of 4 bytes"."""
    form, code, fields = packet
    alignment = "" if code.aligned else "unaligned "
    if form is DataForm.CSR:
        return f"CSR {code.operation}"
    if code.operation == MULTIPLE:
        return f"{alignment}{code.kind} of {1 << fields['size']} bytes, of an instruction with several"
    operation = f" {code.operation}" if code.operation else ""
    return f"{alignment}{code.kind}{operation} of {1 << fields['size']} byte{'s' if fields['size'] else ''}"


_FLAGS = frozenset({"notify", "updiscon", "irreport"})
_PATTERNS = frozenset({"branch_map", "context", "tval", "address"})
"""The fields shown in hexadecimal; the others are counts and codes."""

_MOST_RAW = 64  # bytes of a payload that are shown at most
_REMEMBERED = 1 << 15  # packets

_STATUS = {
    packet.QualStatus.NO_CHANGE: "",
    packet.QualStatus.ENDED_REP: "tracing ended, and the packet before was sent because of it",
    packet.QualStatus.TRACE_LOST: "packets were lost",
    packet.QualStatus.ENDED_NTR: "tracing ended, the packet before would have been sent anyway",
}


class _Words(NamedTuple):
    """The text of an instruction trace packet by itself.

    packet   the packet; this reference keeps the key of the remembered text alive
    head     the kind and the fields
    columns  the columns after addr
    missing  why its address may not be known; "" if it has none
    meaning  the meaning
    """

    packet: Packet
    head: str
    columns: str
    missing: str
    meaning: str


class Wording:
    """Makes the lines of a trace. *options* are those of its encoder."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._words: dict[int, _Words] = {}

    def text(self, item: Item, *, raw: bool = False) -> str:
        """Return the line for *item*, without its offset. Any item is accepted. *raw*: also show the payload."""
        source = "" if not item.source else f" source={item.source}"
        if item.packet is not None and item.setup is not None:
            words = self._words_of(item.packet, item.setup)
            line = words.head + source + _address_note(item, words) + words.columns
            meaning = words.meaning
            if words.missing and item.address is None:
                meaning += f"; {words.missing}"
        elif item.data is not None and item.setup is not None:
            sent = " ".join((f"kind={item.data.code.kind}", *data_columns(item.data)))
            line = f"te_data {sent}{source}{_access_columns(item.access)}"
            meaning = data_meaning(item.data, DataOptions.from_parameters(*item.setup))
            if item.access is not None and item.access.notes:
                meaning += f"; {note_text(item.access)}"
        else:
            name = "Idle" if item.is_idle else "NoPacket" if item.problem else "Other"
            line, meaning = f"{name} BYTES={item.length}{source}", item.problem
        meaning = "; ".join(filter(None, (meaning, item.remark)))
        if item.timestamp is not None:
            line += f" timestamp={_number_text(item.timestamp)}"
        if item.raw and (raw or item.problem):
            line += f" RAW={item.raw[:_MOST_RAW].hex()}{'..' if len(item.raw) > _MOST_RAW else ''}"
        return f"{line} # {meaning}" if meaning else line

    def is_odd(self, item: Item) -> bool:
        """Whether no encoder with these options sends the item."""
        if item.packet is None or item.setup is None:
            return bool(item.problem)
        return "reserved " in self._words_of(item.packet, item.setup).meaning

    def _words_of(self, packet: Packet, setup: Setup) -> _Words:
        """Return the text of a packet. It is remembered, because few packets of a trace are distinct.

        Packets of different setups are different objects.
        """
        words = self._words.get(id(packet))
        if words is None:
            if len(self._words) >= _REMEMBERED:
                self._words.clear()
            words = self._words[id(packet)] = self._describe(packet, setup)
        return words

    def _describe(self, packet: Packet, setup: Setup) -> _Words:
        key = (packet.format, packet.subformat)
        fields = packet.fields
        kind = f"te_inst format={packet.format}" + ("" if key[1] is None else f" subformat={key[1]}")
        outcomes = f" map={_branches(fields)}" if "branch_map" in fields else ""
        meaning = "; ".join(filter(None, _MEANING[key](fields, setup, self._options)))
        return _Words(packet, f"{kind} {_sent(fields)}".rstrip(), outcomes, _missing(packet), meaning)


def _missing(packet: Packet) -> str:
    """Return why the address of *packet* may not be known."""
    if "address" in packet.fields:
        return "its address is relative to one that is not known here"
    if "index" in packet.fields:
        return "the contents of the jump target cache follow from the code"
    is_trap = (packet.format, packet.subformat) == (TeInstFormat.SYNC, SyncSubformat.TRAP)
    return "the address of that handler was not sent" if is_trap else ""


def _sent(fields: Mapping[str, int]) -> str:
    return " ".join(
        f"{name}={hex(value) if name in _PATTERNS else _number_text(value)}"
        for name, value in fields.items()
        if value or name not in _FLAGS
    )


def _number_text(value: int) -> str:
    """Return *value* in decimal, or in hexadecimal if it has more than 64 bits."""
    return str(value) if value >> 64 == 0 else hex(value)


def _address_note(item: Item, words: _Words) -> str:
    if item.address is not None:
        return f" addr={item.address:#x}"
    return " addr=?" if words.missing else ""


def _branches(fields: Mapping[str, int]) -> str:
    """Return the outcomes in branch_map, oldest first: T taken, N not taken; "..": there may be more."""
    uncounted = is_uncounted(fields)
    count = possible_branch_counts(fields)[0] if uncounted else fields["branches"] or 31
    return "".join("N" if fields["branch_map"] >> i & 1 else "T" for i in range(count)) + (".." if uncounted else "")


Meaning = Callable[[Mapping[str, int], Setup, Options], Iterator[str]]


def _privilege(fields: Mapping[str, int], setup: Setup) -> str:
    value = fields.get("privilege")
    if value is None:
        return ""
    if setup.parameters.privilege_width == 1:
        value *= 3  # a hart of two modes: M and U
    return PRIVILEGES.get(value, f"reserved privilege {value}")


def _flags(fields: Mapping[str, int]) -> Iterator[str]:
    if fields.get("notify"):
        yield "reported because a trigger requested it"
    if fields.get("updiscon"):
        yield "after an uninferable discontinuity"
    if fields.get("irets") is not None:
        yield f"{_plural(fields['irets'], 'implicit return')} since the last branch or packet"
    elif fields.get("irdepth") is not None:
        yield f"return stack depth {fields['irdepth']}"
    elif fields.get("irreport"):
        yield "a return that was not predicted, or the last one before a trap or synchronization"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 'es' if what.endswith('ch') else 's'}"


def _branch_count(fields: Mapping[str, int], setup: Setup, options: Options) -> Iterator[str]:
    count = _plural(fields["branch_count"] + LEAST_BRANCH_COUNT, "branch")
    yield f"{count} as predicted"
    if fields["branch_fmt"] == BranchFmt.NO_ADDR:
        yield "the next one not"
    elif fields["branch_fmt"] == BranchFmt.ADDR_FAIL:
        yield "the one at the address not"
    yield from _flags(fields)


def _jump_target(fields: Mapping[str, int], setup: Setup, options: Options) -> Iterator[str]:
    yield f"to entry {fields['index']} of the jump target cache"
    if fields["branches"]:
        yield _plural(fields["branches"], "branch")
    yield from _flags(fields)


def _diff_delta(fields: Mapping[str, int], setup: Setup, options: Options) -> Iterator[str]:
    if is_uncounted(fields):
        least = possible_branch_counts(fields)[0]
        yield "30 branches" if least == 30 else f"{least} to 30 branches: their number was not sent"
    else:
        yield _plural(fields["branches"], "branch") if fields["branches"] else "31 branches, branch map full"
    yield from _flags(fields)


def _addr_only(fields: Mapping[str, int], setup: Setup, options: Options) -> Iterator[str]:
    yield "" if any(_flags(fields)) else "address reached"
    yield from _flags(fields)


def _start_notes(fields: Mapping[str, int], setup: Setup, options: Options) -> Iterator[str]:
    yield "start of tracing, or synchronization"
    yield _privilege(fields, setup)
    yield "" if fields["branch"] else "the branch there is taken"


def _trap_notes(fields: Mapping[str, int], setup: Setup, options: Options) -> Iterator[str]:
    yield trap_text(fields["ecause"], bool(fields["interrupt"]))
    yield _privilege(fields, setup)
    if not fields["thaddr"]:
        meaning = "undefined" if fields["interrupt"] else "where the trap was, if a discontinuity led there"
        yield f"nothing of the handler has run yet: the address is {meaning}"
    elif "address" not in fields:
        yield "the handler's address follows from the cause"
    yield "" if fields["branch"] or not fields["thaddr"] else "the branch there is taken"


def _context(fields: Mapping[str, int], setup: Setup, options: Options) -> Iterator[str]:
    yield "context"
    yield _privilege(fields, setup)


def _support(fields: Mapping[str, int], setup: Setup, options: Options) -> Iterator[str]:
    support = packet.read_support(Packet(TeInstFormat.SYNC, SyncSubformat.SUPPORT, dict(fields)), options)
    yield "tracing on" if support.ienable else "tracing off"
    yield f"reserved encoder_mode {support.encoder_mode}" if support.encoder_mode else ""
    yield _STATUS[support.qual_status]
    yield ", ".join(name.replace("_", " ") for name in Modes.__dataclass_fields__ if getattr(support.modes, name))
    yield "data trace on" if support.denable else ""
    yield "data packets were lost" if support.dloss else ""


_MEANING: Mapping[PacketKind, Meaning] = {
    (TeInstFormat.OPT_EXT, Ext.BRANCH_COUNT): _branch_count,
    (TeInstFormat.OPT_EXT, Ext.JUMP_TARGET): _jump_target,
    (TeInstFormat.DIFF_DELTA, None): _diff_delta,
    (TeInstFormat.ADDR_ONLY, None): _addr_only,
    (TeInstFormat.SYNC, SyncSubformat.START): _start_notes,
    (TeInstFormat.SYNC, SyncSubformat.TRAP): _trap_notes,
    (TeInstFormat.SYNC, SyncSubformat.CONTEXT): _context,
    (TeInstFormat.SYNC, SyncSubformat.SUPPORT): _support,
}


def _access_columns(access: MemoryAccess | None) -> str:
    """Return the access of a data packet as columns."""
    if access is None:
        return ""
    known = (("addr", access.address), ("value", access.value), ("operand", access.operand))
    return "".join(f" {name}={value:#x}" for name, value in known if value is not None)
