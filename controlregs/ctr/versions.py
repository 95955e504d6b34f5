"""The differences between the versions of Control Transfer Records, as data: the role of each CSR, and its fields.

Ref: RISC-V Control Transfer Records 1.0, ratified 2024-11-22; draft 0.1.4, 2023-09-15
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from rvtrace_gdb.controlregs.ctr import entries, registers_0_1_4, registers_1_0
from rvtrace_gdb.controlregs.ctr.entries import TransferType
from rvtrace_gdb.controlregs.fields import Csr

RV32 = 32


@dataclass(frozen=True, eq=False)
class Indirect:
    """The CSR that selects an entry, and the alias CSRs that then show it."""

    select: Csr
    source: Csr
    target: Csr
    data: Csr

    @property
    def entry(self) -> tuple[Csr, Csr, Csr]:
        return self.source, self.target, self.data


@dataclass(frozen=True, eq=False)
class Control:
    """A control register with the role of each field. *high*: bits 63:32 on RV32, None where those are not accessible.

    modes     "m", "s", "u" or "vs", "vu": the field that enables recording there
    external  "m", "s" or "vs": the field that lets traps into that mode be recorded although the mode is not
    """

    csr: Csr
    high: Csr | None
    modes: Mapping[str, str]
    external: Mapping[str, str]

    @property
    def number(self) -> int:
        return self.csr.number


@dataclass(frozen=True, eq=False)
class Level:
    """The CTR registers of one privilege level."""

    control: Control
    status: Csr
    indirect: Indirect


@dataclass(frozen=True, eq=False)
class CtrVersion:
    """The registers of one version of CTR.

    machine, supervisor  the registers of M mode and, where those are closed, of S mode
    virtual              the control register in use while V=1
    depth                CSR with DEPTH; None: it is in the control register
    depth_codes          entries -> DEPTH
    filters              what is not recorded when the field is 1; NOT_TAKEN_BRANCH: what is recorded only then
    external_enable      field without which those of external_traps have no effect, None where there is none
    external_traps       (source, target) -> the modes whose field for external traps must be 1 for it to be recorded
    clear                field that clears all entries and the status
    wrap                 field of the status that tells that the array has been full
    stateen_bit          number of the bit CTR in mstateen0 and hstateen0
    """

    key: str
    document: str
    machine: Level
    supervisor: Level
    virtual: Control
    depth: Csr | None
    depth_codes: Mapping[int, IntEnum]
    filters: Mapping[TransferType, str]
    external_enable: str | None
    external_traps: Mapping[tuple[str, str], frozenset[str]]
    clear: str | None
    wrap: str | None
    stateen_bit: int

    @property
    def levels(self) -> tuple[Level, Level]:
        return self.machine, self.supervisor

    @property
    def csrs(self) -> tuple[Csr, ...]:
        """All CSRs that are used, by number."""
        found = [self.virtual.csr, self.virtual.high, self.depth]
        for level in self.levels:
            indirect = level.indirect
            found += [level.control.csr, level.control.high, level.status, indirect.select, *indirect.entry]
        return tuple(sorted({csr for csr in found if csr is not None}, key=lambda csr: csr.number))

    def entries(self, code: int) -> int | None:
        """Return the depth that a DEPTH code stands for; None for a reserved one."""
        return next((entries for entries, known in self.depth_codes.items() if known == code), None)


def _codes(codes: type[IntEnum]) -> dict[int, IntEnum]:
    return dict(zip(entries.DEPTHS, codes, strict=True))


V_1_0 = CtrVersion(
    key="1.0",
    document="RISC-V Control Transfer Records 1.0, ratified 2024-11-22",
    machine=Level(
        Control(registers_1_0.MCTRCTL, None, {"m": "M", "s": "S", "u": "U"}, {"m": "MTE", "s": "STE"}),
        registers_1_0.SCTRSTATUS,
        Indirect(*entries.SUPERVISOR),  # M mode has no alias CSRs of its own for the entries
    ),
    supervisor=Level(
        Control(registers_1_0.SCTRCTL, None, {"s": "S", "u": "U"}, {"s": "STE"}),
        registers_1_0.SCTRSTATUS,
        Indirect(*entries.SUPERVISOR),
    ),
    virtual=Control(registers_1_0.VSCTRCTL, None, {"vs": "S", "vu": "U"}, {"vs": "STE"}),
    depth=registers_1_0.SCTRDEPTH,
    depth_codes=_codes(registers_1_0.Depth),
    filters=registers_1_0.FILTERS,
    external_enable=None,
    external_traps=registers_1_0.EXTERNAL_TRAPS,
    clear=None,  # an instruction, SCTRCLR; a debugger writes zeros
    wrap=None,
    stateen_bit=registers_1_0.STATEEN_BIT,
)
V_0_1_4 = CtrVersion(
    key="0.1.4",
    document="RISC-V Control Transfer Records, draft 0.1.4, 2023-09-15",
    machine=Level(
        Control(
            registers_0_1_4.MCTRCONTROL,
            registers_0_1_4.MCTRCONTROLH,
            {"m": "M", "s": "S", "u": "U"},
            {"m": "MTE", "s": "STE"},
        ),
        registers_0_1_4.MCTRSTATUS,
        Indirect(*entries.MACHINE),
    ),
    supervisor=Level(
        Control(registers_0_1_4.SCTRCONTROL, registers_0_1_4.SCTRCONTROLH, {"s": "S", "u": "U"}, {"s": "STE"}),
        registers_0_1_4.SCTRSTATUS,
        Indirect(*entries.SUPERVISOR),
    ),
    virtual=Control(
        registers_0_1_4.VSCTRCONTROL, registers_0_1_4.VSCTRCONTROLH, {"vs": "VS", "vu": "VU"}, {"vs": "VSTE"}
    ),
    depth=None,
    depth_codes=_codes(registers_0_1_4.DraftDepth),
    filters=registers_0_1_4.FILTERS,
    external_enable="ETEN",
    external_traps=registers_0_1_4.EXTERNAL_TRAPS,
    clear="CLR",
    wrap="WRAP",
    stateen_bit=registers_0_1_4.STATEEN_BIT,
)
VERSIONS: dict[str, CtrVersion] = {version.key: version for version in (V_1_0, V_0_1_4)}  # in the order they are tried
