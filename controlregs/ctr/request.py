"""What a user asks of Control Transfer Records."""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.ctr.transfers import TransferType


@dataclass(frozen=True)
class CtrRequest:
    """None: what suits the hardware best.

    modes     of "m", "s", "u", "vs", "vu"; None: all there are
    inhibit   kinds of transfers that are not to be recorded
    not_taken record branches that are not taken, too
    depth     entries; None: as many as there can be
    ras       return address stack emulation
    external  of "m", "s", "vs": record traps into these modes although the modes themselves are not recorded
    version   a key of `versions.VERSIONS`; None: the one that is there
    """

    modes: frozenset[str] | None = None
    inhibit: frozenset[TransferType] = frozenset()
    not_taken: bool = False
    depth: int | None = None
    ras: bool = False
    freeze_breakpoint: bool = False
    freeze_lcofi: bool = False
    external: frozenset[str] = frozenset()
    version: str | None = None
