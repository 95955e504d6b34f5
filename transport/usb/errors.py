"""The errors on the way to a target over USB, each a line the user can act on."""

import shlex
import sys
from collections.abc import Sequence

from rvtrace_gdb.support.errors import RvtraceError


class UsbError(RvtraceError):
    """Root of the USB transport's errors. A long read that failed leaves the bytes it had read in *partial*."""

    partial: bytes = b""
    requested: int = 0

    def __str__(self) -> str:
        text = super().__str__()
        return (
            f"{text} ({len(self.partial)} of {self.requested} bytes were read and are kept)" if self.partial else text
        )


class UsbLost(UsbError):
    """The adapter, or the target behind it, can no longer be reached; the next use connects again."""


class PyusbMissing(UsbError):
    def __init__(self) -> None:
        install = f"{shlex.quote(sys.executable)} -m pip install pyusb"
        super().__init__(f"USB needs the Python package pyusb, which is not installed: {install}")


class LibusbMissing(UsbError):
    def __init__(self) -> None:
        super().__init__("USB needs libusb 1.0, which pyusb did not find (Debian: apt install libusb-1.0-0)")


class NoSuchDevice(UsbError):
    """No such device is plugged in. *wanted_device*: what was looked for; *others*: the devices of that kind that are.
    """

    def __init__(self, wanted_device: str, others: Sequence[str]) -> None:
        self.wanted_device, self.others = wanted_device, tuple(others)
        there = f"there is {', '.join(others)}" if others else "none of its kind is there"
        super().__init__(f"no USB device {wanted_device}, {there}: is it plugged in, switched on, and the cable good?")


class SeveralDevices(UsbError):
    def __init__(self, wanted_device: str, devices: Sequence[str]) -> None:
        self.wanted_device, self.devices = wanted_device, tuple(devices)
        super().__init__(
            f"{len(devices)} USB devices are {wanted_device}: {', '.join(devices)}; "
            f"select one with `serial` in the table"
            " [usb] of the target description"
        )


class NotPermitted(UsbError):
    """The user may not open the device. *rule*: the udev rule that permits it."""

    def __init__(self, device: str, node: str, rule: str) -> None:
        self.device, self.node, self.rule = device, node, rule
        super().__init__(
            f"you may not use the USB device {device} ({node}): write the line  {rule}  into "
            "/etc/udev/rules.d/70-rvtrace.rules as root, run `udevadm control --reload`, and plug the device in again"
        )


class Claimed(UsbError):
    """Another program uses the device. *holders*: programs that have it open, as far as this user may see."""

    def __init__(self, device: str, holders: Sequence[str]) -> None:
        self.device, self.holders = device, tuple(holders)
        who = ", ".join(holders) or "another program (an OpenOCD?)"
        super().__init__(f"the USB device {device} is in use by {who}: end that first")


class Unplugged(UsbLost):
    def __init__(self, device: str) -> None:
        self.device = device
        super().__init__(
            f"the USB device {device} is gone: it was unplugged, switched off or reset; plug it in and try again"
        )


class UsbTimeout(UsbLost):
    """A transfer timed out. *doing*: the operation in progress."""

    protocol_name = "NoAnswer"

    def __init__(self, device: str, doing: str, seconds: float) -> None:
        self.device, self.doing, self.seconds = device, doing, seconds
        super().__init__(
            f"the USB device {device} did not answer within {seconds:g} s while {doing}: plug it out and in, "
            "and repeat the command"
        )


class TransferFailed(UsbLost):
    """Any other error that libusb reports."""

    def __init__(self, device: str, doing: str, reason: str) -> None:
        self.device, self.doing, self.reason = device, doing, reason
        super().__init__(f"the USB device {device} failed while {doing}: {reason}; plug it out and in, and try again")


class NotAnAdapter(UsbError):
    """The device lacks what its protocol needs."""

    def __init__(self, device: str, problem: str) -> None:
        self.device, self.problem = device, problem
        super().__init__(f"the USB device {device} cannot be used as JTAG adapter: {problem}")


class JtagProblem(UsbLost):
    """The wires behind the adapter do not lead to a usable TAP. *problem* says what to check."""

    def __init__(self, adapter: str, problem: str) -> None:
        self.adapter, self.problem = adapter, problem
        super().__init__(f"{adapter}: {problem}")


class DmiFailed(UsbLost):
    """The debug transport refused an access to the register *dmi_address* of the debug module."""

    def __init__(self, adapter: str, dmi_address: int, problem: str) -> None:
        self.adapter, self.dmi_address = adapter, dmi_address
        super().__init__(f"{adapter}: access to debug module register {dmi_address:#x} {problem}")


class DebugModuleLost(UsbLost):
    """The debug module is no longer active, which only a reset can cause."""

    def __init__(self, adapter: str) -> None:
        self.adapter = adapter
        super().__init__(
            f"{adapter}: the debug module is no longer active: the target was reset, or lost its power; repeat the "
            "command"
        )


class DebugModuleProblem(UsbError):
    """The debug module does not do what was requested."""

    def __init__(self, adapter: str, problem: str) -> None:
        self.adapter, self.problem = adapter, problem
        super().__init__(f"{adapter}: {problem}")


class UsbHartNotHalted(UsbError):
    """Hart number *hart* is in *state* instead of halted."""

    protocol_name = "HartNotHalted"

    def __init__(self, adapter: str, hart: int, state: str, what: str = "") -> None:
        do = "halt it first" if state == "running" else "is it powered, and out of reset?"
        what = what or f"its registers cannot be reached; {do}"
        self.adapter, self.hart, self.state = adapter, hart, state
        super().__init__(f"{adapter}: hart {hart} is {state}, not halted: {what}")


class AccessRefused(UsbError):
    """The target refused an access to memory at *address*."""

    def __init__(self, adapter: str, address: int, reason: str) -> None:
        self.adapter, self.address, self.reason = adapter, address, reason
        super().__init__(f"{adapter}: cannot access address {address:#x}: {reason}")


class UsbRegisterRefused(UsbError):
    """The hart refused an access to a register. *regno*: its number in abstract commands."""

    protocol_name = "RegisterRefused"

    def __init__(self, adapter: str, hart: int, regno: int, reason: str) -> None:
        self.adapter, self.hart, self.regno, self.reason = adapter, hart, regno, reason
        super().__init__(f"{adapter}: hart {hart}, register {regno:#x}: {reason}")


class NoTcl(UsbError):
    def __init__(self, command: str) -> None:
        self.command = command
        super().__init__(f"there is no OpenOCD on the way to this target to run {command[:60]!r}: it is reached by USB")
