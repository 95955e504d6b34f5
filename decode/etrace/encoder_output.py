"""What an E-Trace encoder sends: packets built and counted, addresses made differences."""

from collections.abc import Callable, Mapping

from rvtrace_gdb.decode.etrace.encoder_branches import Branches, Description
from rvtrace_gdb.decode.etrace.encoder_options import EncoderOptions
from rvtrace_gdb.decode.etrace.layout import MAP_BITS, Format, Sync
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.decode.etrace.packet import codec
from rvtrace_gdb.decode.etrace.support import QualStatus, fields_of

_DIFF_DELTA, _ADDR_ONLY = int(Format.DIFF_DELTA), int(Format.ADDR_ONLY)
_SYNC, _SUPPORT = int(Format.SYNC), int(Sync.SUPPORT)


class Output:
    """Builds packets and passes them on. *count*: packets since the last synchronization."""

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        self._options = options
        self._emit = emit
        self._build = codec(options.decoder, options.modes).build
        self._compress = options.compress
        self._is_short = options.compress and options.dialect is Dialect.STANDARD
        self._full = options.modes.full_address
        self._low = options.parameters.iaddress_lsb
        self._sign = 1 << options.parameters.iaddress_width - 1
        self._mask = 2 * self._sign - (1 << self._low)
        self._reference = 0
        self.count = 0

    def send(self, format: int, subformat: int | None, fields: Mapping[str, int]) -> None:
        """One packet."""
        self._emit(self._build(format, subformat, fields, compress=self._compress))
        self.count += 1

    def report(self, branches: Branches, pc: int, fields: Mapping[str, int], index: int | None) -> None:
        """The instruction at *pc* and *branches*. *fields*: what is said of it; *index*: in the jump target cache."""
        pc &= self._mask
        payload = self._addressed(branches, pc if self._full else pc - self._reference & self._mask, fields)
        if index is not None:
            indexed = self._payload(branches.indexed(index, fields))
            if len(indexed) <= len(payload) or not self._options.shortest:
                payload = indexed
        self._reference = pc
        self._emit(payload)
        self.count += 1

    def _addressed(self, branches: Branches, address: int, fields: Mapping[str, int]) -> bytes:
        if fields or branches.is_counted or not self._is_short:
            return self._payload(branches.addressed({"address": address, **fields}))
        # Sign based compression leaves nothing of flags that say nothing: a number in two's complement is the packet.
        difference = (address ^ self._sign) - self._sign >> self._low
        count = branches.count
        if count:
            bits = difference << 7 + MAP_BITS[count] | branches.map << 7 | count << 2 | _DIFF_DELTA
        else:
            bits = difference << 2 | _ADDR_ONLY
        return bits.to_bytes((bits if bits >= 0 else ~bits).bit_length() // 8 + 1, "little", signed=True)

    def _payload(self, described: Description) -> bytes:
        format, subformat, fields = described
        return self._build(format, subformat, fields, compress=self._compress)

    def sync(self, subformat: int, fields: Mapping[str, int], pc: int) -> None:
        """A synchronization packet about the instruction at *pc*."""
        self._reference = pc & self._mask
        self.send(_SYNC, subformat, {**fields, "address": self._reference})
        self.count = 0

    def support(self, qual_status: QualStatus, *, ienable: bool, denable: bool, dloss: bool = False) -> None:
        """A support packet."""
        options = self._options
        fields = fields_of(
            options.support,
            options.parameters,
            options.modes,
            ienable=ienable,
            qual_status=qual_status,
            denable=denable,
            dloss=dloss,
        )
        self.send(_SYNC, _SUPPORT, fields)
