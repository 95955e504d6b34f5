"""A target on which something happens at the k-th access, and a clock that makes waiting for it take no time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from tests.controlregs.graph.graph_model import LoggingTarget
from tests.controlregs.trace_control.component_model import BusFault, Model, Unplugged

EVENTS = ("reset", "bus error", "dead bus", "all ones", "all zeros", "frozen", "cable out")
"""What can happen to a component; the last one happens to all of them."""


class Clock:
    """For `controlregs.component`: time passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@contextmanager
def no_waiting() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rvtrace_gdb.controlregs.component.time", Clock())
        yield


@dataclass
class Breaking(LoggingTarget):
    """At access number *at* from `arm` on *event* happens to the component at *victim*.

    *seen*: the bases of what was accessed; 0: memory. "bus error": that access, or the next one to the victim, is
    refused, and no other. "reset": by the target's reset line, at once. "frozen": nothing that is written to it has an
    effect, Control stays as it reads.
    """

    at: int | None = None
    event: str = ""
    victim: int = 0
    count: int = 0
    happened: bool = False
    frozen: int = 0
    armed: bool = False
    seen: list[int] = field(default_factory=list)

    def arm(self, event: str, victim: int, at: int | None) -> None:
        self.event, self.victim, self.at = event, victim, at
        self.count, self.happened, self.armed = 0, False, True

    def repair(self) -> None:
        """Whatever happened is over; a component that was reset stays in reset."""
        self.armed, self.event = False, ""

    def read32(self, address: int) -> int:
        value = self._access(address, lambda: super(Breaking, self).read32(address))
        assert value is not None
        return value

    def write32(self, address: int, value: int) -> None:
        if self._access(address, lambda: 0, writing=True) is not None:
            super().write32(address, value)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        self._tick(0)
        if self.happened and self.event == "cable out":
            raise Unplugged
        return super().read_block(address, nbytes, progress)

    def _access(self, address: int, access: Callable[[], int], writing: bool = False) -> int | None:
        """None: a write that has no effect."""
        self._tick(address)
        if not self.happened or address & ~0xFFF != self.victim or self.event in ("", "reset"):
            if self.happened and self.event == "cable out":
                raise Unplugged
            return access()
        if self.event in ("bus error", "dead bus"):
            if self.event == "bus error":
                self.event = ""
            raise BusFault(address)
        if self.event == "cable out":
            raise Unplugged
        if writing:
            return None
        if self.event == "frozen":
            return self.frozen if address == self.victim else access()
        return 0xFFFF_FFFF if self.event == "all ones" else 0

    def _tick(self, address: int) -> None:
        if not self.armed:
            return
        self.seen.append(address & ~0xFFF)
        if self.count == self.at:
            self._happen()
        self.count += 1

    def _happen(self) -> None:
        self.happened = True
        device = self.devices[self.victim]
        for other in self.devices.values():
            other.lenient = True
        if self.event == "reset":
            pull_reset(device)
        self.frozen = device.control & ~3 | device.shown


def pull_reset(device: Model) -> None:
    """The target's reset: Active reads 0 at once, and all that was in the component is gone."""
    device.control = device.shown = device.countdown = 0
    device.registers = {}
    for name in ("kept", "queue"):
        if hasattr(device, name):
            setattr(device, name, b"")


def one_line(error: RvtraceError) -> str:
    said = str(error)
    assert said and "\n" not in said and "Traceback" not in said
    return said
