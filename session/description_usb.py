"""The table [usb] of a target description: the adapter that leads to the target, in the place of [openocd].

[usb]
adapter = "esp"              # Espressif's built-in USB-JTAG; "mpsse": FTDI FT232H, FT2232H, FT4232H
serial = "60:55:F9:00:00:01" # only needed if there are several
khz = 10000                  # of TCK
tap = 0                      # which TAP of the scan chain, counted from TDO; default 0
ir_lengths = [5]             # only if there are several TAPs, and not all have 5 bits
interface = 0                # MPSSE only: the channel, 0 is A
layout = [0x0008, 0x000b]    # MPSSE only: levels and directions of the pins, as OpenOCD's `ftdi layout_init`
"""

from collections.abc import Sequence
from typing import Any

from rvtrace_gdb.session.description import Usb
from rvtrace_gdb.session.description_tables import Table, Tables
from rvtrace_gdb.support.text import shown

ADAPTERS = ("esp", "mpsse")
_KEYS = ("adapter", "serial", "khz", "tap", "ir_lengths", "interface", "layout")
_MPSSE_ONLY = ("interface", "layout")
_WHERE = "[usb]"


def read(tables: Tables, document: dict[str, Any]) -> Usb | None:
    """None: there is no such table. Raises DescriptionError."""
    if "usb" not in document:
        return None
    table = tables.table(document, "usb", _KEYS)
    for other in ("openocd", "qemu"):
        if other in document:
            raise tables.error(f"there is [{other}], too: leave out one, the target is reached by the other", _WHERE)
    adapter = tables.choice(table, _WHERE, "adapter", ADAPTERS)
    for key in _MPSSE_ONLY:
        if key in table and adapter != "mpsse":
            raise tables.error('only adapter = "mpsse" has it', _WHERE, key)
    return Usb(
        adapter,
        tables.string(table, _WHERE, "serial") if "serial" in table else None,
        tables.within(table, _WHERE, "khz", range(1, 100_001)),
        tables.within(table, _WHERE, "interface", range(4)) or 0,
        _layout(tables, table),
        tables.within(table, _WHERE, "tap", range(32)) or 0,
        _ir_lengths(tables, table),
    )


def _layout(tables: Tables, table: Table) -> tuple[int, int] | None:
    values = _numbers(tables, table, "layout", range(1 << 16), "two numbers, levels and directions, of 16 bits")
    if values is None:
        return None
    if len(values) != 2:
        raise tables.error("must be two numbers, as in layout = [0x0008, 0x000b]", _WHERE, "layout")
    return values[0], values[1]


def _ir_lengths(tables: Tables, table: Table) -> tuple[int, ...] | None:
    values = _numbers(tables, table, "ir_lengths", range(1, 33), "a length in bits, 1 to 32, for each TAP")
    if values == ():
        raise tables.error("is empty: a length in bits for each TAP, as in ir_lengths = [5, 4]", _WHERE, "ir_lengths")
    return values


def _numbers(tables: Tables, table: Table, key: str, allowed: range, what: str) -> tuple[int, ...] | None:
    if key not in table:
        return None
    values = table[key]
    if not isinstance(values, Sequence) or not all(type(value) is int and value in allowed for value in values):
        raise tables.error(f"is {shown(values)}, must be {what}", _WHERE, key)
    return tuple(values)
