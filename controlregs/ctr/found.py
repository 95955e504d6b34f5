"""The CTR set-up somebody else had, to be put back when this one ends."""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.ctr.hart import Hart
from rvtrace_gdb.controlregs.ctr.versions import Control


@dataclass(frozen=True)
class Found:
    """Register values of one hart.

    version     key of `versions.VERSIONS`
    machine     *control* is M mode's register; else S mode's, which lacks M and MTE
    vs_control  None without the H extension
    depth       sctrdepth; None in versions that have it in *control*
    frozen      the FROZEN bit of the status
    """

    version: str
    machine: bool
    control: int
    vs_control: int | None
    depth: int | None
    frozen: bool


def snapshot(hart: Hart) -> Found:
    version, level = hart.version, hart.level
    return Found(
        version=version.key,
        machine=hart.machine,
        control=hart.read_control(level.control),
        vs_control=hart.virtual(),
        depth=None if version.depth is None else hart.read(version.depth),
        frozen=bool(level.status.get(hart.read(level.status), "FROZEN")),
    )


def put_back(hart: Hart, found: Found) -> tuple[str, ...]:
    """Everything as it was; recording is off until the control register is written, which is last.

    Returns lines on what the user should know. Raises RegisterRefused, WriteIneffective.
    """
    version, level = hart.version, hart.level
    disable(hart)
    if version.depth is not None and found.depth is not None:
        hart.write(version.depth, found.depth, version.depth.mask("DEPTH"))
    freeze(hart, found.frozen)
    if found.vs_control is not None:
        hart.write_control(version.virtual, found.vs_control, _settable(hart, version.virtual))
    hart.write_control(level.control, found.control, _settable(hart, level.control))
    return _remarks(hart, found)


def _remarks(hart: Hart, found: Found) -> tuple[str, ...]:
    control, notes = hart.level.control, []
    if found.machine and not hart.machine:
        machine = hart.version.machine.control.csr
        notes.append(f"{machine.name} is closed now: what it has and {control.csr.name} lacks was not put back")
    if any(control.csr.get(found.control, field) for field in control.modes.values()):
        notes.append(f"{control.csr.name} is {found.control:#x} again, as it was found: recording goes on with that")
    return tuple(notes)


def disable(hart: Hart) -> None:
    """Nothing is recorded from now on; all else stays. Raises WriteIneffective."""
    controls = [hart.level.control]
    if hart.virtual() is not None:
        controls.append(hart.version.virtual)
    for control in controls:
        value = hart.read_control(control)
        modes = tuple(control.modes.values())
        if value & control.csr.mask(*modes):
            hart.write_control(control, value & ~control.csr.mask(*modes), modes)


def freeze(hart: Hart, frozen: bool) -> None:
    """Make FROZEN so; the other bits of the status, known or not, stay. Raises WriteIneffective."""
    status = hart.level.status
    value = hart.read(status)
    if bool(status.get(value, "FROZEN")) != frozen:
        hart.write(status, status.put(value, "FROZEN", int(frozen)), status.mask("FROZEN"))


def _settable(hart: Hart, control: Control) -> tuple[str, ...]:
    """The named fields that keep what is written."""
    actions = (hart.version.clear, "DEPTH" if control is hart.version.virtual else None)
    return tuple(name for name in control.csr.by_name if name not in actions)
