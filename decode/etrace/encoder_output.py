"""What an E-Trace encoder sends: packets built and counted, addresses made differences."""

from collections.abc import Callable, Mapping

from decode.etrace.encoder_options import EncoderOptions
from decode.etrace.layout import Format, Sync
from decode.etrace.packet import codec
from decode.etrace.support import QualStatus, fields_of

_SYNC, _SUPPORT = int(Format.SYNC), int(Sync.SUPPORT)


class Output:
    """Builds packets and passes them on. *count*: packets since the last synchronization."""

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        self._options = options
        self._emit = emit
        self._build = codec(options.decoder, options.modes).build
        self._compress = options.compress
        self._full = options.modes.full_address
        width, low = options.parameters.iaddress_width, (1 << options.parameters.iaddress_lsb) - 1
        self._mask = (1 << width) - 1 & ~low
        self._reference = 0
        self.count = 0

    def send(self, format: int, subformat: int | None, fields: Mapping[str, int]) -> None:
        """One packet."""
        self._emit(self._build(format, subformat, fields, compress=self._compress))
        self.count += 1

    def length(self, format: int, subformat: int | None, fields: Mapping[str, int]) -> int:
        """How many bytes `send` would send."""
        return len(self._build(format, subformat, fields, compress=self._compress))

    def difference(self, pc: int) -> int:
        """What a packet of format 0, 1 or 2 has as the address of the instruction at *pc*."""
        return pc & self._mask if self._full else (pc & self._mask) - self._reference

    def refer(self, pc: int) -> None:
        """The instruction at *pc* was reported: the next difference is to it."""
        self._reference = pc & self._mask

    def sync(self, subformat: int, fields: Mapping[str, int], pc: int) -> None:
        """A synchronization packet about the instruction at *pc*."""
        self.refer(pc)
        self.send(_SYNC, subformat, {**fields, "address": self._reference})
        self.count = 0

    def support(self, *, ienable: bool, qual_status: QualStatus) -> None:
        """A support packet."""
        options = self._options
        layout, parameters, modes = options.support, options.parameters, options.modes
        self.send(_SYNC, _SUPPORT, fields_of(layout, parameters, modes, ienable=ienable, qual_status=qual_status))
