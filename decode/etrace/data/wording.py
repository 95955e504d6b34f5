"""Data packets in words: the fields as they were sent, under the specification's names, and what they mean."""

from rvtrace_gdb.decode.etrace.data.layout import Form
from rvtrace_gdb.decode.etrace.data.options import Content, DataOptions
from rvtrace_gdb.decode.etrace.data.packet import DataPacket
from rvtrace_gdb.decode.etrace.data.state import Mode, modes_of, response_mode
from rvtrace_gdb.decode.memory_access import MULTIPLE

_COUNTS = frozenset({"size", "lrid", "diff", "resp", "data_len", "op_len"})
"""Fields shown in decimal; the others are patterns of bits."""

_HOW = {Mode.FULL: "full", Mode.XOR: "XOR-compressed", Mode.DIFFERENCE: "differential"}


def columns(packet: DataPacket) -> list[str]:
    """ "name=value" of each field, in the order of the packet."""
    return [f"{name}={value}" if name in _COUNTS else f"{name}={value:#x}" for name, value in packet.fields.items()]


def meaning(packet: DataPacket, options: DataOptions) -> str:
    """What was done, and how it is told."""
    form, _, fields = packet
    if form in (Form.SPLIT_DATA, Form.SPLIT_ATOMIC_DATA):
        whose = f"data of load ID {fields['lrid']}"
        return f"{whose}: {_told_data(fields['resp'], options)}" if fields["resp"] else f"{whose}: the load failed"
    parts = [_what(packet)]
    by_address, by_value = modes_of(fields["diff"], form, options)
    if "address" in fields or (form is Form.CSR and options.content is Content.ADDRESS):
        parts.append(f"{_HOW[by_address]} address")
    if "data" in fields or "operand" in fields:
        names = [name for name in ("data", "operand") if name in fields]
        parts.append(f"{_HOW[by_value]} {'/'.join(names)}")
    if "lrid" in fields:
        parts.append(f"its data follows as load ID {fields['lrid']}")
    return ", ".join(parts)


def _what(packet: DataPacket) -> str:
    """E.g. "unaligned load of 4 bytes"."""
    form, code, fields = packet
    alignment = "" if code.aligned else "unaligned "
    if form is Form.CSR:
        return f"CSR {code.operation}"
    if code.operation == MULTIPLE:
        return f"{alignment}{code.kind} of {1 << fields['size']} bytes, of an instruction with several"
    operation = f" {code.operation}" if code.operation else ""
    return f"{alignment}{code.kind}{operation} of {1 << fields['size']} byte{'s' if fields['size'] else ''}"


def _told_data(resp: int, options: DataOptions) -> str:
    return f"{_HOW[response_mode(resp, options)]} data"
