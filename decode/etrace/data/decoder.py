"""te_data packets to accesses."""

from rvtrace_gdb.decode.etrace.data.layout import Form
from rvtrace_gdb.decode.etrace.data.options import DataOptions
from rvtrace_gdb.decode.etrace.data.packet import DataPacket, codec
from rvtrace_gdb.decode.etrace.data.state import Differences, Mode, extended, modes_of, response_mode
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.packet import Malformed
from rvtrace_gdb.decode.memory_access import CSR, Access, AccessNote

_DIFFERS = (AccessNote.DIFFERS,)


class DataDecoder:
    """Decodes the data packets of one encoder.

    accesses  all of them so far, in the order of their (first) packets
    """

    def __init__(self, parameters: Parameters, modes: Modes) -> None:
        self.accesses: list[Access] = []
        self._sizes: dict[int, int] = {}  # by load ID: log2 of the size of what was requested
        self._waiting: dict[int, int] = {}  # by load ID: index of the access whose value is to come
        self._sync = -1
        self.configure(parameters, modes)

    def configure(self, parameters: Parameters, modes: Modes) -> None:
        """A support packet told these."""
        options = DataOptions.of(parameters, modes)
        self._options = options
        self._codec = codec(options)
        self._addresses = Differences(options.reference)
        self._values = Differences(options.reference)

    def synchronize(self, position: int) -> None:
        """A synchronizing te_inst packet, of the instruction at *position* of the history.

        The first access of each size after it is told in full. (The reference model's encoder begins anew at support
        packets only.)
        """
        self._sync = position
        if not self._options.reference:
            self._addresses.reset()
            self._values.reset()

    def lost(self) -> None:
        """Packets were lost, maybe data packets: what differs from them is not known, nor whose the next ones are."""
        if self._sync >= 0 and self.accesses:
            self.accesses[-1] = self.accesses[-1].noted(AccessNote.LOST_AFTER)
        self._sync = -1
        self._addresses.reset()
        self._values.reset()
        self._sizes.clear()
        self._waiting.clear()

    def forget(self) -> None:
        """Nobody asks for the accesses so far; those whose value is to come stay."""
        waiting = sorted(self._waiting.items(), key=lambda item: item[1])
        self.accesses = [self.accesses[index] for _, index in waiting]
        self._waiting = {lrid: index for index, (lrid, _) in enumerate(waiting)}

    def packet(self, payload: bytes, offset: int = 0, after: int = 0) -> None:
        """One packet, which begins at trace byte *offset*, *after* so many positions of the history were known.

        Raises Malformed.
        """
        packet, access = self.shown(payload)
        lrid = packet.fields.get("lrid")
        if "resp" not in packet.fields:
            if lrid is not None:
                self._waiting[lrid] = len(self.accesses)
                access = access.noted(AccessNote.NOT_YET)
            self.accesses.append(access._replace(offset=offset, after=after, sync=self._sync))
            return
        asked = self._waiting.pop(lrid, None) if lrid is not None else None
        if asked is None:
            self.accesses.append(access._replace(offset=offset, after=after).noted(AccessNote.NO_REQUEST))
            return
        request = self.accesses[asked]
        notes = [note for note in request.notes if note is not AccessNote.NOT_YET and note not in access.notes]
        whole = request._replace(value=access.value, failed=access.failed, notes=(*notes, *access.notes))
        self.accesses[asked] = whole

    def shown(self, payload: bytes) -> tuple[DataPacket, Access]:
        """One packet, and the access it tells of or the phase of one: *accesses* does not get it. Raises Malformed."""
        packet = self._codec.parse(payload, self._sizes.get)
        fields = packet.fields
        if "resp" in fields:
            return packet, self._response(packet)
        if "lrid" in fields:
            self._sizes[fields["lrid"]] = fields["size"]
        return packet, self._csr(packet) if packet.form is Form.CSR else self._access(packet)

    def _response(self, packet: DataPacket) -> Access:
        """The data phase of a split load or atomic."""
        fields = packet.fields
        size = fields.get("size", self._sizes.pop(fields["lrid"], None))
        if size is None:
            raise Malformed(f"the data of load ID {fields['lrid']}, which was not requested")
        if fields["resp"] == 0:
            return Access(packet.code.kind, 1 << size, failed=True)
        value = self._value("data", fields, size, response_mode(fields["resp"], self._options))
        return Access(packet.code.kind, 1 << size, value=value, notes=_DIFFERS if value is None else ())

    def _access(self, packet: DataPacket) -> Access:
        form, code, fields = packet
        size = fields["size"]
        by_address, by_value = modes_of(fields["diff"], form, self._options)
        address = self._address(fields, size, by_address, code.aligned)
        operand = self._value("operand", fields, size, by_value)
        value = self._value("data", fields, size, by_value)
        unknown = ("address" in fields and address is None) or ("data" in fields and value is None)
        unknown = unknown or ("operand" in fields and operand is None)
        notes = _DIFFERS if unknown else ()
        return Access(code.kind, 1 << size, code.operation, address, value, operand, notes=notes)

    def _address(self, fields: dict[str, int], size: int, mode: Mode, aligned: bool) -> int | None:
        if "address" not in fields:
            return None
        width = self._options.address_width
        field = self._addresses.decoded(fields["address"], size, mode, width)
        if field is None or not aligned:
            return field
        return field << size & (1 << width) - 1

    def _value(self, name: str, fields: dict[str, int], size: int, mode: Mode) -> int | None:
        """The field *name*: data or operand."""
        if name not in fields:
            return None
        length = fields.get("data_len" if name == "data" else "op_len")
        bits = self._options.data_width if length is None else 8 * (length + 1)
        width = 8 << size
        return self._values.decoded(extended(fields[name], bits, width), size, mode, width)

    def _csr(self, packet: DataPacket) -> Access:
        _, code, fields = packet
        bytes_of_csr = self._options.csr_width // 8
        size = bytes_of_csr.bit_length() - 1
        by_address, by_value = modes_of(fields["diff"], Form.CSR, self._options)
        number: int | None = fields["addr_msbs"] << 6 | fields["addr_lsbs"]
        if "data" not in fields and not self._options.reference:
            number = self._addresses.decoded(fields["addr_msbs"] << 6 | fields["addr_lsbs"], _CSRS, by_address, 12)
        value = self._value("data", fields, size, by_value)
        operand = self._value("operand", fields, size, by_value)
        unknown = number is None or ("data" in fields and value is None) or ("operand" in fields and operand is None)
        return Access(CSR, bytes_of_csr, code.operation, number, value, operand, notes=_DIFFERS if unknown else ())


_CSRS = -1
"""The "size" under which the numbers of CSRs are told apart from addresses."""
