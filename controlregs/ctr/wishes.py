"""The control registers of a request, and what of it a hart did not grant.

A field that is not implemented reads 0, an implemented one takes what is written (1.0, `mctrctl`; draft 0.1.4, 2.1): so
a 1 that becomes 0 is a wish that is not granted, and a 0 that becomes 1 a write that did not happen.
"""

from rvtrace_gdb.controlregs.ctr.errors import NothingRecorded, WriteIneffective
from rvtrace_gdb.controlregs.ctr.hart import Hart
from rvtrace_gdb.controlregs.ctr.request import CtrRequest
from rvtrace_gdb.controlregs.ctr.transfers import FILTER_LSB, TransferType
from rvtrace_gdb.controlregs.ctr.versions import Control, CtrVersion

ALWAYS_THERE = "m"  # the mode no hart lacks; its bit is not optional either


def fields(version: CtrVersion, control: Control, request: CtrRequest) -> dict[str, bool]:
    """What the request makes of each field of a control register, DEPTH and what acts when it is written aside."""
    found = {field: request.modes is None or mode in request.modes for mode, field in control.modes.items()}
    found |= {field: mode in request.external for mode, field in control.external.items()}
    if version.external_enable is not None:
        found[version.external_enable] = bool(request.external)
    found |= {"RASEMU": request.ras, "BPFRZ": request.freeze_breakpoint, "LCOFIFRZ": request.freeze_lcofi}
    for kind, field in version.filters.items():
        found[field] = request.not_taken if kind is TransferType.NOT_TAKEN_BRANCH else kind in request.inhibit
    return found


def apply(hart: Hart, control: Control, request: CtrRequest) -> tuple[int, list[str]]:
    """Write a control register: what it then reads, and the fields of wishes that it did not grant.

    Raises WriteIneffective.
    """
    wanted = fields(hart.version, control, request)
    value = kept(hart, control) | control.csr.pack(**{field: int(on) for field, on in wanted.items()})
    value &= (1 << hart.control_bits) - 1
    got = hart.write_control(control, value, ())
    always = control.csr.mask(*(field for mode, field in control.modes.items() if mode == ALWAYS_THERE))
    if got & ~value & control.csr.mask(*wanted) or value & ~got & always:
        raise WriteIneffective(hart.way, control.csr, value, got)
    lacking = [field for field, on in wanted.items() if on and not control.csr.get(got, field)]
    if request.modes is None:  # all there are: that some are not there is as asked
        lacking = [field for field in lacking if field not in control.modes.values()]
    return got, lacking


def kept(hart: Hart, control: Control) -> int:
    """What is in a control register beside wishes: the depth, if it is there, and bits that mean nothing yet (WPRI)."""
    named = control.csr.mask(*(field for field in control.csr.by_name if field != "DEPTH"))
    return hart.read_control(control) & ~named


def guest_only(hart: Hart, lacking: list[str], value: int, host_lacking: list[str]) -> list[str]:
    """Of what the guest's control register lacks, what is worth a line: it should have what the host's has."""
    guest = hart.version.virtual
    own = set(guest.modes.values())
    if value & guest.csr.mask(*own):
        own |= set(guest.external.values()) | set(lacking) - set(host_lacking)
    return [field for field in lacking if field in own]


def not_granted(hart: Hart, control: Control, lacking: list[str]) -> list[str]:
    """A line for each, but one for all filters."""
    csr = control.csr
    by_filter = set(hart.version.filters.values())
    notes = [f"this hart has no {csr.name}.{f}: it cannot {csr.by_name[f].doc}" for f in lacking if f not in by_filter]
    filters = [field for field in lacking if field in by_filter]
    if filters:
        reason = "this hart has no" if hart.control_bits > FILTER_LSB else f"version {hart.version.key} has on RV32 no"
        what = ", ".join(csr.by_name[field].doc for field in filters)
        notes.append(f"{reason} {csr.name}.{', '.join(filters)}: it cannot {what}")
    return notes


def others(hart: Hart, control: int) -> list[str]:
    """*control*, as it was found: somebody else may be using it."""
    csr = hart.level.control.csr
    if not any(csr.get(control, field) for field in hart.level.control.modes.values()):
        return []
    return [f"{csr.name} was {control:#x}, it recorded already: those records are gone; `stop` puts the register back"]


def missing_modes(hart: Hart, request: CtrRequest, virtual: bool) -> list[str]:
    """Modes that were asked for and no register that can be reached has. *virtual*: there is a vs control register."""
    version, notes = hart.version, []
    asked = (request.modes or frozenset()) | request.external
    if not hart.machine and "m" in asked:
        machine, here = version.machine.control.csr, hart.level.control.csr
        notes.append(f"{machine.name} is closed, and {here.name} does not reach M mode: it stays as it is there")
    if not virtual and asked & (set(version.virtual.modes) | set(version.virtual.external)):
        notes.append(f"this hart has no {version.virtual.csr.name}: it has no VS and VU mode")
    return notes


def remarks(hart: Hart, request: CtrRequest, control: int, virtual: int) -> list[str]:
    """What is granted, and yet not what one might expect."""
    ras = hart.level.control.csr.get(control, "RASEMU")
    if ras and (request.inhibit or request.not_taken or request.external):
        return ["RAS emulation ignores filters and external traps: calls are recorded until they return"]
    enabled = set()
    for register, value in ((hart.level.control, control), (hart.version.virtual, virtual)):
        enabled |= {mode for mode, field in register.modes.items() if register.csr.get(value, field)}
    notes = []
    for (source, target), needed in hart.version.external_traps.items():
        missing = sorted(needed - request.external)
        if source in enabled and target in request.external - enabled and missing:
            what = " and ".join(missing)
            notes.append(f"external traps from {source} to {target} mode are recorded only with external {what}, too")
    return notes


def must_record(hart: Hart, control: int, virtual: int) -> None:
    """Raises NothingRecorded where no mode is enabled."""
    host, guest = hart.level.control, hart.version.virtual
    if not control & host.csr.mask(*host.modes.values()) and not virtual & guest.csr.mask(*guest.modes.values()):
        raise NothingRecorded(hart.way, host.csr, tuple(host.modes.values()), control)
