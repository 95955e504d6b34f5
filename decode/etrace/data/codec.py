"""The decoder from te_data packets to accesses, and the encoder from accesses to te_data packets.

Addresses and values may be transmitted as differences to earlier ones, which encoder and decoder keep in the same way
(`Differences`). Source: E-Trace 2.0.5, "Load and Store": "diff field" and "data_len field". State is kept per access
size. Differences are those of *fields*: if an aligned access follows an unaligned one of the same size (or the other
way round), the reference model subtracts a shifted address from an unshifted one, and the specification does not say
what to do. For accesses with two values (operand and data), each one is the base of the next in the order of the
packet, as in the reference model.

The file is longer than others because decoder and encoder keep the same state in the same way, and stand side by side.
"""

from collections.abc import Callable
from copy import copy, deepcopy
from enum import Enum
from typing import Self

from rvtrace_gdb.decode.etrace.data.packet import Content, DataForm, DataOptions, DataPacket, codec
from rvtrace_gdb.decode.etrace.layout import MalformedPacket
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    CAS_FAILURE,
    CSR,
    LOAD,
    MULTIPLE,
    STORE_FAILURE,
    AccessNote,
    MemoryAccess,
)


class ValueEncoding(Enum):
    """How an address or value is encoded."""

    FULL = 0
    XOR = 1
    DIFFERENCE = 2


def modes_of(diff: int, form: DataForm, options: DataOptions) -> tuple[ValueEncoding, ValueEncoding]:
    """Return how the address and the values of a packet with this *diff* are encoded."""
    if options.content is Content.ADDRESS or form is DataForm.SPLIT_LOAD:
        return (ValueEncoding.DIFFERENCE if diff else ValueEncoding.FULL), ValueEncoding.FULL
    by_value = _value_mode(diff, options, has_one_bit(form, options))
    return (ValueEncoding.DIFFERENCE if diff and form is not DataForm.CSR else ValueEncoding.FULL), by_value


def response_mode(resp: int, options: DataOptions) -> ValueEncoding:
    """Return how the data of a packet with this *resp* (no error) are encoded."""
    return _value_mode(resp, options, False)


def has_one_bit(form: DataForm, options: DataOptions) -> bool:
    """Whether the field diff of a packet with values has only one bit."""
    if options.diff_width != 1:
        return False
    if form is DataForm.SPLIT_ATOMIC:
        return not options.extended
    return form is DataForm.CSR or options.content is Content.DATA


def _value_mode(code: int, options: DataOptions, one_bit: bool) -> ValueEncoding:
    """ "01: Compressed data (XOR if 2 bits)"."""
    if code in (0b00, 0b10):
        return ValueEncoding.FULL
    is_difference = code == 0b11 or options.reference or (one_bit and options.difference)
    return ValueEncoding.DIFFERENCE if is_difference else ValueEncoding.XOR


class Differences:
    """The last field of each access size. Values are kept at their full width and not negative."""

    def __init__(self, reference: bool = False) -> None:
        """*reference*: the first field of a size is always full (see `Parameters.data_reference`)."""
        self._last: dict[int, int] = {}
        self._reference = reference

    def reset(self) -> None:
        """Forget all fields: the next one of each size is full."""
        self._last.clear()

    def forget(self, size: int) -> None:
        """Forget the field of this size: the next one is full."""
        self._last.pop(size, None)

    def last(self, size: int) -> int | None:
        """Return the last field of this size, None if there is none."""
        return self._last.get(size)

    def decoded(self, received: int, size: int, mode: ValueEncoding, width: int) -> int | None:
        """Return the field that was transmitted as *received*, both with *width* bits; None if it cannot be known."""
        last = self._last.get(size)
        if last is None:
            if mode is not ValueEncoding.FULL and not self._reference:
                return None
        elif mode is ValueEncoding.XOR:
            received ^= last
        elif mode is ValueEncoding.DIFFERENCE:
            received += last
        received &= (1 << width) - 1
        self._last[size] = received
        return received

    def keep(self, value: int, size: int) -> None:
        """Keep *value* as the last field of this size."""
        self._last[size] = value


def encoded_field(value: int, last: int | None, mode: ValueEncoding, width: int) -> int:
    """Return *value* encoded relative to *last* in *width* bits, or in full if *last* is None."""
    if last is None or mode is ValueEncoding.FULL:
        return value
    return value ^ last if mode is ValueEncoding.XOR else value - last & (1 << width) - 1


def extended(value: int, bits: int, width: int) -> int:
    """Return *value*, which has *bits* bits, sign-extended or truncated to *width* bits, not negative."""
    if bits < width and value >> bits - 1 & 1:
        value -= 1 << bits
    return value & (1 << width) - 1


_UNKNOWN_BASE = (AccessNote.DIFFERS,)


class DataDecoder:
    """Decodes the data packets of one encoder.

    accesses  all accesses so far, in the order of their (first) packets
    """

    def __init__(self, parameters: Parameters, modes: Modes) -> None:
        self.accesses: list[MemoryAccess] = []
        self._sizes: dict[int, int] = {}  # by load ID: log2 of the size of what was requested
        self._waiting: dict[int, int] = {}  # by load ID: index of the access whose value is to come
        self._sync = -1
        self.configure(parameters, modes)

    def duplicate(self) -> Self:
        """Return a decoder that is where this one is."""
        other = copy(self)
        other.accesses, other._sizes, other._waiting = self.accesses[:], self._sizes.copy(), self._waiting.copy()
        other._addresses, other._values = deepcopy((self._addresses, self._values))
        return other

    def configure(self, parameters: Parameters, modes: Modes) -> None:
        """Apply the parameters and modes of a support packet."""
        options = DataOptions.from_parameters(parameters, modes)
        self._options = options
        self._codec = codec(options)
        self._addresses = Differences(options.reference)
        self._values = Differences(options.reference)

    def synchronize(self, position: int) -> None:
        """Handle a synchronizing te_inst packet for the instruction at *position* of the history.

        The first access of each size after it is transmitted in full. (The reference model's encoder starts anew only
        at support packets.)
        """
        self._sync = position
        if not self._options.reference:
            self._addresses.reset()
            self._values.reset()

    def lost(self) -> None:
        """Handle a loss of packets that may be data packets: differences to them, and their load IDs, are not known."""
        if self._sync >= 0 and self.accesses:
            self.accesses[-1] = self.accesses[-1].noted(AccessNote.LOST_AFTER)
        self._sync = -1
        self._addresses.reset()
        self._values.reset()
        self._sizes.clear()
        self._waiting.clear()

    def forget(self) -> None:
        """Drop the accesses so far, except those whose value has not arrived yet."""
        waiting = sorted(self._waiting.items(), key=lambda item: item[1])
        self.accesses = [self.accesses[index] for _, index in waiting]
        self._waiting = {lrid: index for index, (lrid, _) in enumerate(waiting)}

    def packet(self, payload: bytes, offset: int = 0, after: int = 0) -> None:
        """Decode one packet at trace offset *offset*. *after*: the number of positions of the history known at that
        time.

        Raises MalformedPacket.
        """
        packet, access = self.decode_packet(payload)
        lrid = packet.fields.get("lrid")
        if "resp" not in packet.fields:
            if lrid is not None:
                self._waiting[lrid] = len(self.accesses)
                access = access.noted(AccessNote.NOT_YET)
            self.accesses.append(access._replace(offset=offset, after=after, sync=self._sync))
            return
        request_index = self._waiting.pop(lrid, None) if lrid is not None else None
        if request_index is None:
            self.accesses.append(access._replace(offset=offset, after=after).noted(AccessNote.NO_REQUEST))
            return
        request = self.accesses[request_index]
        notes = [note for note in request.notes if note is not AccessNote.NOT_YET and note not in access.notes]
        whole = request._replace(value=access.value, failed=access.failed, notes=(*notes, *access.notes))
        self.accesses[request_index] = whole

    def decode_packet(self, payload: bytes) -> tuple[DataPacket, MemoryAccess]:
        """Return a packet and its access, or phase of one, without adding it to *accesses*. Raises MalformedPacket."""
        packet = self._codec.parse(payload, self._sizes.get)
        fields = packet.fields
        if "resp" in fields:
            return packet, self._response(packet)
        if "lrid" in fields:
            self._sizes[fields["lrid"]] = fields["size"]
        return packet, self._csr_access(packet) if packet.form is DataForm.CSR else self._access(packet)

    def _response(self, packet: DataPacket) -> MemoryAccess:
        """Return the data phase of a split load or atomic."""
        fields = packet.fields
        size = fields.get("size", self._sizes.pop(fields["lrid"], None))
        if size is None:
            raise MalformedPacket(f"the data of load ID {fields['lrid']}, which was not requested")
        if fields["resp"] == 0:
            return MemoryAccess(packet.code.kind, 1 << size, failed=True)
        value = self._field_value("data", fields, size, response_mode(fields["resp"], self._options))
        return MemoryAccess(packet.code.kind, 1 << size, value=value, notes=_UNKNOWN_BASE if value is None else ())

    def _access(self, packet: DataPacket) -> MemoryAccess:
        form, code, fields = packet
        size = fields["size"]
        by_address, by_value = modes_of(fields["diff"], form, self._options)
        address = self._access_address(fields, size, by_address, code.aligned)
        operand = self._field_value("operand", fields, size, by_value)
        value = self._field_value("data", fields, size, by_value)
        unknown = ("address" in fields and address is None) or ("data" in fields and value is None)
        unknown = unknown or ("operand" in fields and operand is None)
        notes = _UNKNOWN_BASE if unknown else ()
        return MemoryAccess(code.kind, 1 << size, code.operation, address, value, operand, notes=notes)

    def _access_address(self, fields: dict[str, int], size: int, mode: ValueEncoding, aligned: bool) -> int | None:
        if "address" not in fields:
            return None
        width = self._options.address_width
        field = self._addresses.decoded(fields["address"], size, mode, width)
        if field is None or not aligned:
            return field
        return field << size & (1 << width) - 1

    def _field_value(self, name: str, fields: dict[str, int], size: int, mode: ValueEncoding) -> int | None:
        """Return the value of the field *name*: data or operand."""
        if name not in fields:
            return None
        length = fields.get("data_len" if name == "data" else "op_len")
        bits = self._options.data_width if length is None else 8 * (length + 1)
        width = 8 << size
        return self._values.decoded(extended(fields[name], bits, width), size, mode, width)

    def _csr_access(self, packet: DataPacket) -> MemoryAccess:
        _, code, fields = packet
        bytes_of_csr = self._options.csr_width // 8
        size = bytes_of_csr.bit_length() - 1
        by_address, by_value = modes_of(fields["diff"], DataForm.CSR, self._options)
        number: int | None = fields["addr_msbs"] << 6 | fields["addr_lsbs"]
        if "data" not in fields and not self._options.reference:
            number = self._addresses.decoded(fields["addr_msbs"] << 6 | fields["addr_lsbs"], _CSRS, by_address, 12)
        value = self._field_value("data", fields, size, by_value)
        operand = self._field_value("operand", fields, size, by_value)
        unknown = number is None or ("data" in fields and value is None) or ("operand" in fields and operand is None)
        return MemoryAccess(
            CSR, bytes_of_csr, code.operation, number, value, operand, notes=_UNKNOWN_BASE if unknown else ()
        )


_CSRS = -1
"""The "size" under which the numbers of CSRs are kept, apart from addresses."""


class Compression(Enum):
    """The encodings that an encoder offers for values: it uses the shortest of these and of the full value."""

    NONE = frozenset[ValueEncoding]()
    XOR = frozenset({ValueEncoding.XOR})
    DIFFERENCE = frozenset({ValueEncoding.DIFFERENCE})
    BOTH = frozenset({ValueEncoding.XOR, ValueEncoding.DIFFERENCE})


class DataEncoder:
    """Encodes data packets. *emit* receives one payload at a time.

    If the documents do not define the base of a difference (after an access with two values; between an aligned and an
    unaligned address), the value is sent in full. With `Parameters.data_reference` packets are those of the reference
    model.
    """

    def __init__(
        self,
        parameters: Parameters,
        modes: Modes,
        emit: Callable[[bytes], None],
        compression: Compression = Compression.BOTH,
    ) -> None:
        """Raises ValueError for modes in which packets would be empty."""
        if modes.data_no_address and modes.data_no_data:
            raise ValueError("data_no_address and data_no_data: data packets would be empty")
        self._options = options = DataOptions.from_parameters(parameters, modes)
        self._emit = emit
        self._codec = codec(options)
        self._modes = {(form, diff): modes_of(diff, form, options) for form in DataForm for diff in range(4)}
        self._compression: frozenset[ValueEncoding] = frozenset() if options.full_data else compression.value
        self._addresses = Differences()
        self._values = Differences()
        self._aligned: dict[int, bool] = {}  # by size: whether the last address was
        self._sizes: dict[int, int] = {}  # by load ID: log2 of the size requested
        self._lrid = 0

    def synchronize(self) -> None:
        """Handle a synchronizing te_inst packet: the next access of each size is sent in full."""
        if not self._options.reference:
            self._addresses.reset()
            self._values.reset()

    def access(self, access: MemoryAccess) -> bool:
        """Encode an access as its instruction retires; a second phase follows at once.

        Returns False, and sends no packet, if the specification has none for it: see `has_packet`.
        """
        if not self.has_packet(access):
            return False
        if not self.is_split(access):
            self._send(access)
            return True
        lrid = self._lrid
        self._lrid = lrid + 1 & (1 << self._options.lrid_width) - 1
        self.request(lrid, access)
        self.response(lrid, access.kind, access.value)
        return True

    def has_packet(self, access: MemoryAccess) -> bool:
        """Whether there is a packet for such an access.

        There is none for an access that is wider than the bus. Atomics and CSRs need the full width of the field
        format. A failed store-conditional has a packet only without values; a failed compare-and-swap only in the v0.8
        extension, and not with values alone; several accesses of one instruction only in the extension.
        """
        options = self._options
        if access.kind != CSR and 8 * access.size > options.data_width:
            return False
        if access.kind in (ATOMIC, CSR) and options.format_width < (2 if options.extended else 3):
            return False
        if access.operation == MULTIPLE:
            return options.extended and options.format_width > 0
        if access.operation == STORE_FAILURE:
            return options.content is Content.ADDRESS
        if access.operation == CAS_FAILURE:
            return options.extended and options.content is not Content.DATA
        return True

    def is_split(self, access: MemoryAccess) -> bool:
        """Whether an access is sent in two phases."""
        options = self._options
        if not options.split or access.operation == CAS_FAILURE:
            return False
        if access.kind == LOAD:
            return options.content is Content.BOTH
        return access.kind == ATOMIC and options.content is not Content.ADDRESS

    def request(self, lrid: int, access: MemoryAccess) -> None:
        """Send the first phase of a split load or atomic."""
        self._sizes[lrid] = _log2(access.size)
        self._send(access, lrid)

    def response(self, lrid: int, kind: str, value: int | None) -> None:
        """Send the second phase of the load or atomic with this load ID. *value* None: it ended with an error."""
        size = self._sizes.pop(lrid)
        fields = {"size": size, "lrid": lrid}
        if value is None:
            self._emit(self._built(kind, "", fields | {"resp": 0b00}, response_size=size))
            return
        payloads = []
        for resp in (0b10, *self._compressed(size, DataForm.SPLIT_DATA)):
            mode = response_mode(resp, self._options)
            short = encoded_field(value, self._values.last(size), mode, 8 << size)
            counted = kind == ATOMIC and not self._options.extended
            more = {"resp": resp, **self._value_and_length("data", "data_len", short, size, counted)}
            payloads.append(self._built(kind, "", fields | more, response_size=size))
        self._emit(min(payloads, key=len))
        self._values.keep(value, size)

    def _send(self, access: MemoryAccess, lrid: int | None = None) -> None:
        """Send the shortest packet for an access or its first phase."""
        form = self._form(access, lrid)
        size = _log2(access.size)
        aligned = access.kind in (ATOMIC, CSR) or not (access.address or 0) & access.size - 1
        values = self._values_of(access, form)
        payloads = []
        encoded_values: dict[ValueEncoding, dict[str, int]] = {}
        for diff in self._diffs(form, size, aligned, len(values)):
            by_address, by_value = self._modes[form, diff]
            fields = {"size": size, "lrid": lrid or 0, "diff": diff}
            fields |= self._address_fields(access, size, aligned, by_address)
            if by_value not in encoded_values:
                encoded_values[by_value] = self._value_fields(values, size, by_value, form)
            fields |= encoded_values[by_value]
            payloads.append(self._built(access.kind, access.operation, fields, aligned=aligned))
        self._emit(min(payloads, key=len))
        self._keep(access, size, aligned, values)

    def _keep(self, access: MemoryAccess, size: int, aligned: bool, values: list[tuple[str, str, int]]) -> None:
        if access.kind != CSR and self._options.content is not Content.DATA:
            self._addresses.keep(self._field(access, size, aligned), size)
            self._aligned[size] = aligned
        if values:
            self._values.keep(values[-1][2], size)
            if access.kind in (ATOMIC, CSR) and not self._options.reference:
                self._values.forget(size)

    def _form(self, access: MemoryAccess, lrid: int | None) -> DataForm:
        if lrid is not None:
            return DataForm.SPLIT_LOAD if access.kind == LOAD else DataForm.SPLIT_ATOMIC
        return {ATOMIC: DataForm.ATOMIC, CSR: DataForm.CSR}.get(access.kind, DataForm.LOAD_STORE)

    def _values_of(self, access: MemoryAccess, form: DataForm) -> list[tuple[str, str, int]]:
        """Return the values of a packet in order, as (field, field of its length, value)."""
        if self._options.content is Content.ADDRESS or form is DataForm.SPLIT_LOAD:
            return []
        data, operand = ("data", "data_len", access.value or 0), ("operand", "op_len", access.operand or 0)
        if form is DataForm.CSR:
            return [data] if (access.address or 0) >> 10 == 0b11 else [data, operand]
        if form is DataForm.SPLIT_ATOMIC or access.operation == CAS_FAILURE:
            return [operand]
        return [operand, data] if access.kind == ATOMIC else [data]

    def _diffs(self, form: DataForm, size: int, aligned: bool, values: int) -> list[int]:
        """Return the possible values of *diff*: 00 and those that are unambiguous."""
        options = self._options
        if options.reference:
            return [self._fixed_diff()]
        compressed = self._compressed(size, form) if form is DataForm.LOAD_STORE and values else []
        if options.content is Content.DATA or form is DataForm.CSR:
            return [0b00, *compressed]
        known = self._addresses.last(size) is not None and self._aligned[size] is aligned
        if not known or options.full_address:
            return [0b00]
        if options.content is Content.ADDRESS or form is DataForm.SPLIT_LOAD:
            return [0b00, 0b01]
        return [0b00] if has_one_bit(form, options) else [0b00, 0b10, *compressed]

    def _compressed(self, size: int, form: DataForm) -> list[int]:
        """Return the values of *diff* or *resp* for a compressed value."""
        options = self._options
        if self._values.last(size) is None or options.reference:
            return []
        if form is DataForm.SPLIT_DATA:
            return [code for code in (0b01, 0b11) if response_mode(code, options) in self._compression]
        codes = (0b1,) if has_one_bit(form, options) else (0b01, 0b11)
        return [code for code in codes if self._modes[form, code][1] in self._compression]

    def _fixed_diff(self) -> int:
        """Return the constant *diff* of the reference model."""
        options = self._options
        if options.content is Content.ADDRESS:
            return int(not options.full_address)
        if options.content is Content.DATA:
            return int(not options.full_data)
        return 0b01 if not options.full_data else 0b00 if options.full_address else 0b10

    def _field(self, access: MemoryAccess, size: int, aligned: bool) -> int:
        """Return the address as in its field."""
        address = (access.address or 0) & (1 << self._options.address_width) - 1
        return address >> size if aligned else address

    def _address_fields(self, access: MemoryAccess, size: int, aligned: bool, mode: ValueEncoding) -> dict[str, int]:
        if access.kind == CSR:
            number = access.address or 0
            return {"addr_msbs": number >> 6 & 63, "addr_lsbs": number & 63}
        last = self._addresses.last(size)
        return {"address": encoded_field(self._field(access, size, aligned), last, mode, self._options.address_width)}

    def _value_fields(
        self, values: list[tuple[str, str, int]], size: int, mode: ValueEncoding, form: DataForm
    ) -> dict[str, int]:
        counted = self._options.content is Content.BOTH or form is DataForm.CSR
        fields: dict[str, int] = {}
        last = self._values.last(size)
        for name, length, value in values:
            short = encoded_field(value, last, mode, 8 << size)
            fields |= self._value_and_length(
                name, length, short, size, counted or (name == "operand" and len(values) == 2)
            )
            last = value
        return fields

    def _value_and_length(self, name: str, length: str, value: int, size: int, counted: bool) -> dict[str, int]:
        """Return a value of 2**size bytes in as few bytes as possible (reference model: all), and its length."""
        width = 8 << size
        if not counted:
            return {name: extended(value, width, self._options.data_width)}
        if self._options.reference:
            return {name: value, length: (1 << size) - 1}
        signed = value - (1 << width) if value >> width - 1 else value
        count = max((signed if signed >= 0 else ~signed).bit_length() // 8 + 1, 1)
        return {name: value & (1 << 8 * count) - 1, length: count - 1}

    def _built(
        self,
        kind: str,
        operation: str,
        fields: dict[str, int],
        *,
        aligned: bool = True,
        response_size: int | None = None,
    ) -> bytes:
        """Return the packet. *response_size*: for a data phase, log2 of the size in its request."""
        is_response = response_size is not None
        return self._codec.build(kind, operation, fields, aligned=aligned, response=is_response)


def _log2(size: int) -> int:
    return size.bit_length() - 1
