"""Which USB adapters are plugged in, and whether this user may open them, from the files of Linux: no library is
needed, and no device is opened.

Ref: Linux, Documentation/ABI/stable/sysfs-bus-usb (idVendor, idProduct, busnum, devnum).
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.transport.usb.adapters import ADAPTERS
from rvtrace_gdb.transport.usb.device import udev_rule

ADAPTER_IDS = {pair: adapter.kind for adapter in ADAPTERS.values() for pair in adapter.ids}
"""The kinds of adapters that rvtrace knows, by (idVendor, idProduct)."""


class PluggedAdapter(NamedTuple):
    """An adapter. *node*: its file; *rule*: the udev rule that lets the user open it; *permitted*: the user may."""

    kind: str
    vendor: int
    product: int
    node: Path
    permitted: bool

    @property
    def rule(self) -> str:
        return udev_rule(self.vendor, self.product)


def _may_open(node: Path) -> bool:
    return os.access(node, os.R_OK | os.W_OK)


@dataclass(frozen=True)
class UsbFiles:
    """Where Linux has its USB devices, and udev its rules."""

    devices: Path = Path("/sys/bus/usb/devices")
    nodes: Path = Path("/dev/bus/usb")
    rules: tuple[Path, ...] = (
        Path("/etc/udev/rules.d"), Path("/run/udev/rules.d"), Path("/usr/lib/udev/rules.d"), Path("/lib/udev/rules.d"),
    )  # fmt: skip
    may_open: Callable[[Path], bool] = _may_open

    def adapters(self) -> Iterator[PluggedAdapter]:
        """Yield the adapters that are plugged in."""
        for folder in sorted(self.devices.glob("*")):
            try:
                vendor, product = (int((folder / name).read_text(), 16) for name in ("idVendor", "idProduct"))
                bus, device = (int((folder / name).read_text()) for name in ("busnum", "devnum"))
            except (OSError, ValueError):  # an interface, or unplugged meanwhile
                continue
            kind = ADAPTER_IDS.get((vendor, product))
            if kind is not None:
                node = self.nodes / f"{bus:03}" / f"{device:03}"
                yield PluggedAdapter(kind, vendor, product, node, self.may_open(node))

    def kinds_with_rules(self) -> set[str]:
        """Return the kinds of adapters that a rule of udev names, as that of the package openocd does."""
        text = "".join(self._rule_texts()).lower()
        return {
            kind for (vendor, product), kind in ADAPTER_IDS.items()
            if f'"{vendor:04x}"' in text and f'"{product:04x}"' in text
        }  # fmt: skip

    def _rule_texts(self) -> Iterator[str]:
        for folder in self.rules:
            for file in sorted(folder.glob("*.rules")):
                try:
                    yield file.read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue
