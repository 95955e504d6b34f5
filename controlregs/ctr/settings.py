"""A user's request to Control Transfer Records, the hart's registers as read back, and what these mean.

`CtrRegisterValues` holds register values; `settings` returns their meaning independently of the version.
"""

from dataclasses import dataclass
from typing import ClassVar

from rvtrace_gdb.controlregs.ctr.entries import RECORDABLE, TransferType
from rvtrace_gdb.controlregs.ctr.versions import VERSIONS, Control, CtrVersion


@dataclass(frozen=True)
class CtrRequest:
    """The settings that a user asks for. None stands for what suits the hardware best.

    modes     of "m", "s", "u", "vs", "vu"; None: all that the hart has
    inhibit   kinds of transfers that are not to be recorded
    not_taken also record branches that are not taken
    depth     entries; None: as many as possible
    ras       return address stack emulation
    external  of "m", "s", "vs": record traps into these modes although the modes themselves are not recorded
    version   a key of `versions.VERSIONS`; None: the one that the hart has
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


@dataclass(frozen=True)
class CtrRegisterValues:
    """One hart's CTR registers when its entries were read.

    name        "ctr0", for messages
    version     "1.0" or "0.1.4", a key of `controlregs.ctr.versions.VERSIONS`
    xlen        width of the CSRs in bits
    depth       number of entries
    control     mctrctl (1.0) or mctrcontrol (0.1.4), 64 bits; sctr*, without what that hides, where M mode is closed
    vs_control  vsctrctl or vsctrcontrol; 0 without the H extension
    status      sctrstatus, or mctrstatus
    pc          the hart's pc, None where it is not known
    privilege   its mode (bits 1:0; bit 2: V), None where it is not known
    misa        misa, which tells the modes the hart has; None where it is not known
    begin       where the hart was when its entries were empty and recording began; None where it is not known
    """

    format: ClassVar = "ctr"

    name: str
    version: str
    xlen: int
    depth: int
    control: int
    vs_control: int
    status: int
    pc: int | None = None
    privilege: int | None = None
    misa: int | None = None
    begin: int | None = None


VIRTUALIZED = 1 << 2  # of the privilege
MODES = {0: "u", 1: "s", 3: "m", 4: "vu", 5: "vs"}
MISA_LETTERS = {"S": ("s",), "U": ("u",), "H": ("vs", "vu")}
RAS_KINDS = frozenset({TransferType.INDIRECT_CALL, TransferType.DIRECT_CALL, TransferType.COROUTINE_SWAP})


@dataclass(frozen=True)
class CtrSettings:
    """The meaning of the registers. Where V=1, it is that of the guest's control register, except for *modes* and
    *external*, which combine both.

    modes             of "m", "s", "u", "vs", "vu": where transfers are recorded
    kinds             transfers that are recorded: none where no mode is enabled, however older ones were recorded
    inhibited         those that the filters leave out, whether they count (RAS emulation ignores them) or not
    external          of "m", "s", "vs": modes into which traps are recorded though the mode itself is not
    wrapped           the array has been full; None where the version does not report it
    custom            1.0: custom extensions, 0 is the standard
    recording_at_end  transfers were recorded in the mode the hart was in when the registers were read
    hidden            the hart may have executed code of which there is no record
    """

    modes: frozenset[str]
    kinds: frozenset[TransferType]
    inhibited: frozenset[TransferType]
    not_taken: bool
    ras: bool
    freeze_breakpoint: bool
    freeze_lcofi: bool
    external: frozenset[str]
    frozen: bool
    write_pointer: int
    wrapped: bool | None
    custom: int
    recording_at_end: bool
    hidden: bool


def settings(in_force: CtrRegisterValues) -> CtrSettings:
    version = VERSIONS[in_force.version]
    host, guest = (version.machine.control, in_force.control), (version.virtual, in_force.vs_control)
    control, value = guest if in_force.privilege is not None and in_force.privilege & VIRTUALIZED else host
    fields = control.csr.unpack(value)
    status = version.machine.status.unpack(in_force.status)
    modes = _recorded_modes(*host, "modes") | _recorded_modes(*guest, "modes")
    inhibited = frozenset(kind for kind, name in version.filters.items() if fields[name]) - {
        TransferType.NOT_TAKEN_BRANCH
    }
    not_taken = bool(fields[version.filters[TransferType.NOT_TAKEN_BRANCH]])
    frozen = bool(status["FROZEN"])
    return CtrSettings(
        modes=modes,
        kinds=_kinds(modes, bool(fields["RASEMU"]), inhibited, not_taken),
        inhibited=inhibited,
        not_taken=not_taken,
        ras=bool(fields["RASEMU"]),
        freeze_breakpoint=bool(fields["BPFRZ"]),
        freeze_lcofi=bool(fields["LCOFIFRZ"]),
        external=_external(version, *host) | _external(version, *guest),
        frozen=frozen,
        write_pointer=status["WRPTR"],
        wrapped=None if version.wrap is None else bool(status[version.wrap]),
        custom=fields.get("Custom", 0),
        recording_at_end=not frozen and in_force.privilege is not None and MODES.get(in_force.privilege) in modes,
        hidden=frozen or _may_freeze(*host) or _may_freeze(*guest) or not modes_of(in_force.misa) <= modes,
    )


def modes_of(misa: int | None) -> frozenset[str]:
    """Return the modes a hart has; M, S and U where misa does not tell (it may also read 0)."""
    if not misa:
        return frozenset({"m", "s", "u"})
    below = {mode for letter, modes in MISA_LETTERS.items() if misa >> ord(letter) - ord("A") & 1 for mode in modes}
    return frozenset({"m"} | below)


def _kinds(
    modes: frozenset[str], ras: bool, inhibited: frozenset[TransferType], not_taken: bool
) -> frozenset[TransferType]:
    if not modes or ras:
        return RAS_KINDS if modes else frozenset()
    return frozenset(RECORDABLE) - inhibited - (set() if not_taken else {TransferType.NOT_TAKEN_BRANCH})


def _may_freeze(control: Control, value: int) -> bool:
    return any(control.csr.get(value, field) for field in ("BPFRZ", "LCOFIFRZ"))


def _recorded_modes(control: Control, value: int, kind: str) -> frozenset[str]:
    """Return the modes whose field is 1."""
    fields = control.modes if kind == "modes" else control.external
    return frozenset(mode for mode, field in fields.items() if control.csr.get(value, field))


def _external(version: CtrVersion, control: Control, value: int) -> frozenset[str]:
    enable = version.external_enable
    if enable is not None and not control.csr.get(value, enable):
        return frozenset()
    return _recorded_modes(control, value, "external")
