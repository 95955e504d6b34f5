"""E-Trace packets read and written by the tests, from the tables of the document and not by the code under test.

A payload is a number whose bit 0 comes first and whose sign goes on for ever ("sign based compression"): so reading
past the end needs no care. Sources: Efficient Trace for RISC-V 2.0, "Instruction Trace Encoder Output Packets"; irets:
its Implicit Return extension v0.8.
"""

from typing import Any

from rvtrace_gdb.decode.etrace.options import Modes, Parameters

TRAP_OR_START = (0, 1)
"""Subformats of format 3 that synchronize."""


def map_bits(branches: int) -> int:
    """How long branch_map is for so many branches (0: 31, all valid)."""
    return next(size for size in (1, 3, 7, 15, 31) if branches <= size) if branches else 31


def depth_bits(parameters: Parameters) -> int:
    """How long irdepth or irets is."""
    if parameters.iret_ext:
        return 8
    stack = parameters.return_stack_size
    return stack + (stack > 0) + parameters.call_counter_size


def f0s_bits(parameters: Parameters) -> int:
    """How long subformat is in format 0."""
    if parameters.f0s_width is not None:
        return parameters.f0s_width
    return int(parameters.bpred_size > 0 and parameters.cache_size > 0)


class _Reader:
    """Takes fields off a payload."""

    def __init__(self, payload: bytes) -> None:
        self.bits = int.from_bytes(payload, "little", signed=True)
        self.before = 0

    def take(self, width: int) -> int:
        """The next *width* bits."""
        value = self.bits & (1 << width) - 1
        self.bits >>= width
        if width:
            self.before = value >> width - 1
        return value

    def flag(self) -> int:
        """The next bit: 1 if it differs from the one before."""
        before = self.before
        return self.take(1) ^ before


def read(payload: bytes, parameters: Parameters, modes: Modes) -> dict[str, Any]:
    """The fields of a packet; addresses in bytes, flags 1 where they say something. Support packets: "bits" only."""
    reader = _Reader(payload)
    fields: dict[str, Any] = {"format": reader.take(2)}
    match fields["format"]:
        case 0:
            _format_0(reader, fields, parameters, modes)
        case 1:
            _branches(reader, fields)
            if fields["branches"]:
                _address(reader, fields, parameters)
        case 2:
            _address(reader, fields, parameters)
        case _:
            _format_3(reader, fields, parameters, modes)
    return fields


def _branches(reader: _Reader, fields: dict[str, Any]) -> None:
    fields["branches"] = reader.take(5)
    fields["branch_map"] = reader.take(map_bits(fields["branches"]))


def _address(reader: _Reader, fields: dict[str, Any], parameters: Parameters) -> None:
    fields["address"] = reader.take(parameters.iaddress_width - parameters.iaddress_lsb) << parameters.iaddress_lsb
    fields["notify"], fields["updiscon"] = reader.flag(), reader.flag()
    _report(reader, fields, parameters)


def _report(reader: _Reader, fields: dict[str, Any], parameters: Parameters) -> None:
    fields["irreport"] = reader.flag()
    if fields["irreport"]:
        fields["irets" if parameters.iret_ext else "irdepth"] = reader.take(depth_bits(parameters))


def _format_0(reader: _Reader, fields: dict[str, Any], parameters: Parameters, modes: Modes) -> None:
    width = f0s_bits(parameters)
    fields["subformat"] = reader.take(width) if width else int(not modes.branch_prediction)
    if fields["subformat"] == 0:
        fields["branch_count"], fields["branch_fmt"] = reader.take(32), reader.take(2)
        if fields["branch_fmt"]:
            _address(reader, fields, parameters)
        return
    fields["index"] = reader.take(parameters.cache_size)
    fields["branches"] = reader.take(5)
    if fields["branches"]:
        fields["branch_map"] = reader.take(map_bits(fields["branches"]))
    _report(reader, fields, parameters)


def _format_3(reader: _Reader, fields: dict[str, Any], parameters: Parameters, modes: Modes) -> None:
    subformat = fields["subformat"] = reader.take(2)
    if subformat == 3:
        fields["bits"] = reader.bits
        return
    if subformat in TRAP_OR_START:
        fields["branch"] = reader.take(1)
    fields["privilege"] = reader.take(parameters.privilege_width)
    fields["time"] = reader.take(parameters.time_width)
    fields["context"] = reader.take(parameters.context_width)
    if subformat == 2:
        return
    if subformat == 1:
        fields["ecause"] = reader.take(parameters.ecause_width)
        fields["interrupt"], fields["thaddr"] = reader.take(1), reader.take(1)
    width = parameters.iaddress_width
    if not (subformat == 1 and fields["thaddr"] and modes.implicit_exception):
        fields["address"] = reader.take(width - parameters.iaddress_lsb) << parameters.iaddress_lsb
    if subformat == 1 and not fields["interrupt"]:
        fields["tval"] = reader.take(width)


class Writer:
    """A payload under construction: `put` fields in the order of the document's table, then take `payload`."""

    def __init__(self) -> None:
        self.bits = self.length = 0

    def put(self, value: int, width: int) -> "Writer":
        """*value* in *width* bits (the low ones, of a negative one too)."""
        self.bits |= (value & (1 << width) - 1) << self.length
        self.length += width
        return self

    def flag(self, differs: int) -> "Writer":
        """A bit that differs from the one before it, or is the same."""
        return self.put(self.bits >> self.length - 1 & 1 ^ differs, 1)

    def same(self, width: int) -> "Writer":
        """As many copies of the last bit."""
        return self.put(-(self.bits >> self.length - 1 & 1), width)

    @property
    def payload(self) -> bytes:
        """With bits that equal the sign left out, in as few whole bytes as that needs, at least one."""
        value = self.bits - ((self.bits >> self.length - 1) << self.length)
        length = max(1, (value if value >= 0 else ~value).bit_length() // 8 + 1)
        return value.to_bytes(length, "little", signed=True)


def write(fields: dict[str, int], parameters: Parameters, modes: Modes) -> bytes:
    """The payload of a packet with these fields, as `read` gives them; what is not given is 0 (branch: 1)."""
    writer = Writer().put(fields["format"], 2)
    match fields["format"]:
        case 0:
            writer.put(fields["subformat"], f0s_bits(parameters))
            if fields["subformat"]:
                writer.put(fields["index"], parameters.cache_size)
                _put_branches(writer, fields)
                _put_report(writer, fields, parameters)
            else:
                writer.put(fields["branch_count"], 32).put(fields["branch_fmt"], 2)
                if fields["branch_fmt"]:
                    _put_address(writer, fields, parameters)
        case 1:
            _put_branches(writer, fields)
            if fields["branches"]:
                _put_address(writer, fields, parameters)
        case 2:
            _put_address(writer, fields, parameters)
        case _:
            _put_format_3(writer, fields, parameters, modes)
    return writer.payload


def _put_branches(writer: Writer, fields: dict[str, int]) -> None:
    branches = fields["branches"]
    writer.put(branches, 5)
    if branches or fields["format"] == 1:
        writer.put(fields["branch_map"], map_bits(branches))


def _put_address(writer: Writer, fields: dict[str, int], parameters: Parameters) -> None:
    writer.put(fields["address"] >> parameters.iaddress_lsb, parameters.iaddress_width - parameters.iaddress_lsb)
    writer.flag(fields.get("notify", 0)).flag(fields.get("updiscon", 0))
    _put_report(writer, fields, parameters)


def _put_report(writer: Writer, fields: dict[str, int], parameters: Parameters) -> None:
    writer.flag(fields.get("irreport", 0))
    if fields.get("irreport", 0):
        writer.put(fields["irets" if parameters.iret_ext else "irdepth"], depth_bits(parameters))
    else:
        writer.same(depth_bits(parameters))


def _put_format_3(writer: Writer, fields: dict[str, int], parameters: Parameters, modes: Modes) -> None:
    subformat = fields["subformat"]
    writer.put(subformat, 2)
    if subformat == 3:
        writer.put(fields["bits"], 60)
        return
    if subformat in TRAP_OR_START:
        writer.put(fields.get("branch", 1), 1)
    writer.put(fields["privilege"], parameters.privilege_width)
    writer.put(fields.get("time", 0), parameters.time_width)
    writer.put(fields.get("context", 0), parameters.context_width)
    if subformat == 2:
        return
    if subformat == 1:
        writer.put(fields["ecause"], parameters.ecause_width)
        writer.put(fields.get("interrupt", 0), 1).put(fields["thaddr"], 1)
    if not (subformat == 1 and fields["thaddr"] and modes.implicit_exception):
        width = parameters.iaddress_width - parameters.iaddress_lsb
        writer.put(fields["address"] >> parameters.iaddress_lsb, width)
    if subformat == 1 and not fields.get("interrupt", 0):
        writer.put(fields.get("tval", 0), parameters.iaddress_width)
