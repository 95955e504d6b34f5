"""What capture.json says of the target's registers and memory, from which values of the past are computed.

A reader may ignore all of it. Registers have the numbers of the Debug Specification (3.7, "Abstract Register Numbers").
docs/capture-format.md is the reference.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from rvtrace_gdb.decode.reconstruction.facts import MemoryKind, MemoryRange
from rvtrace_gdb.session.capture.json_document import JsonTable, MemberFetch
from rvtrace_gdb.session.capture.model import (
    Capture,
    CapturedCode,
    DebuggerWrites,
    SavedAt,
    SavedMemory,
    SavedRegisters,
)
from rvtrace_gdb.support.extents import Extent

_NUMBER = re.compile(r"0x[0-9a-f]{1,4}")
_REGISTERS = 0x1040  # CSRs from 0, x0 to x31 from 0x1000, f0 to f31 from 0x1020
_SPACE = 1 << 64
_RANGES = 256
_PRIVILEGES = range(8)
_BREAKPOINT_BYTES = range(1, 17)


def describe_saved(capture: Capture, members: dict[str, bytes]) -> dict[str, Any]:
    """Return the keys of capture.json for what is saved, none for what is not, and add the members they refer to."""
    description: dict[str, Any] = {}
    if capture.registers:
        description["registers"] = [_registers_fields(saved) for saved in capture.registers]
    if capture.memory:
        numbered = enumerate(capture.memory)
        description["memory"] = [
            {"at": saved.at.value, **_stretch(saved.address, saved.data, f"memory/{n}.bin", members)}
            for n, saved in numbered
        ]
    if capture.written:
        description["written"] = [_writes_fields(it, f"written/{n}", members) for n, it in enumerate(capture.written)]
    if capture.ranges:
        description["ranges"] = [_range_fields(it) for it in capture.ranges]
    return description


def _registers_fields(saved: SavedRegisters) -> dict[str, Any]:
    return {
        "hart": saved.hart,
        "at": saved.at.value,
        "pc": f"{saved.pc:#x}",
        "privilege": saved.privilege,
        "values": _register_fields(saved.registers),
        **({"at_entry": True} if saved.at_entry else {}),
    }


def _register_fields(registers: Mapping[int, int]) -> dict[str, str]:
    return {f"{number:#x}": f"{value:#x}" for number, value in sorted(registers.items())}


def _stretch(address: int, data: bytes, member: str, members: dict[str, bytes]) -> dict[str, Any]:
    members[member] = data
    return {"address": f"{address:#x}", "member": member, "size": len(data)}


def _writes_fields(written: DebuggerWrites, folder: str, members: dict[str, bytes]) -> dict[str, Any]:
    stretches = enumerate(written.memory)
    breakpoints = [{"address": f"{address:#x}", "size": size} for address, size in written.breakpoints]
    return {
        "hart": written.hart,
        "pc": None if written.pc is None else f"{written.pc:#x}",
        "values": _register_fields(written.registers),
        "memory": [_stretch(address, data, f"{folder}/{n}.bin", members) for n, (address, data) in stretches],
        "unknown": written.unknown,
        **({} if written.halts == 1 else {"halts": written.halts}),
        **({"breakpoints": breakpoints} if breakpoints else {}),
    }


def _range_fields(memory: MemoryRange) -> dict[str, Any]:
    return {
        "name": memory.name,
        "address": f"{memory.address:#x}",
        "size": f"{memory.size:#x}",
        "kind": memory.kind.value,
        "private": list(memory.harts),
        "dma": memory.dma,
    }


def read_saved(root: JsonTable, fetch: MemberFetch) -> dict[str, Any]:
    """Return the fields of `Capture` for what is saved. Raises `BadDescription` and what *fetch* raises."""
    readers: Mapping[str, Callable[[JsonTable], Any]] = {
        "registers": _read_registers,
        "memory": lambda table: SavedMemory(_saved_at(table), *_read_stretch(table, fetch)),
        "written": lambda table: _read_written(table, fetch),
        "ranges": _read_range,
    }
    present = [key for key in readers if key in root.fields]
    found = {key: tuple(map(readers[key], root.tables(key))) for key in present}
    if len(found.get("ranges", ())) > _RANGES:
        raise root.bad("ranges")
    return found


def _saved_at(table: JsonTable) -> SavedAt:
    try:
        return SavedAt(table.text("at"))
    except ValueError:
        raise table.bad("at") from None


def _read_registers(table: JsonTable) -> SavedRegisters:
    at_entry = bool(table.optional("at_entry", table.flag))
    privilege = table.optional("privilege", lambda key: table.number(key, _PRIVILEGES))
    hart, pc = table.number("hart"), table.address("pc")
    return SavedRegisters(hart, _saved_at(table), pc, _read_values(table), at_entry, privilege)


def _read_values(table: JsonTable) -> dict[int, int]:
    values = table.table("values")
    if values is None:
        raise table.bad("values")
    for key in values.fields:
        if not _NUMBER.fullmatch(key) or int(key, 16) >= _REGISTERS:
            raise values.bad(key)
    return {int(key, 16): values.address(key) for key in values.fields}


def _read_stretch(table: JsonTable, fetch: MemberFetch) -> tuple[int, bytes]:
    address, member = table.address("address"), table.member()
    if address + (member.size or 0) > _SPACE:
        raise table.bad("size")
    return address, fetch(member)


def _read_written(table: JsonTable, fetch: MemberFetch) -> DebuggerWrites:
    memory: CapturedCode = tuple(_read_stretch(stretch, fetch) for stretch in table.tables("memory"))
    halts = table.optional("halts", table.number)
    return DebuggerWrites(
        table.number("hart"), table.optional("pc", table.address), _read_values(table), memory, table.flag("unknown"),
        _read_breakpoints(table), 1 if halts is None else halts,
    )  # fmt: skip


def _read_breakpoints(table: JsonTable) -> tuple[Extent, ...]:
    if "breakpoints" not in table.fields:
        return ()
    return tuple(
        Extent(it.address("address"), it.number("size", _BREAKPOINT_BYTES)) for it in table.tables("breakpoints")
    )


def _read_range(table: JsonTable) -> MemoryRange:
    address, size, harts = table.address("address"), table.address("size"), table.fields.get("private")
    if not size or address + size > _SPACE:
        raise table.bad("size")
    if not isinstance(harts, list) or not all(type(hart) is int and 0 <= hart < 1 << 63 for hart in harts):
        raise table.bad("private")
    try:
        kind = MemoryKind(table.text("kind"))
    except ValueError:
        raise table.bad("kind") from None
    return MemoryRange(address, size, kind, tuple(harts), table.flag("dma"), table.text("name"))
