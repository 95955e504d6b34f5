"""te_data packets to accesses, and accesses to te_data packets.

Addresses and values are told by how they differ from those before; encoder and decoder keep those alike
(`Differences`). Source: E-Trace 2.0.5, "Load and Store": "diff field" and "data_len field". State is kept per access
size. What is subtracted are *fields*: where an aligned access follows an unaligned one of the same size (or the other
way round) the reference model subtracts a shifted address from one that is not, and the specification does not tell. Of
accesses with two values (operand and data) each in the order of the packet counts as the one before, as in the
reference model.
"""

from collections.abc import Callable
from enum import Enum

from rvtrace_gdb.decode.etrace.data.packet import Content, DataOptions, DataPacket, Form, codec
from rvtrace_gdb.decode.etrace.layout import Malformed
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.program.instructions import (
    ATOMIC,
    CAS_FAILURE,
    CSR,
    LOAD,
    MULTIPLE,
    STORE_FAILURE,
    Access,
    AccessNote,
)


class Mode(Enum):
    """How one address or value is told."""

    FULL = 0
    XOR = 1
    DIFFERENCE = 2


def modes_of(diff: int, form: Form, options: DataOptions) -> tuple[Mode, Mode]:
    """What *diff* says of the address and of the values of a packet."""
    if options.content is Content.ADDRESS or form is Form.SPLIT_LOAD:
        return (Mode.DIFFERENCE if diff else Mode.FULL), Mode.FULL
    by_value = _value_mode(diff, options, has_one_bit(form, options))
    return (Mode.DIFFERENCE if diff and form is not Form.CSR else Mode.FULL), by_value


def response_mode(resp: int, options: DataOptions) -> Mode:
    """What *resp* says of the data (not of an error)."""
    return _value_mode(resp, options, False)


def has_one_bit(form: Form, options: DataOptions) -> bool:
    """Whether the *diff* of a packet with values has one bit only."""
    if options.diff_width != 1:
        return False
    if form is Form.SPLIT_ATOMIC:
        return not options.extended
    return form is Form.CSR or options.content is Content.DATA


def _value_mode(code: int, options: DataOptions, one_bit: bool) -> Mode:
    """ "01: Compressed data (XOR if 2 bits)"."""
    if code in (0b00, 0b10):
        return Mode.FULL
    is_difference = code == 0b11 or options.reference or (one_bit and options.difference)
    return Mode.DIFFERENCE if is_difference else Mode.XOR


class Differences:
    """The last field of each access size. Values are kept at their full width, not negative."""

    def __init__(self, reference: bool = False) -> None:
        """*reference*: what comes first is full, whatever is said (see `Parameters.data_reference`)."""
        self._last: dict[int, int] = {}
        self._reference = reference

    def reset(self) -> None:
        """Forget all: what comes next of each size is full."""
        self._last.clear()

    def forget(self, size: int) -> None:
        """What comes next of this size is full."""
        self._last.pop(size, None)

    def last(self, size: int) -> int | None:
        """What the next one of this size may differ from."""
        return self._last.get(size)

    def decoded(self, received: int, size: int, mode: Mode, width: int) -> int | None:
        """The field that was told as *received*, both of *width* bits; None when it cannot be known."""
        last = self._last.get(size)
        if last is None:
            if mode is not Mode.FULL and not self._reference:
                return None
        elif mode is Mode.XOR:
            received ^= last
        elif mode is Mode.DIFFERENCE:
            received += last
        received &= (1 << width) - 1
        self._last[size] = received
        return received

    def keep(self, value: int, size: int) -> None:
        """The last one of this size."""
        self._last[size] = value


def encoded_field(value: int, last: int | None, mode: Mode, width: int) -> int:
    """The field, of *width* bits, that tells *value* after *last*: in full when there is none."""
    if last is None or mode is Mode.FULL:
        return value
    return value ^ last if mode is Mode.XOR else value - last & (1 << width) - 1


def extended(value: int, bits: int, width: int) -> int:
    """*value* of *bits* bits, sign-extended or cut to *width* bits, not negative."""
    if bits < width and value >> bits - 1 & 1:
        value -= 1 << bits
    return value & (1 << width) - 1


_UNKNOWN_BASE = (AccessNote.DIFFERS,)


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

    def decode_packet(self, payload: bytes) -> tuple[DataPacket, Access]:
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
        return Access(packet.code.kind, 1 << size, value=value, notes=_UNKNOWN_BASE if value is None else ())

    def _access(self, packet: DataPacket) -> Access:
        form, code, fields = packet
        size = fields["size"]
        by_address, by_value = modes_of(fields["diff"], form, self._options)
        address = self._address(fields, size, by_address, code.aligned)
        operand = self._value("operand", fields, size, by_value)
        value = self._value("data", fields, size, by_value)
        unknown = ("address" in fields and address is None) or ("data" in fields and value is None)
        unknown = unknown or ("operand" in fields and operand is None)
        notes = _UNKNOWN_BASE if unknown else ()
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
        return Access(CSR, bytes_of_csr, code.operation, number, value, operand, notes=_UNKNOWN_BASE if unknown else ())


_CSRS = -1
"""The "size" under which the numbers of CSRs are told apart from addresses."""


class Compression(Enum):
    """What an encoder offers for values: the shortest of these is chosen, or the whole value."""

    NONE = frozenset[Mode]()
    XOR = frozenset({Mode.XOR})
    DIFFERENCE = frozenset({Mode.DIFFERENCE})
    BOTH = frozenset({Mode.XOR, Mode.DIFFERENCE})


class DataEncoder:
    """Makes the data packets of one encoder: *emit* gets one payload at a time.

    Where the documents leave open what a difference is to (after an access with two values; between an aligned and an
    unaligned address) it tells the whole. With `Parameters.data_reference` it does as the reference model.
    """

    def __init__(
        self,
        parameters: Parameters,
        modes: Modes,
        emit: Callable[[bytes], None],
        compression: Compression = Compression.BOTH,
    ) -> None:
        """Raises ValueError for modes in which packets would hold nothing."""
        if modes.data_no_address and modes.data_no_data:
            raise ValueError("data_no_address and data_no_data: data packets would hold nothing")
        self._options = options = DataOptions.of(parameters, modes)
        self._emit = emit
        self._codec = codec(options)
        self._modes = {(form, diff): modes_of(diff, form, options) for form in Form for diff in range(4)}
        self._compression: frozenset[Mode] = frozenset() if options.full_data else compression.value
        self._addresses = Differences()
        self._values = Differences()
        self._aligned: dict[int, bool] = {}  # by size: whether the last address was
        self._sizes: dict[int, int] = {}  # by load ID: log2 of the size requested
        self._lrid = 0

    def synchronize(self) -> None:
        """A synchronizing te_inst packet was sent: what comes next of each size is told in full."""
        if not self._options.reference:
            self._addresses.reset()
            self._values.reset()

    def access(self, access: Access) -> bool:
        """One access as its instruction retires; if it has a second phase, that follows at once.

        False, and no packet, when the specification has none for it: see `has_packet`.
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

    def has_packet(self, access: Access) -> bool:
        """Whether there is a packet for such an access.

        None is wider than the bus. Atomics and CSRs need the full width of *format*. A store-conditional that failed is
        told only without values, a compare-and-swap that failed only by the v0.8 extension, and not by values alone;
        several accesses of one instruction only by the extension.
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

    def is_split(self, access: Access) -> bool:
        """Whether an access is told in two phases."""
        options = self._options
        if not options.split or access.operation == CAS_FAILURE:
            return False
        if access.kind == LOAD:
            return options.content is Content.BOTH
        return access.kind == ATOMIC and options.content is not Content.ADDRESS

    def request(self, lrid: int, access: Access) -> None:
        """The first phase of a split load or atomic."""
        self._sizes[lrid] = _log2(access.size)
        self._send(access, lrid)

    def response(self, lrid: int, kind: str, value: int | None) -> None:
        """The second phase of the load or atomic requested with this load ID; None: it ended with an error."""
        size = self._sizes.pop(lrid)
        fields = {"size": size, "lrid": lrid}
        if value is None:
            self._emit(self._built(kind, "", fields | {"resp": 0b00}, response_size=size))
            return
        payloads = []
        for resp in (0b10, *self._compressed(size, Form.SPLIT_DATA)):
            mode = response_mode(resp, self._options)
            short = encoded_field(value, self._values.last(size), mode, 8 << size)
            counted = kind == ATOMIC and not self._options.extended
            more = {"resp": resp, **self._counted("data", "data_len", short, size, counted)}
            payloads.append(self._built(kind, "", fields | more, response_size=size))
        self._emit(min(payloads, key=len))
        self._values.keep(value, size)

    def _send(self, access: Access, lrid: int | None = None) -> None:
        """The shortest packet that tells an access, or its first phase."""
        form = self._form(access, lrid)
        size = _log2(access.size)
        aligned = access.kind in (ATOMIC, CSR) or not (access.address or 0) & access.size - 1
        values = self._values_of(access, form)
        payloads = []
        encoded_values: dict[Mode, dict[str, int]] = {}
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

    def _keep(self, access: Access, size: int, aligned: bool, values: list[tuple[str, str, int]]) -> None:
        if access.kind != CSR and self._options.content is not Content.DATA:
            self._addresses.keep(self._field(access, size, aligned), size)
            self._aligned[size] = aligned
        if values:
            self._values.keep(values[-1][2], size)
            if access.kind in (ATOMIC, CSR) and not self._options.reference:
                self._values.forget(size)

    def _form(self, access: Access, lrid: int | None) -> Form:
        if lrid is not None:
            return Form.SPLIT_LOAD if access.kind == LOAD else Form.SPLIT_ATOMIC
        return {ATOMIC: Form.ATOMIC, CSR: Form.CSR}.get(access.kind, Form.LOAD_STORE)

    def _values_of(self, access: Access, form: Form) -> list[tuple[str, str, int]]:
        """(field, field of its length, value) of the values of a packet, in its order."""
        if self._options.content is Content.ADDRESS or form is Form.SPLIT_LOAD:
            return []
        data, operand = ("data", "data_len", access.value or 0), ("operand", "op_len", access.operand or 0)
        if form is Form.CSR:
            return [data] if (access.address or 0) >> 10 == 0b11 else [data, operand]
        if form is Form.SPLIT_ATOMIC or access.operation == CAS_FAILURE:
            return [operand]
        return [operand, data] if access.kind == ATOMIC else [data]

    def _diffs(self, form: Form, size: int, aligned: bool, values: int) -> list[int]:
        """What *diff* may be: 00, and what else is unambiguous."""
        options = self._options
        if options.reference:
            return [self._fixed_diff()]
        compressed = self._compressed(size, form) if form is Form.LOAD_STORE and values else []
        if options.content is Content.DATA or form is Form.CSR:
            return [0b00, *compressed]
        known = self._addresses.last(size) is not None and self._aligned[size] is aligned
        if not known or options.full_address:
            return [0b00]
        if options.content is Content.ADDRESS or form is Form.SPLIT_LOAD:
            return [0b00, 0b01]
        return [0b00] if has_one_bit(form, options) else [0b00, 0b10, *compressed]

    def _compressed(self, size: int, form: Form) -> list[int]:
        """The codes for a compressed value, of *diff* or *resp*."""
        options = self._options
        if self._values.last(size) is None or options.reference:
            return []
        if form is Form.SPLIT_DATA:
            return [code for code in (0b01, 0b11) if response_mode(code, options) in self._compression]
        codes = (0b1,) if has_one_bit(form, options) else (0b01, 0b11)
        return [code for code in codes if self._modes[form, code][1] in self._compression]

    def _fixed_diff(self) -> int:
        """The reference model's."""
        options = self._options
        if options.content is Content.ADDRESS:
            return int(not options.full_address)
        if options.content is Content.DATA:
            return int(not options.full_data)
        return 0b01 if not options.full_data else 0b00 if options.full_address else 0b10

    def _field(self, access: Access, size: int, aligned: bool) -> int:
        """The address as the field counts it."""
        address = (access.address or 0) & (1 << self._options.address_width) - 1
        return address >> size if aligned else address

    def _address_fields(self, access: Access, size: int, aligned: bool, mode: Mode) -> dict[str, int]:
        if access.kind == CSR:
            number = access.address or 0
            return {"addr_msbs": number >> 6 & 63, "addr_lsbs": number & 63}
        last = self._addresses.last(size)
        return {"address": encoded_field(self._field(access, size, aligned), last, mode, self._options.address_width)}

    def _value_fields(self, values: list[tuple[str, str, int]], size: int, mode: Mode, form: Form) -> dict[str, int]:
        counted = self._options.content is Content.BOTH or form is Form.CSR
        fields: dict[str, int] = {}
        last = self._values.last(size)
        for name, length, value in values:
            short = encoded_field(value, last, mode, 8 << size)
            fields |= self._counted(name, length, short, size, counted or (name == "operand" and len(values) == 2))
            last = value
        return fields

    def _counted(self, name: str, length: str, value: int, size: int, counted: bool) -> dict[str, int]:
        """A value of 2**size bytes and its length: as few bytes as tell it, of the reference model all of them."""
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
        """The packet; *response_size* is log2 of the size of a data phase's request."""
        is_response = response_size is not None
        return self._codec.build(kind, operation, fields, aligned=aligned, response=is_response)


def _log2(size: int) -> int:
    return size.bit_length() - 1
