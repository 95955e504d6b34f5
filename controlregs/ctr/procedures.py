"""Starting, stopping and reading Control Transfer Records of a halted hart.

Every write is read back, and the value read back is reported. A field that is not implemented reads 0, and an
implemented one takes what is written: so a 1 that becomes 0 is a setting that is not granted, and a 0 that becomes 1 is
a write that had no effect. A procedure changes nothing but its purpose: selects and `priv` are restored even when it
fails, reading writes no control register, since that would reset the cycle counter, and the set-up of another user
(`SavedSetup`) is restored when recording ends.

Ref: RISC-V Control Transfer Records 1.0, ratified 2024-11-22 (`mctrctl`, "Supervisor Control Transfer Records Depth
Register"); draft 0.1.4, 2023-09-15 (2.1 and chapter 6)
"""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.ctr.entries import FILTER_LSB, CtrEntry, TransferType
from rvtrace_gdb.controlregs.ctr.hart import CtrHart, clear_entries, count_recorded, open_hart, read_entries
from rvtrace_gdb.controlregs.ctr.hart import detect as detect
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues, CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import Control, CtrVersion
from rvtrace_gdb.controlregs.errors import DepthRefused, NothingRecorded, NotRestored, WriteIneffective
from rvtrace_gdb.controlregs.target import CsrAccess
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent


def set_depth(hart: CtrHart, depth: int | None) -> int:
    """Set the depth to *depth* entries, or with None to as many as the hart has; return the depth. Raises
    DepthRefused.

    In 0.1.4 recording must be off, since the depth is in the control register.
    """
    codes = hart.version.depth_codes
    for entries in sorted(codes, reverse=True) if depth is None else [depth]:
        if entries in codes and _take_depth(hart, codes[entries]):
            return entries
    supported = [entries for entries in codes if _take_depth(hart, codes[entries])]
    if depth is None:
        return hart.depth()  # raises, should it be reserved
    raise DepthRefused(hart.depth_register(), depth, supported)


def _take_depth(hart: CtrHart, code: int) -> bool:
    """Write this depth code and return whether the hart accepted it. An unsupported code becomes one of the hart's
    choice.
    """
    register = hart.depth_register()
    if hart.version.depth is not None:
        hart.run([(register, register.put(hart.read(register), "DEPTH", code))])
    else:
        control = hart.level.control
        hart.write_control(control, register.put(hart.read_control(control), "DEPTH", code), ())
    return register.get(hart.read(register), "DEPTH") == code


@dataclass(frozen=True)
class SavedSetup:
    """The values of one hart's registers before they were changed.

    version     key of `versions.VERSIONS`
    machine     *control* is M mode's register; else S mode's, which lacks M and MTE
    vs_control  None without the H extension
    depth       sctrdepth; None in versions that have it in *control*
    frozen      the FROZEN bit of the status register
    """

    version: str
    machine: bool
    control: int
    vs_control: int | None
    depth: int | None
    frozen: bool


def snapshot(hart: CtrHart) -> SavedSetup:
    version, level = hart.version, hart.level
    return SavedSetup(
        version=version.key,
        machine=hart.machine,
        control=hart.read_control(level.control),
        vs_control=hart.virtual(),
        depth=None if version.depth is None else hart.read(version.depth),
        frozen=bool(level.status.get(hart.read(level.status), "FROZEN")),
    )


def restore(hart: CtrHart, saved: SavedSetup) -> tuple[str, ...]:
    """Restore all registers. Recording is off until the control register is written, which is done last.

    Returns notes for the user, one line each. Raises RegisterRefused, WriteIneffective.
    """
    version, level = hart.version, hart.level
    disable(hart)
    if version.depth is not None and saved.depth is not None:
        hart.write(version.depth, saved.depth, version.depth.mask("DEPTH"))
    freeze(hart, saved.frozen)
    if saved.vs_control is not None:
        hart.write_control(version.virtual, saved.vs_control, _settable(hart, version.virtual))
    hart.write_control(level.control, saved.control, _settable(hart, level.control))
    return _put_back_remarks(hart, saved)


def _put_back_remarks(hart: CtrHart, saved: SavedSetup) -> tuple[str, ...]:
    control, notes = hart.level.control, []
    if saved.machine and not hart.machine:
        machine = hart.version.machine.control.csr
        notes.append(f"{machine.name} is no longer accessible: what {control.csr.name} lacks of it was not restored")
    if any(control.csr.get(saved.control, field) for field in control.modes.values()):
        notes.append(f"{control.csr.name} is {saved.control:#x} again, as before: recording continues with that")
    return tuple(notes)


def disable(hart: CtrHart) -> None:
    """Stop recording; all other settings stay. Raises WriteIneffective."""
    controls = [hart.level.control]
    if hart.virtual() is not None:
        controls.append(hart.version.virtual)
    for control in controls:
        value = hart.read_control(control)
        modes = tuple(control.modes.values())
        if value & control.csr.mask(*modes):
            hart.write_control(control, value & ~control.csr.mask(*modes), modes)


def freeze(hart: CtrHart, frozen: bool) -> None:
    """Set the FROZEN bit to *frozen*; the other bits of the status, known or not, stay. Raises WriteIneffective."""
    status = hart.level.status
    value = hart.read(status)
    if bool(status.get(value, "FROZEN")) != frozen:
        hart.write(status, status.put(value, "FROZEN", int(frozen)), status.mask("FROZEN"))


def _settable(hart: CtrHart, control: Control) -> tuple[str, ...]:
    """Return the named fields that keep the value written to them."""
    actions = (hart.version.clear, "DEPTH" if control is hart.version.virtual else None)
    return tuple(name for name in control.csr.by_name if name not in actions)


ALWAYS_THERE = "m"  # the mode no hart lacks; its bit is not optional either


def requested_fields(version: CtrVersion, control: Control, request: CtrRequest) -> dict[str, bool]:
    """Return the value that the request gives to each field of a control register, without DEPTH and the field that
    starts an action.
    """
    found = {field: request.modes is None or mode in request.modes for mode, field in control.modes.items()}
    found |= {field: mode in request.external for mode, field in control.external.items()}
    if version.external_enable is not None:
        found[version.external_enable] = bool(request.external)
    found |= {"RASEMU": request.ras, "BPFRZ": request.freeze_breakpoint, "LCOFIFRZ": request.freeze_lcofi}
    for kind, field in version.filters.items():
        found[field] = request.not_taken if kind is TransferType.NOT_TAKEN_BRANCH else kind in request.inhibit
    return found


def apply_request(hart: CtrHart, control: Control, request: CtrRequest) -> tuple[int, list[str]]:
    """Write a control register; return what it then reads, and the requested fields that were not granted.

    Raises WriteIneffective.
    """
    wanted = requested_fields(hart.version, control, request)
    value = preserved_bits(hart, control) | control.csr.pack(**{field: int(on) for field, on in wanted.items()})
    value &= (1 << hart.control_bits) - 1
    got = hart.write_control(control, value, ())
    always = control.csr.mask(*(field for mode, field in control.modes.items() if mode == ALWAYS_THERE))
    if got & ~value & control.csr.mask(*wanted) or value & ~got & always:
        raise WriteIneffective(hart.way, control.csr, value, got)
    lacking = [field for field, on in wanted.items() if on and not control.csr.get(got, field)]
    if request.modes is None:  # all there are: that some are not there is as asked
        lacking = [field for field in lacking if field not in control.modes.values()]
    return got, lacking


def preserved_bits(hart: CtrHart, control: Control) -> int:
    """Return the bits of a control register that no request changes: the depth, if it is there, and bits without a
    meaning yet (WPRI).
    """
    named = control.csr.mask(*(field for field in control.csr.by_name if field != "DEPTH"))
    return hart.read_control(control) & ~named


def guest_only_fields(hart: CtrHart, lacking: list[str], value: int, host_lacking: list[str]) -> list[str]:
    """Return the fields missing in the guest's control register that need a note: those that the host's register has.
    """
    guest = hart.version.virtual
    own = set(guest.modes.values())
    if value & guest.csr.mask(*own):
        own |= set(guest.external.values()) | set(lacking) - set(host_lacking)
    return [field for field in lacking if field in own]


def refusal_notes(hart: CtrHart, control: Control, lacking: list[str]) -> list[str]:
    """Return a note for each field that was not granted, but only one for all filters."""
    csr = control.csr
    by_filter = set(hart.version.filters.values())
    notes = [f"this hart has no {csr.name}.{f}: it cannot {csr.by_name[f].doc}" for f in lacking if f not in by_filter]
    filters = [field for field in lacking if field in by_filter]
    if filters:
        reason = "this hart has no" if hart.control_bits > FILTER_LSB else f"version {hart.version.key} has on RV32 no"
        what = ", ".join(csr.by_name[field].doc for field in filters)
        notes.append(f"{reason} {csr.name}.{', '.join(filters)}: it cannot {what}")
    return notes


def earlier_use_notes(hart: CtrHart, control: int) -> list[str]:
    """Return a note if the control register, whose value was *control*, seems to be in use by other software."""
    csr = hart.level.control.csr
    if not any(csr.get(control, field) for field in hart.level.control.modes.values()):
        return []
    return [f"{csr.name} was {control:#x}, recording was on: those records are lost; `stop` restores the register"]


def missing_mode_notes(hart: CtrHart, request: CtrRequest, virtual: bool) -> list[str]:
    """Return a note for requested modes that no accessible register has. *virtual*: there is a vs control register."""
    version, notes = hart.version, []
    asked = (request.modes or frozenset()) | request.external
    if not hart.machine and "m" in asked:
        machine, here = version.machine.control.csr, hart.level.control.csr
        notes.append(f"{machine.name} is closed, and {here.name} does not reach M mode: that setting stays as it is")
    if not virtual and asked & (set(version.virtual.modes) | set(version.virtual.external)):
        notes.append(f"this hart has no {version.virtual.csr.name}: it has no VS and VU mode")
    return notes


def result_notes(hart: CtrHart, request: CtrRequest, control: int, virtual: int) -> list[str]:
    """Return notes on settings that were granted and have effects that may surprise."""
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
            traps = f"external traps from {source} to {target} mode"
            notes.append(f"{traps} are recorded only together with external {what}")
    return notes


def check_recording(hart: CtrHart, control: int, virtual: int) -> None:
    """Raise NothingRecorded if no mode is enabled."""
    host, guest = hart.level.control, hart.version.virtual
    if not control & host.csr.mask(*host.modes.values()) and not virtual & guest.csr.mask(*guest.modes.values()):
        raise NothingRecorded(hart.way, host.csr, tuple(host.modes.values()), control)


@dataclass(frozen=True)
class Started:
    """The state of a hart after `start`. *saved*: its set-up before. *notes*: one line for each setting that was not
    granted.
    """

    in_force: CtrRegisterValues
    saved: SavedSetup
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CtrStatus:
    """The present settings, and the number of valid entries (*recorded*)."""

    in_force: CtrRegisterValues
    recorded: int


def start(
    access: CsrAccess,
    version: CtrVersion,
    request: CtrRequest,
    name: str,
    saved: SavedSetup | None = None,
    progress: Progress = silent,
) -> Started:
    """Clear the entries and start recording as *request* says.

    *saved*: the set-up that an earlier `start` found, to be kept when recording is started again. If this fails,
    everything but the entries is restored. Raises DepthRefused, NothingRecorded, and the errors of `read`.
    """
    with open_hart(access, version) as hart:
        before = snapshot(hart)
        others = [] if saved else earlier_use_notes(hart, before.control)
        try:
            notes = others + _start_recording(hart, request, progress)
            in_force = hart.in_force(name)
        except BaseException as error:
            _undo(hart, before, error)
            raise
    return Started(in_force, saved or before, tuple(notes))


def _start_recording(hart: CtrHart, request: CtrRequest, progress: Progress) -> list[str]:
    """Stop recording and clear all earlier settings; then set the depth, the entries, the status, and the control
    register.
    """
    level, virtual = hart.level, hart.version.virtual
    guest = hart.virtual() is not None
    disable(hart)
    for control in (level.control, *([virtual] if guest else [])):
        _clear_control(hart, control)
    depth = set_depth(hart, request.depth)
    _clear(hart, depth, progress)
    freeze(hart, False)
    notes = missing_mode_notes(hart, request, guest)
    vs_control, vs_lacking = apply_request(hart, virtual, request) if guest else (0, [])
    value, lacking = apply_request(hart, level.control, request)
    check_recording(hart, value, vs_control)
    notes += refusal_notes(hart, level.control, lacking)
    notes += refusal_notes(hart, virtual, guest_only_fields(hart, vs_lacking, vs_control, lacking))
    return notes + result_notes(hart, request, value, vs_control)


def _clear_control(hart: CtrHart, control: Control) -> None:
    """Clear all settings of a control register, which shows whether it can be written at all."""
    checked = tuple(field for field in control.csr.by_name if field not in ("DEPTH", hart.version.clear))
    hart.write_control(control, preserved_bits(hart, control), checked)


def _undo(hart: CtrHart, before: SavedSetup, error: BaseException) -> None:
    try:
        restore(hart, before)
    except RvtraceError as second:
        raise NotRestored(hart.level.control.csr, before.control, second, error) from error


def stop(access: CsrAccess, version: CtrVersion, saved: SavedSetup | None) -> tuple[str, ...]:
    """Restore control registers, depth and FROZEN to what `start` found; with None only stop recording.

    Entries beyond the restored depth cannot be read afterwards: read them before. Returns notes for the user, one line
    each. Raises the errors of `read`.
    """
    with open_hart(access, version) as hart:
        if saved is not None:
            return restore(hart, saved)
        disable(hart)
        return ()


def clear(access: CsrAccess, version: CtrVersion, progress: Progress = silent) -> None:
    """Write zeros to all entries and the cycle counter; in 0.1.4 also to the status. Raises the errors of `read`."""
    with open_hart(access, version) as hart:
        _clear(hart, hart.depth(), progress)
        if version.clear is None:  # a write of the control register resets the counter, as SCTRCLR does
            control = hart.level.control
            hart.write_control(control, hart.read_control(control))


def _clear(hart: CtrHart, depth: int, progress: Progress) -> None:
    """Write zeros: the instruction that 1.0 has for it cannot be executed by a debugger without disturbing the program.
    """
    control = hart.level.control
    if hart.version.clear is not None:
        value = control.csr.put(hart.read_control(control), hart.version.clear, 1)
        hart.write_control(control, value, tuple(f for f in control.csr.by_name if f != hart.version.clear))
    clear_entries(hart, depth, progress)


def status(access: CsrAccess, version: CtrVersion, name: str) -> CtrStatus:
    """Return the present state; nothing is changed. Raises the errors of `read`."""
    with open_hart(access, version) as hart:
        in_force = hart.in_force(name)
        return CtrStatus(in_force, count_recorded(hart, in_force.depth))


def has_run_since(access: CsrAccess, version: CtrVersion, since: CtrRegisterValues) -> bool:
    """Return whether the hart appears to have run, or to have been reset, since *since* was read. This takes one batch
    of reads and sees what the hart's present mode shows. Raises HartRuns.
    """
    answers = access.run([("pc", None), (version.machine.status.number, None)])
    seen = zip(answers, (since.pc, since.status), strict=False)
    return any(isinstance(answer, int) and answer != value for answer, value in seen if value is not None)


def read(
    access: CsrAccess, version: CtrVersion, name: str, progress: Progress = silent
) -> tuple[CtrRegisterValues, list[CtrEntry]]:
    """Return how transfers are recorded, and the valid entries, youngest first.

    Raises RegisterRefused, WriteIneffective, StaleEntries, CtrForbidden, ReservedDepth, NotRestored, HartRuns.
    """
    with open_hart(access, version) as hart:
        in_force = hart.in_force(name)
        return in_force, read_entries(hart, in_force.depth, progress)
