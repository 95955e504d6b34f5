"""te_data packets to accesses."""

from decode.etrace.data.layout import Form
from decode.etrace.data.options import DataOptions
from decode.etrace.data.packet import DataPacket, parse
from decode.etrace.data.state import Differences, Mode, extended, modes, response_mode
from decode.etrace.options import Modes, Parameters
from decode.memory_access import CSR, LOAD, LOST_AFTER, Access

NOT_YET = "no response in the trace"
NO_REQUEST = "the response to a load that was requested before the trace began, or whose packet was lost"
DIFFERS = "told by how it differs from an access that is not in the trace"


class DataDecoder:
    """Decodes the data packets of one encoder.

    accesses  all of them so far, in the order of their (first) packets
    """

    def __init__(self, parameters: Parameters, modes: Modes) -> None:
        self.accesses: list[Access] = []
        self._requests: dict[int, tuple[int, int]] = {}  # by load ID: index of the access, log2 of its size
        self._sync = -1
        self.configure(parameters, modes)

    def configure(self, parameters: Parameters, modes: Modes) -> None:
        """A support packet told these."""
        options = DataOptions.of(parameters, modes)
        self._options = options
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
            self.accesses[-1] = self.accesses[-1]._replace(note=_joined(self.accesses[-1].note, LOST_AFTER))
        self._sync = -1
        self._addresses.reset()
        self._values.reset()
        self._requests.clear()

    def packet(self, payload: bytes, offset: int = 0, after: int = 0) -> None:
        """One packet, which begins at trace byte *offset*, *after* so many positions of the history were known.

        Raises Malformed.
        """
        packet = parse(payload, self._options, self._size_of)
        fields = packet.fields
        if packet.form in (Form.SPLIT_DATA, Form.SPLIT_ATOMIC_DATA):
            self._respond(packet, offset, after)
            return
        if packet.form is Form.CSR:
            access = self._csr(packet)
        else:
            access = self._access(packet)
        if "lrid" in fields:
            self._requests[fields["lrid"]] = (len(self.accesses), fields["size"])
            access = access._replace(note=_joined(access.note, NOT_YET))
        self.accesses.append(access._replace(offset=offset, after=after, sync=self._sync))

    def _size_of(self, lrid: int) -> int | None:
        """log2 of the size of what was requested with a load ID."""
        request = self._requests.get(lrid)
        return None if request is None else request[1]

    def _access(self, packet: DataPacket) -> Access:
        form, code, fields = packet
        size = fields["size"]
        by_address, by_value = modes(fields["diff"], form, self._options)
        address = self._address(fields, size, by_address, code.aligned)
        operand = self._value("operand", fields, size, by_value)
        value = self._value("data", fields, size, by_value)
        unknown = ("address" in fields and address is None) or ("data" in fields and value is None)
        unknown = unknown or ("operand" in fields and operand is None)
        note = DIFFERS if unknown else ""
        return Access(code.kind, 1 << size, code.operation, address, value, operand, note=note)

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
        by_address, by_value = modes(fields["diff"], Form.CSR, self._options)
        number: int | None = fields["addr_msbs"] << 6 | fields["addr_lsbs"]
        if "data" not in fields and not self._options.reference:
            number = self._addresses.decoded(fields["addr_msbs"] << 6 | fields["addr_lsbs"], _CSRS, by_address, 12)
        value = self._value("data", fields, size, by_value)
        operand = self._value("operand", fields, size, by_value)
        unknown = number is None or ("data" in fields and value is None) or ("operand" in fields and operand is None)
        return Access(CSR, bytes_of_csr, code.operation, number, value, operand, note=DIFFERS if unknown else "")

    def _respond(self, packet: DataPacket, offset: int, after: int) -> None:
        """The data phase of a split load or atomic."""
        fields = packet.fields
        request = self._requests.pop(fields["lrid"], None)
        size = request[1] if request is not None else fields["size"]
        failed = fields["resp"] == 0
        value = None
        if not failed:
            mode = response_mode(fields["resp"], self._options)
            value = self._value("data", fields, fields.get("size", size), mode)
        if request is None:
            late = Access(LOAD, 1 << size, value=value, offset=offset, after=after, failed=failed, note=NO_REQUEST)
            self.accesses.append(late)
            return
        access = self.accesses[request[0]]
        notes = [note for note in access.note.split("; ") if note != NOT_YET]
        note = _joined(*notes, DIFFERS if value is None and not failed and DIFFERS not in notes else "")
        self.accesses[request[0]] = access._replace(value=value, failed=failed, note=note)


_CSRS = -1
"""The "size" under which the numbers of CSRs are told apart from addresses."""


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))
