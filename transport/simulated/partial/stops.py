"""Why a hart of which some state is unknown does not go on: typed, the wording is elsewhere."""

from enum import StrEnum
from typing import NamedTuple


class StopCause(StrEnum):
    """Why the instruction at the pc is not executed.

    DEVICE_READ     it reads an address that is no memory of the hart
    BRANCH          whether it branches depends on an unknown value
    JUMP            where it jumps to is unknown
    LOAD_ADDRESS    where it loads from is unknown, so that it may trap
    STORE_ADDRESS   where it stores to is unknown
    ELSEWHERE       it stores to where neither memory nor a device is known to be
    HANDLER         it traps, and where traps lead is unknown
    CSR             what it does to a CSR depends on an unknown value, or a trap returns to an unknown place
    CODE            its code is unknown, or there is no memory
    UNSUPPORTED     the simulated hart does not have it
    EBREAK          it asks a debugger
    WAIT            it has waited for an interrupt, which nobody sends
    TRANSLATION     it turns translation of addresses on
    SUPERVISOR      a trap may lead to S mode, which the simulated hart does not have
    MISALIGNED      its access is not aligned, on which harts differ
    BREAKPOINT      a breakpoint is there
    WATCHPOINT      it accesses watched memory
    """

    DEVICE_READ = "device-read"
    BRANCH = "branch"
    JUMP = "jump"
    LOAD_ADDRESS = "load-address"
    STORE_ADDRESS = "store-address"
    ELSEWHERE = "elsewhere"
    HANDLER = "handler"
    CSR = "csr"
    CODE = "code"
    UNSUPPORTED = "unsupported"
    EBREAK = "ebreak"
    WAIT = "wait"
    TRANSLATION = "translation"
    SUPERVISOR = "supervisor"
    MISALIGNED = "misaligned"
    BREAKPOINT = "breakpoint"
    WATCHPOINT = "watchpoint"


PASSED = frozenset({
    StopCause.DEVICE_READ, StopCause.LOAD_ADDRESS, StopCause.ELSEWHERE, StopCause.MISALIGNED, StopCause.WAIT
})  # fmt: skip
"""Those over which a hart goes on if it is asked again: it does not trap then, and what it reads is unknown."""


class HartAccess(NamedTuple):
    """An access to memory. *kind*: "load", "store" or "atomic"."""

    kind: str
    address: int
    size: int


class HartStop(Exception):
    """The instruction at the pc is not executed. *access*: the one that it would make; *cause*: of its trap."""

    def __init__(self, reason: StopCause, access: HartAccess | None = None, cause: int | None = None) -> None:
        super().__init__(reason)
        self.reason, self.access, self.cause = reason, access, cause
