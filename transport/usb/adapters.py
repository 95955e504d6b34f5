"""The USB adapters that rvtrace knows, in one table.

From a row follow the adapter's name in the table [usb] of a target description, what `rvtrace usb` lists and takes for
`--adapter`, how the device is found, which protocol drives it, and the table in docs/usb.md, which
`scripts/option_tables.py` writes.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Driver(Enum):
    """The protocols of adapters: the module of this package that speaks it, and the keys of [usb] it has besides."""

    ESP = "esp_jtag"
    MPSSE = "mpsse"

    @property
    def keys(self) -> tuple[str, ...]:
        return ("interface", "layout") if self is Driver.MPSSE else ()


class Adapter(NamedTuple):
    """An adapter, or a family of them that are driven alike.

    name     its name in target descriptions
    kind     what lists and errors call it
    driver   the protocol it speaks
    ids      the pairs (idVendor, idProduct) of such devices
    devices, found_in   what it is and where it is found, for the documentation
    layout   of MPSSE: initial levels and directions (1: output) of the pins, the high byte is ACBUS or BCBUS
    """

    name: str
    kind: str
    driver: Driver
    ids: tuple[tuple[int, int], ...]
    devices: str
    found_in: str
    layout: tuple[int, int] = (0x0008, 0x000B)  # TMS high; TCK, TDI and TMS are outputs


_ROWS = (
    Adapter(
        "esp", "Espressif USB-JTAG", Driver.ESP, ((0x303A, 0x1001),),
        "the USB-JTAG built into Espressif's chips", "ESP32-C6, H2, C5, P4 (and C3, which has no trace encoder)",
    ),
    Adapter(
        "mpsse", "FTDI MPSSE", Driver.MPSSE, ((0x0403, 0x6010), (0x0403, 0x6011), (0x0403, 0x6014)),
        "FTDI FT2232H, FT4232H, FT232H", "most boards and probes with an FTDI chip",
    ),
)  # fmt: skip
ADAPTERS: Mapping[str, Adapter] = {adapter.name: adapter for adapter in _ROWS}
"""The adapters by name."""
