"""Functions that parse and build te_inst packets, and the layouts of support packets.

A payload is a string of bits; the first one is bit 0 of byte 0. "Sign based compression" leaves out equal bits at its
end, whatever fields they belong to.

Support packets are format 3, subformat 3. E-Trace 2.0 leaves their contents to implementations ("Format 3 subformat 3 -
Support"), so there is one table for each: for the reference flow's encoder model, the Standard Support Packet
extension v0.8, rv_tracer, and Espressif's ET20 and PT10.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from rvtrace_gdb.decode.etrace import dialects, layout
from rvtrace_gdb.decode.etrace.layout import (
    FORMAT_BITS,
    Ext,
    MalformedPacket,
    Packet,
    PacketField,
    PacketKind,
    PayloadReader,
    PayloadWriter,
    PlacedField,
    SyncSubformat,
    TeInstFormat,
    byte_count,
    f0s_width,
    fixed,
    placed_fields,
)
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout


class QualStatus(IntEnum):
    """The values of qual_status: what happened to the instructions before the packet."""

    NO_CHANGE = 0
    ENDED_REP = 1
    """Tracing ended, and the packet before was sent because of that."""
    TRACE_LOST = 2
    """One or more packets of instruction trace were lost."""
    ENDED_NTR = 3
    """Tracing ended, and the packet before would have been sent anyway, because of its updiscon."""


class SupportField(NamedTuple):
    """One field of a layout. *setting*: the attribute of Parameters or Modes that it reports; "": none."""

    name: str
    bits: int
    setting: str = ""


class SupportTable(NamedTuple):
    """A layout of support packets. *units*: the units of parameters that are transmitted divided by a unit."""

    entries: tuple[SupportField, ...]
    units: Mapping[str, int] = {}

    @property
    def fields(self) -> tuple[PacketField, ...]:
        """The fields in order of transmission."""
        return tuple(PacketField(one.name, fixed(one.bits)) for one in self.entries)


class Support(NamedTuple):
    """The contents of a support packet.

    ienable       whether instruction trace is on
    encoder_mode  the algorithm; 0: branch trace, the only one defined
    qual_status   what happened before the packet
    denable       whether data trace is on
    dloss         whether packets of data trace were lost
    parameters, modes   the parameters and modes that apply from here on
    """

    ienable: bool
    encoder_mode: int
    qual_status: QualStatus
    denable: bool
    dloss: bool
    parameters: Parameters
    modes: Modes


_STATUS = (SupportField("ienable", 1), SupportField("encoder_mode", 1), SupportField("qual_status", 2))

LAYOUTS: Mapping[SupportLayout, SupportTable] = {
    SupportLayout.REFERENCE: SupportTable(
        (
            *_STATUS,
            SupportField("implicit_return", 1, "implicit_return"),
            SupportField("implicit_exception", 1, "implicit_exception"),
            SupportField("full_address", 1, "full_address"),
            SupportField("jump_target_cache", 1, "jump_target_cache"),
            SupportField("branch_prediction", 1, "branch_prediction"),
            SupportField("denable", 1),
            SupportField("dloss", 1),
            SupportField("no_address", 1, "data_no_address"),
            SupportField("no_data", 1, "data_no_data"),
            SupportField("full_daddress", 1, "data_full_address"),
            SupportField("full_data", 1, "data_full_data"),
        )
    ),
    SupportLayout.STANDARD: SupportTable(
        (
            SupportField("ienable", 1),
            SupportField("encoder_mode", 2),
            SupportField("qual_status", 2),
            SupportField("sijump", 1, "sijump"),
            SupportField("implicit_return", 1, "implicit_return"),
            SupportField("branch_predictor", 1, "branch_prediction"),
            SupportField("jump_target_cache", 1, "jump_target_cache"),
            SupportField("implicit_except", 1, "implicit_exception"),
            SupportField("full_iaddress", 1, "full_address"),
            SupportField("resync_disabled", 1, "resync_disabled"),
            SupportField("iret_ext", 1, "iret_ext"),
            SupportField("time_width", 3, "time_width"),
            SupportField("f0s_width", 2, "f0s_width"),
            SupportField("return_stack_size", 3, "return_stack_size"),
            SupportField("call_counter_size", 4, "call_counter_size"),
            SupportField("bpred_size", 3, "bpred_size"),
            SupportField("cache_size", 3, "cache_size"),
            SupportField("denable", 1),
            SupportField("dloss", 1),
            SupportField("mmacas_ext", 1, "mmacas_ext"),
            SupportField("noaddr", 1, "data_no_address"),
            SupportField("nodata", 1, "data_no_data"),
            SupportField("full_daddress", 1, "data_full_address"),
            SupportField("full_data", 1, "data_full_data"),
        ),
        {"time_width": 16},
    ),
    SupportLayout.PULP: SupportTable(
        (
            *_STATUS,
            SupportField("jump_target_cache", 1, "jump_target_cache"),
            SupportField("branch_prediction", 1, "branch_prediction"),
            SupportField("implicit_return", 1, "implicit_return"),
            SupportField("sijump", 1, "sijump"),
            SupportField("implicit_exception", 1, "implicit_exception"),
            SupportField("full_address", 1, "full_address"),
            SupportField("delta_address", 1),
        )
    ),
    SupportLayout.ET20: SupportTable(
        (
            *_STATUS,
            SupportField("implicit_return", 1, "implicit_return"),
            SupportField("implicit_exception", 1, "implicit_exception"),
            SupportField("full_address", 1, "full_address"),
            SupportField("jump_target_cache", 1, "jump_target_cache"),
            SupportField("branch_prediction", 1, "branch_prediction"),
            SupportField("sijump", 1, "sijump"),
        )
    ),
    SupportLayout.PT10: SupportTable((SupportField("ienable", 1), SupportField("qual_status", 2))),
}

_MODES = frozenset(Modes.__dataclass_fields__)
_PARAMETERS = frozenset(Parameters.__dataclass_fields__)


def read_support(packet: Packet, options: Options) -> Support:
    """Return the contents of a support packet. *options* supply the parameters and modes that it does not report."""
    fields, table = packet.fields, LAYOUTS[options.support]
    modes: dict[str, bool] = {}
    parameters: dict[str, Any] = {}
    if not options.pinned:
        for name, bits, setting in table.entries:
            if setting in _MODES:
                modes[setting] = bool(fields[name])
            elif setting in _PARAMETERS:
                parameters[setting] = fields[name] * table.units.get(setting, 1) if bits > 1 else bool(fields[name])
    return Support(
        ienable=bool(fields["ienable"]),
        encoder_mode=fields.get("encoder_mode", 0),
        qual_status=QualStatus(fields["qual_status"]),
        denable=bool(fields.get("denable", 0)),
        dloss=bool(fields.get("dloss", 0)),
        parameters=replace(options.parameters, **parameters),
        modes=replace(options.modes, **modes),
    )


def apply_support(packet: Packet, options: Options) -> tuple[Parameters, Modes]:
    """Return the parameters and modes that apply after the support packet *packet*."""
    support = read_support(packet, options)
    return support.parameters, support.modes


def support_fields(
    layout: SupportLayout,
    parameters: Parameters,
    modes: Modes,
    *,
    ienable: bool = True,
    qual_status: QualStatus = QualStatus.NO_CHANGE,
    denable: bool = False,
    dloss: bool = False,
) -> dict[str, int]:
    """Return the fields of a support packet of an encoder in *modes*, for `build`.

    Raises ValueError if *layout* cannot represent the parameters.
    """
    table = LAYOUTS[layout]
    known = {
        "ienable": int(ienable),
        "encoder_mode": 0,
        "qual_status": int(qual_status),
        "denable": int(denable),
        "dloss": int(dloss),
        "delta_address": int(not modes.full_address),
    }
    fields: dict[str, int] = {}
    for name, bits, setting in table.entries:
        value = known[name] if not setting else _setting_value(setting, parameters, modes)
        unit = table.units.get(setting, 1)
        if value % unit or value // unit >> bits:
            raise ValueError(f"{setting} {value} does not fit in {bits} bits of a support packet ({layout.value})")
        fields[name] = value // unit
    return fields


def _setting_value(setting: str, parameters: Parameters, modes: Modes) -> int:
    if setting in _MODES:
        return int(getattr(modes, setting))
    if setting == "f0s_width":
        return f0s_width(parameters)
    return int(getattr(parameters, setting))


def parse(payload: bytes, options: Options, modes: Modes) -> Packet:
    """Parse the packet in *payload*, of an encoder in *modes*. Raises MalformedPacket."""
    return codec(options, modes).parse(payload)


def build(
    format: int,
    subformat: int | None,
    fields: Mapping[str, int],
    options: Options,
    modes: Modes,
    *,
    compress: bool = True,
) -> bytes:
    """Return the payload of a packet with *fields* as in `Packet`; missing flags are 0.

    A difference of addresses may be given modulo 2**iaddress_width. Without *compress* all fields are sent, and the
    last bit is repeated up to a whole byte. Raises ValueError for a field that is missing or does not fit.
    """
    return codec(options, modes).build(format, subformat, fields, compress=compress)


def codec(options: Options, modes: Modes) -> "PacketCodec":
    """Return the codec for *options* and *modes*. A caller with many packets keeps it for as long as *modes* apply."""
    return _codec(options.parameters, modes, options.dialect, options.support)


class FullMap(NamedTuple):
    """Which payloads have outcomes of branches alone: those whose lowest *prefix_bits* bits are *prefix*; the next
    *outcomes* bits.
    """

    prefix_bits: int
    prefix: int
    outcomes: int


class PacketCodec:
    """Parses and builds the packets of an encoder with these parameters in these modes."""

    def __init__(self, parameters: Parameters, modes: Modes, dialect: Dialect, supported: SupportLayout) -> None:
        self._parameters = parameters
        self._modes = modes
        self._rules = dialects.RULES[dialect]
        self._f0s_width = layout.f0s_width(parameters)
        formats = {**self._rules.layout, (TeInstFormat.SYNC, SyncSubformat.SUPPORT): LAYOUTS[supported].fields}
        self._shapes = {key: placed_fields(fields, parameters, modes) for key, fields in formats.items()}

    def parse(self, payload: bytes) -> Packet:
        """Parse the packet in *payload*. Raises MalformedPacket."""
        if not payload:
            raise MalformedPacket("an empty packet")
        read = PayloadReader(payload, self._modes, self._rules.map_bits)
        format, subformat = self._key(read)
        if format == TeInstFormat.OPT_EXT:
            self._check_extension(subformat)
        read.read(self._packet_fields(format, subformat))
        self._check_length(read, format == TeInstFormat.SYNC and subformat == SyncSubformat.SUPPORT)
        fields = read.fields
        if fields.get("branch_fmt") == layout.BranchFmt.RESERVED:
            raise MalformedPacket("reserved branch_fmt 1")
        if self._rules.by_length and format == TeInstFormat.DIFF_DELTA:
            dialects.settle_branches(fields, uncounted=self._rules.uncounted)
        return Packet(format, subformat, fields)

    def full_map(self) -> FullMap | None:
        """Return which payloads have the outcomes of a full branch_map and nothing else, None if that takes more than
        a look at their first bits.
        """
        rules, shape = self._rules, self._shapes.get((TeInstFormat.DIFF_DELTA, None), ())[:3]
        fields = [(place.name, place.kind, place.condition) for place in shape]
        standard = layout.STANDARD[TeInstFormat.DIFF_DELTA, None][:3]
        usual = fields == [(field.name, field.kind, field.condition) for field in standard]
        if rules.key is not None or rules.by_length or not rules.compressed or not usual:
            return None
        bits = FORMAT_BITS + shape[0].bits
        return FullMap(bits, TeInstFormat.DIFF_DELTA, rules.map_bits[0])

    def build(self, format: int, subformat: int | None, fields: Mapping[str, int], *, compress: bool = True) -> bytes:
        """Do the same as the function `build`. *compress* has no effect in dialects without compression."""
        shape = self._shapes.get((format, subformat))
        if shape is None:
            raise ValueError(f"no packet has format {format}, subformat {subformat}")
        write = PayloadWriter(fields, self._modes, self._rules.map_bits)
        write.put("format", format, FORMAT_BITS)
        if subformat is not None:
            write.put("subformat", subformat if self._subformat_width(format) else 0, self._subformat_width(format))
        write.write(shape)
        return write.payload(compressed=compress and self._rules.compressed, zero_padded=self._rules.zero_padded)

    def _key(self, read: PayloadReader) -> PacketKind:
        if self._rules.key is not None:
            return self._rules.key(read)
        format = read.take(FORMAT_BITS)
        if format in (TeInstFormat.DIFF_DELTA, TeInstFormat.ADDR_ONLY):
            return format, None
        width = self._subformat_width(format)
        return format, read.take(width) if width else self._only_extension()

    def _packet_fields(self, format: int, subformat: int | None) -> tuple[PlacedField, ...]:
        shape = self._shapes.get((format, subformat))
        if shape is None:
            what = f"format {format}" if subformat is None else f"format {format} subformat {subformat}"
            raise MalformedPacket(f"{what} is not one that this encoder sends")
        return shape

    def _subformat_width(self, format: int) -> int:
        return 2 if format == TeInstFormat.SYNC else self._f0s_width

    def _only_extension(self) -> int:
        """Return the subformat of format 0 if it is not transmitted: that of the only extension in use."""
        modes, parameters = self._modes, self._parameters
        for counts, jumps in (
            (modes.branch_prediction, modes.jump_target_cache),
            (parameters.bpred_size > 0, parameters.cache_size > 0),
        ):
            if counts != jumps:
                return Ext.BRANCH_COUNT if counts else Ext.JUMP_TARGET
        raise MalformedPacket("format 0 without subformat, and neither modes nor sizes say which one it has")

    def _check_extension(self, subformat: int | None) -> None:
        """Raise MalformedPacket for an extension that the encoder does not have."""
        if subformat == Ext.JUMP_TARGET and not self._parameters.cache_size:
            raise MalformedPacket("an entry of the jump target cache, but there is none: cache_size is 0")
        if subformat == Ext.BRANCH_COUNT and not self._parameters.bpred_size:
            raise MalformedPacket("a count of predicted branches, but no branch predictor: bpred_size is 0")

    def _check_length(self, read: PayloadReader, open_ended: bool) -> None:
        """Raise MalformedPacket for a payload that is too long, or too short in a dialect without compression.

        The bits up to a whole byte may have any value (e-trace-encap, "Packet Length"); further whole bytes must repeat
        the last bit.
        """
        if not self._rules.compressed and read.at > read.end:
            raise MalformedPacket(f"{byte_count(read.end // 8)}, but its fields take {(read.at + 7) // 8}")
        if read.bits >> (read.at + 7 & ~7) not in (0, -1) and not open_ended:
            raise MalformedPacket(f"{byte_count(read.end // 8)}, of which {(read.at + 7) // 8} are fields")


_codec = lru_cache(maxsize=256)(PacketCodec)
