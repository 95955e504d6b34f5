"""Each row of the table of adapters is described, listed, found and driven; and so is one that is added to it."""

import argparse
import struct
from functools import partial
from typing import Any

import pytest

from rvtrace_gdb.console.commands import usb as command
from rvtrace_gdb.session.description.file import parse
from rvtrace_gdb.session.description.model import DescriptionError, UsbDescription
from rvtrace_gdb.session.target import usb
from rvtrace_gdb.transport.usb.adapters import ADAPTERS, Adapter, Driver
from rvtrace_gdb.transport.usb.device import attached_devices
from rvtrace_gdb.transport.usb.esp_jtag import EspJtag
from rvtrace_gdb.transport.usb.mpsse import Mpsse
from tests.transport.usb.esp_device import EspDevice
from tests.transport.usb.mpsse_device import MpsseDevice
from tests.transport.usb.rig import plugged
from tests.transport.usb.test_description import ENCODER

KEYS = {Driver.ESP: (), Driver.MPSSE: ("interface = 1", "layout = [0x0908, 0x0b1b]")}
"""What only some adapters have in [usb] (docs/usb.md)."""

OLIMEX = Adapter(
    "arm-usb-ocd-h", "Olimex ARM-USB-OCD-H", Driver.MPSSE, ((0xFFFF, 0x002B),), "FT2232H", "Olimex's probe",
    layout=(0x0908, 0x0B1B),
)  # fmt: skip


class NoTap:
    """Wires with nothing at their end."""

    tdo = 0

    def fall(self) -> None: ...

    def rise(self, tms: int, tdi: int) -> None: ...


def device_of(adapter: Adapter, ids: tuple[int, int]) -> Any:
    """A model of a device with these IDs: they are at offset 8 of its descriptor (USB 2.0, table 9-8)."""
    device: Any = (EspDevice if adapter.driver is Driver.ESP else MpsseDevice)(NoTap())
    device.device = device.device[:8] + struct.pack("<HH", *ids) + device.device[12:]
    return device


def check(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter can be described, listed, chosen on the command line, and opened with its own layout of pins."""
    lines = "\n".join((f'adapter = "{adapter.name}"', *KEYS[adapter.driver]))
    described = parse(f"[usb]\n{lines}\n{ENCODER}", "x.toml").usb
    assert described is not None and described.adapter == adapter.name
    for key in {it for keys in KEYS.values() for it in keys} - set(KEYS[adapter.driver]):
        with pytest.raises(DescriptionError, match="only adapter = "):
            parse(f"[usb]\n{lines}\n{key}\n{ENCODER}", "x.toml")
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert parser.parse_args(["--adapter", adapter.name]).adapter == adapter.name
    for ids in adapter.ids:
        device = device_of(adapter, ids)
        rig = plugged(device)
        monkeypatch.setattr(usb, "attached_devices", partial(attached_devices, backend=rig.backend))
        monkeypatch.setattr(usb, "EspJtag", partial(EspJtag, backend=rig.backend))
        monkeypatch.setattr(usb, "Mpsse", partial(Mpsse, backend=rig.backend))
        [(name, found)] = usb.adapters()
        assert (name, found.kind, (found.vendor, found.product)) == (adapter.name, adapter.kind, ids)
        opened: Any = usb._adapter(UsbDescription(adapter.name))
        assert opened.name.startswith(f"{adapter.kind} {ids[0]:04x}:{ids[1]:04x}")
        opened.close()
        if adapter.driver is Driver.MPSSE:
            levels, directions = adapter.layout
            assert device.low == (levels & 0xFF, directions & 0xFF)
            assert device.high == (levels >> 8, directions >> 8)


@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=lambda adapter: adapter.name)
def test_each_adapter_is_known_everywhere(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> None:
    check(adapter, monkeypatch)


def test_a_row_is_all_that_another_adapter_of_a_known_driver_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADAPTERS, OLIMEX.name, OLIMEX)
    monkeypatch.setattr(usb, "ADAPTER_NAMES", tuple(ADAPTERS))  # computed when the module is loaded
    check(OLIMEX, monkeypatch)


def test_no_two_adapters_are_the_same_device() -> None:
    found = [ids for adapter in ADAPTERS.values() for ids in adapter.ids]
    assert len(found) == len(set(found)) and all(name == adapter.name for name, adapter in ADAPTERS.items())
