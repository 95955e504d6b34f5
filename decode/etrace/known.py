"""What the packets of one source tell of those that follow, for who takes a trace apart without the program."""

from copy import copy
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.etrace import support
from rvtrace_gdb.decode.etrace.layout import Format, Sync
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters
from rvtrace_gdb.decode.etrace.packet import Codec, Packet, codec

_NONE = -1


class Setup(NamedTuple):
    """What an encoder is made of, and set to."""

    parameters: Parameters
    modes: Modes


class Known:
    """Of one source.

    setup, codec  what its packets are read with
    """

    def __init__(self, options: Options, xlen: int) -> None:
        self.setup = Setup(options.parameters, options.modes)
        self.codec: Codec = codec(options, options.modes)
        self._options = options
        self._mask = (1 << xlen) - 1
        self._reference: int | None = None  # the last address it reported
        self._targets: dict[int, int] = {}  # its jump target cache
        self._reported = _NONE  # an address that is in there, if no packet of format 3 follows

    def copy(self) -> "Known":
        """Another one, at the same place."""
        new = copy(self)
        new._targets = dict(self._targets)
        return new

    def forget(self) -> None:
        """Packets are lost."""
        self._reference = None
        self._targets.clear()
        self._reported = _NONE

    def address(self, packet: Packet) -> int | None:
        """The address *packet* stands for; None: it has none, or it is not known. To be asked once for each packet."""
        return self._synchronized(packet) if packet.format == Format.SYNC else self._followed(packet)

    def set_up(self, packet: Packet) -> None:
        """What a support packet says."""
        said = support.read(packet, self._options)
        before, self.setup = self.setup, Setup(said.parameters, said.modes)
        if self.setup != before:
            self.codec = codec(replace(self._options, parameters=said.parameters), said.modes)

    def _synchronized(self, packet: Packet) -> int | None:
        fields = packet.fields
        if packet.subformat == Sync.CONTEXT:
            return None
        self._reported = _NONE
        self._targets.clear()
        if packet.subformat == Sync.SUPPORT:
            return None
        address = fields.get("address")
        if packet.subformat == Sync.TRAP:
            if not fields["thaddr"]:
                return address  # of the trap: no difference is relative to it
            if address is None:
                address = self._options.trap_handlers.of(fields["ecause"], bool(fields["interrupt"]))
        self._reference = address
        return address

    def _followed(self, packet: Packet) -> int | None:
        """Formats 0 to 2.

        That one of these follows says of the address before that an uninferable discontinuity led there (2.0, "Format
        2 notify and updiscon fields"), so it is in the cache ("Jump target cache mode").
        """
        fields, modes = packet.fields, self.setup.modes
        if self._reported >= 0:
            self._targets[self._index(self._reported)] = self._reported
            self._reported = _NONE
        if "index" in fields:
            # Whether targets that are not reported are in the cache, documents do not agree.
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
            self._targets.clear()  # any entry may be another now
        elif not fields.get("notify"):
            self._reported = self._reference
        return self._reference

    def _index(self, address: int) -> int:
        parameters = self.setup.parameters
        return address >> parameters.iaddress_lsb & (1 << parameters.cache_size) - 1
