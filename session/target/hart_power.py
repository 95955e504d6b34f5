"""Which harts are on, and access to the registers of trace components that answer only while their hart is.

A register of a hart that is off may fault, hang the bus, or read as anything. So the state of the harts is asked first,
and `PoweredTarget` refuses an access itself that must not be made.
"""

from collections.abc import Iterable

from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.session.description.model import Description, power_of
from rvtrace_gdb.session.target.link import UNKNOWN_STATES, Link, power_states
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent


class HartOff(RvtraceError):
    """An access that was not made, because its register has no power. *state*: the hart's, as OpenOCD says."""

    advice = "switch the hart on, or leave it out with `trace start -hart`"

    def __init__(self, hart: int, address: int, state: str) -> None:
        self.hart, self.address, self.state = hart, address, state
        super().__init__(f"hart {hart} is off ({state}), and this register with it; it was not touched")


class HartPower:
    """Which of *harts* are off, as *link* said at the last `ask`."""

    def __init__(self, link: Link, harts: Iterable[int]) -> None:
        self._link, self._harts = link, tuple(harts)
        self.off: dict[int, str] = {}

    def ask(self) -> None:
        """Ask for the state of all harts. Raises HartUnreachable and the transport's errors."""
        found = power_states(self._link, self._harts)
        self.off = {hart: state for hart, state in found.items() if state in UNKNOWN_STATES}


def off_harts(link: Link, description: Description) -> dict[int, str]:
    """Return the states of the harts that are off, if components need their hart's power. Raises as `HartPower.ask`."""
    if not description.hart_power:
        return {}
    power = HartPower(link, sorted({hart for part in description.components if (hart := power_of(part)) is not None}))
    power.ask()
    return power.off


class PoweredTarget:
    """The registers of a component that need the power of *hart*, reached through *target*."""

    def __init__(self, target: Target, hart: int, power: HartPower) -> None:
        self._target, self._hart, self._power = target, hart, power

    def read32(self, address: int) -> int:
        self._check(address)
        return self._target.read32(address)

    def write32(self, address: int, value: int) -> None:
        self._check(address)
        self._target.write32(address, value)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        self._check(address)
        return self._target.read_block(address, nbytes, progress)

    def _check(self, address: int) -> None:
        state = self._power.off.get(self._hart)
        if state is not None:
            raise HartOff(self._hart, address, state)
