"""Which RISC-V Debug Specification the simulated target follows where the versions differ."""

from enum import Enum


class DebugSpec(Enum):
    """The value is what `--debug-spec` calls it.

    The differences that show here (Debug Specification 1.0, 1.2.1 "Versions", and the registers of both versions):
    dmstatus.version is 2 or 3, dmstatus.ndmresetpending and dtmcs.errinfo are new in 1.0, and 0.13 increments sbaddress
    at every read of sbdata0.
    """

    V0_13 = "0.13"
    V1_0 = "1.0"
