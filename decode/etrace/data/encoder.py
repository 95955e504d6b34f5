"""Accesses to te_data packets."""

from collections.abc import Callable
from enum import Enum

from rvtrace_gdb.decode.etrace.data.layout import Form
from rvtrace_gdb.decode.etrace.data.options import Content, DataOptions
from rvtrace_gdb.decode.etrace.data.packet import codec
from rvtrace_gdb.decode.etrace.data.state import Differences, Mode, extended, has_one_bit, modes_of, response_mode, told
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.memory_access import ATOMIC, CAS_FAILURE, CSR, LOAD, MULTIPLE, STORE_FAILURE, Access


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
        self._offered: frozenset[Mode] = frozenset() if options.full_data else compression.value
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
            short = told(value, self._values.last(size), mode, 8 << size)
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
        told_before: dict[Mode, dict[str, int]] = {}
        for diff in self._diffs(form, size, aligned, len(values)):
            by_address, by_value = self._modes[form, diff]
            fields = {"size": size, "lrid": lrid or 0, "diff": diff}
            fields |= self._address_fields(access, size, aligned, by_address)
            if by_value not in told_before:
                told_before[by_value] = self._value_fields(values, size, by_value, form)
            fields |= told_before[by_value]
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
            return [code for code in (0b01, 0b11) if response_mode(code, options) in self._offered]
        codes = (0b1,) if has_one_bit(form, options) else (0b01, 0b11)
        return [code for code in codes if self._modes[form, code][1] in self._offered]

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
        return {"address": told(self._field(access, size, aligned), last, mode, self._options.address_width)}

    def _value_fields(self, values: list[tuple[str, str, int]], size: int, mode: Mode, form: Form) -> dict[str, int]:
        counted = self._options.content is Content.BOTH or form is Form.CSR
        fields: dict[str, int] = {}
        last = self._values.last(size)
        for name, length, value in values:
            short = told(value, last, mode, 8 << size)
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
