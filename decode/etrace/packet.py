"""One packet: its fields, read from a payload and written to one.

A payload is a string of bits, the first in bit 0 of byte 0. "Sign based compression" leaves out equal bits at its end,
whatever fields they belong to.
"""

from collections.abc import Mapping
from functools import lru_cache

from rvtrace_gdb.decode.etrace import dialects, layout, support
from rvtrace_gdb.decode.etrace.fields import Malformed, Packet, Place, Reader, Writer, counted, places
from rvtrace_gdb.decode.etrace.layout import FORMAT_BITS, Ext, Format, Key, Sync
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout

__all__ = ["Codec", "Malformed", "Packet", "build", "codec", "parse"]


def parse(payload: bytes, options: Options, modes: Modes) -> Packet:
    """The packet in *payload*, of an encoder in *modes*. Raises Malformed."""
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
    """The payload of a packet with *fields* as in `Packet`; flags that are not given are 0.

    A difference of addresses may be given modulo 2**iaddress_width. Without *compress* all fields are sent, and the
    last bit again up to a whole byte. Raises ValueError for a field that is missing or does not fit.
    """
    return codec(options, modes).build(format, subformat, fields, compress=compress)


def codec(options: Options, modes: Modes) -> "Codec":
    """Reader and writer of packets for *options*; who has many packets keeps it for as long as *modes* hold."""
    return _codec(options.parameters, modes, options.dialect, options.support)


class Codec:
    """Reads and writes the packets of an encoder with these parameters in these modes."""

    def __init__(self, parameters: Parameters, modes: Modes, dialect: Dialect, supported: SupportLayout) -> None:
        self._parameters = parameters
        self._modes = modes
        self._rules = dialects.RULES[dialect]
        self._f0s_width = layout.f0s_width(parameters)
        formats = {**self._rules.layout, (Format.SYNC, Sync.SUPPORT): support.LAYOUTS[supported].fields}
        self._shapes = {key: places(fields, parameters, modes) for key, fields in formats.items()}

    def parse(self, payload: bytes) -> Packet:
        """The packet in *payload*. Raises Malformed."""
        if not payload:
            raise Malformed("a packet of no bytes")
        read = Reader(payload, self._modes, self._rules.map_bits)
        format, subformat = self._key(read)
        if format == Format.OPT_EXT:
            self._check_extension(subformat)
        read.read(self._shape(format, subformat))
        self._check_length(read, format == Format.SYNC and subformat == Sync.SUPPORT)
        fields = read.fields
        if fields.get("branch_fmt") == layout.BranchFmt.RESERVED:
            raise Malformed("reserved branch_fmt 1")
        if self._rules.length_tells and format == Format.DIFF_DELTA:
            dialects.settle(fields, uncounted=self._rules.uncounted)
        return Packet(format, subformat, fields)

    def build(self, format: int, subformat: int | None, fields: Mapping[str, int], *, compress: bool = True) -> bytes:
        """As the function of that name; *compress* is of no effect in dialects that do not."""
        shape = self._shapes.get((format, subformat))
        if shape is None:
            raise ValueError(f"no packet has format {format}, subformat {subformat}")
        write = Writer(fields, self._modes, self._rules.map_bits)
        write.put("format", format, FORMAT_BITS)
        if subformat is not None:
            write.put("subformat", subformat if self._subformat_width(format) else 0, self._subformat_width(format))
        write.write(shape)
        return write.payload(compressed=compress and self._rules.compressed, zero_padded=self._rules.zero_padded)

    def _key(self, read: Reader) -> Key:
        if self._rules.key is not None:
            return self._rules.key(read)
        format = read.take(FORMAT_BITS)
        if format in (Format.DIFF_DELTA, Format.ADDR_ONLY):
            return format, None
        width = self._subformat_width(format)
        return format, read.take(width) if width else self._only_extension()

    def _shape(self, format: int, subformat: int | None) -> tuple[Place, ...]:
        shape = self._shapes.get((format, subformat))
        if shape is None:
            what = f"format {format}" if subformat is None else f"format {format} subformat {subformat}"
            raise Malformed(f"{what} is not one that this encoder sends")
        return shape

    def _subformat_width(self, format: int) -> int:
        return 2 if format == Format.SYNC else self._f0s_width

    def _only_extension(self) -> int:
        """Subformat of format 0 where it is not sent: that of the only extension there is."""
        modes, parameters = self._modes, self._parameters
        for counts, jumps in (
            (modes.branch_prediction, modes.jump_target_cache),
            (parameters.bpred_size > 0, parameters.cache_size > 0),
        ):
            if counts != jumps:
                return Ext.BRANCH_COUNT if counts else Ext.JUMP_TARGET
        raise Malformed("format 0 without subformat, and neither modes nor sizes say which one it has")

    def _check_extension(self, subformat: int | None) -> None:
        """Raises Malformed for one that such an encoder does not have."""
        if subformat == Ext.JUMP_TARGET and not self._parameters.cache_size:
            raise Malformed("an entry of the jump target cache, but there is none: cache_size is 0")
        if subformat == Ext.BRANCH_COUNT and not self._parameters.bpred_size:
            raise Malformed("a count of predicted branches, but no branch predictor: bpred_size is 0")

    def _check_length(self, read: Reader, open_ended: bool) -> None:
        """Raises Malformed for a payload that has too much, or too little where nothing is compressed.

        Bits up to a whole byte may be anything (e-trace-encap, "Packet Length"); whole bytes must not tell anything.
        """
        if not self._rules.compressed and read.at > read.end:
            raise Malformed(f"{counted(read.end // 8)}, but its fields take {(read.at + 7) // 8}")
        if read.bits >> (read.at + 7 & ~7) not in (0, -1) and not open_ended:
            raise Malformed(f"{counted(read.end // 8)}, of which {(read.at + 7) // 8} are fields")


_codec = lru_cache(maxsize=256)(Codec)
