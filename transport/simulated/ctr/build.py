"""How a CTR recorder is built: what its document leaves to the implementation.

Sources: CTR 1.0, mctrctl, sctrdepth, "External Traps", "Cycle Counting"; CTR 0.1.4, 2.1, 5.2.1, 5.3, chapter 6.
"""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.ctr.cycles import EXPONENT_BITS
from rvtrace_gdb.controlregs.ctr.layout import DEPTHS as DEPTHS
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS as VERSIONS
from rvtrace_gdb.controlregs.ctr.versions import CtrVersion
from rvtrace_gdb.transport.simulated.ctr.transfer import Mode

_REQUIRED = {"1.0": {"M", "S", "U", "BPFRZ"}, "0.1.4": {"M", "S", "U", "CLR", "DEPTH"}}
_NEVER = {"Custom"}
_WITH_S_MODE = {"1.0": set[str](), "0.1.4": {"S", "STE"}}  # 1.0 demands S mode; its CSRs are here without it
_ENTRY_FIELDS = {"TYPE", "MISP"}


class CtrNotBuildable(ValueError):
    """No CTR can be built like this; the text says what cannot be, and why."""


@dataclass(frozen=True)
class CtrBuild:
    """One implementation.

    version        "1.0" or "0.1.4"
    depths         depths that can be selected, ascending
    absent         fields it lacks, by their names in the document: of the control registers, TYPE, MISP
    exponent_bits  bits of CCE there are, 0 to 4; None: no cycle counts
    modes          the hart's privilege modes
    """

    version: str = "1.0"
    depths: tuple[int, ...] = DEPTHS
    absent: frozenset[str] = frozenset({"MISP"})
    exponent_bits: int | None = max(EXPONENT_BITS)
    modes: frozenset[Mode] = frozenset({Mode.M, Mode.U})

    def __post_init__(self) -> None:
        """Raises CtrNotBuildable."""
        if self.version not in VERSIONS:
            raise CtrNotBuildable(f"there is no version {self.version}: it is {' or '.join(VERSIONS)}")
        if self.exponent_bits not in (None, *EXPONENT_BITS):
            raise CtrNotBuildable(f"CCE has {EXPONENT_BITS[0]} to {EXPONENT_BITS[-1]} bits, not {self.exponent_bits}")
        self._check_depths()
        self._check_fields()

    @property
    def registers(self) -> CtrVersion:
        return VERSIONS[self.version]

    @property
    def virtual(self) -> bool:
        """There is a vsctrctl, or vsctrcontrol."""
        return Mode.VS in self.modes

    @property
    def fields(self) -> frozenset[str]:
        """Fields the control register has."""
        return frozenset(self._known - self.absent)

    @property
    def optional(self) -> frozenset[str]:
        """Fields that `absent` may name."""
        return frozenset(self._known - _REQUIRED[self.version] | _ENTRY_FIELDS)

    @property
    def _known(self) -> set[str]:
        known = set(self.registers.machine.control.csr.by_name) - _NEVER
        return known if Mode.S in self.modes else known - _WITH_S_MODE[self.version]

    def _check_depths(self) -> None:
        if not self.depths or self.depths != tuple(depth for depth in DEPTHS if depth in self.depths):
            raise CtrNotBuildable(f"depths are some of {', '.join(map(str, DEPTHS))}, ascending")
        first = DEPTHS.index(self.depths[0])
        if self.registers.depth is None and self.depths != DEPTHS[first : first + len(self.depths)]:
            raise CtrNotBuildable(f"the depths of version {self.version} are consecutive")

    def _check_fields(self) -> None:
        if odd := sorted(self.absent - self.optional):
            raise CtrNotBuildable(f"{odd[0]} is none of the fields it may lack: {', '.join(sorted(self.optional))}")
        version = self.registers
        external = {version.external_enable, *version.machine.control.external.values()} & self._known
        if self.absent & external and not external <= self.absent:
            raise CtrNotBuildable(f"{', '.join(sorted(filter(None, external)))} are there together or not at all")
