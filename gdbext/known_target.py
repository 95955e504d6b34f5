"""Which board gdb is connected to: what the chip says of itself, for the session, which knows the shipped targets.

It is looked at once, after `trace connect`, and only if no target description applies. Registers are those of the
selected thread, which gdb has; memory is read only where a hart that stands at the program's entry says in a1 that its
device tree is (Linux, "RISC-V Kernel Boot Requirements": a0 is the hart's number).
"""

from __future__ import annotations

import contextlib
import re
from typing import Any

import gdb

from rvtrace_gdb.gdbext import neutral, same_openocd
from rvtrace_gdb.gdbext.lost_connection import refusals_suppressed
from rvtrace_gdb.gdbext.text import print_line
from rvtrace_gdb.gdbext.tracer import tracer

_IDCODES = "monitor foreach tap [jtag names] {echo [format {0x%08x} [jtag cget $tap -idcode]]}"
"""OpenOCD's command that prints the IDCODEs that were read when it connected."""
_CODE = re.compile(r"^0x([0-9a-f]{8})$", re.M)
_ENTRY = re.compile(r"^\s*Entry point: 0x([0-9a-f]+)$", re.M)
_MAGIC = b"\xd0\x0d\xfe\xed"
_MOST = 2 << 20  # bytes of a device tree
_HARTS = 4096  # numbers in a0


def propose() -> None:
    """Print which shipped target the chip is, if no target description applies, and rvtrace knows the chip."""
    context = tracer().context()
    if not tracer().request("propose", context=context, chip=None)["wanted"]:
        return
    found: dict[str, Any] = tracer().request("propose", context=context, chip=_chip())
    for line in found["lines"]:
        print_line(line)


def _chip() -> dict[str, Any]:
    """Return what the chip says of itself; what it does not say, or gdb cannot read now, is left out."""
    import base64  # not at each start of gdb

    vendor, arch = _register_bits("mvendorid"), _register_bits("marchid")
    tree = _device_tree()
    return {
        "idcodes": _idcodes(),
        "harts": [] if vendor is None or arch is None else [[vendor, arch]],
        "device_tree": None if tree is None else base64.b64encode(tree).decode(),
    }


def _register_bits(name: str) -> int | None:
    """Return a register of the selected thread, None where it has none of this name."""
    with contextlib.suppress(gdb.error, OverflowError, ValueError):
        value = neutral.evaluate(f"${name}")
        if value.type.code != gdb.TYPE_CODE_VOID:
            return int(value) & (1 << 8 * value.type.sizeof) - 1
    return None


def _idcodes() -> list[int]:
    """Return the IDCODEs of the chip's TAPs, if gdb is connected to OpenOCD."""
    found: list[int] = []
    if same_openocd.mark() is not None:
        with refusals_suppressed():
            found += [int(code, 16) for code in _CODE.findall(neutral.printed(_IDCODES))]
    return [code for code in found if code]


def _device_tree() -> bytes | None:
    """Return the device tree that the selected hart was booted with, if it stands at the program's entry."""
    entry = _ENTRY.search(neutral.printed("info files")) if gdb.selected_thread() is not None else None
    if entry is None or _register_bits("pc") != int(entry[1], 16):
        return None
    number, address = _register_bits("a0"), _register_bits("a1")
    if number is None or number >= _HARTS or not address or address % 8:
        return None
    with refusals_suppressed(), contextlib.suppress(gdb.MemoryError):
        header = bytes(gdb.selected_inferior().read_memory(address, 8))
        size = int.from_bytes(header[4:], "big")
        if header.startswith(_MAGIC) and size <= _MOST:
            return bytes(gdb.selected_inferior().read_memory(address, size))
    return None
