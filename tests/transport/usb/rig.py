"""The simulated target behind a USB-JTAG adapter, with time passing in it while somebody talks to it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.transport.simulated.machine import Machine
from rvtrace_gdb.transport.usb.esp_jtag import EspJtag
from rvtrace_gdb.transport.usb.jtag import Chain
from rvtrace_gdb.transport.usb.mpsse import Mpsse
from rvtrace_gdb.transport.usb.target import UsbConnection, UsbTarget
from tests.transport.usb.backend import Backend, Port
from tests.transport.usb.device_model import Wire
from tests.transport.usb.esp_device import EspDevice
from tests.transport.usb.mpsse_device import MpsseDevice


@dataclass
class Rig:
    """*port*: where the adapter is plugged in; what is changed in it goes wrong."""

    port: Port
    backend: Backend

    @property
    def wire(self) -> Wire:
        return self.port.wire

    @property
    def device(self) -> Any:
        return self.port.wire.device

    def target(self) -> UsbTarget:
        adapter = EspJtag if isinstance(self.device, EspDevice) else Mpsse
        return UsbTarget(UsbConnection(lambda: Chain(adapter(backend=self.backend))))


def plugged(device: Any, between: Callable[[], None] = lambda: None) -> Rig:
    port = Port(Wire(device, between=between))
    return Rig(port, Backend([port]))


def esp(machine: Machine, instructions: int = 50) -> Rig:
    """*instructions*: that harts which run execute between two transfers."""
    machine.tap.reset()
    return plugged(
        EspDevice(machine.tap, reset=machine.debug_module.system_reset), lambda: machine.run_slice(instructions)
    )


def ftdi(machine: Machine, instructions: int = 50) -> Rig:
    """An FT2232H instead."""
    machine.tap.reset()
    machine.tap.fall()
    return plugged(MpsseDevice(machine.tap), lambda: machine.run_slice(instructions))
