"""Starting, stopping and reading Control Transfer Records of a hart that stands still.

Every write is read back, and what is reported is what was read back. Nothing but what a procedure is for is changed:
selects and `priv` are put back even when it fails, and reading writes no control register, which would reset the cycle
counter.

Ref: RISC-V Control Transfer Records 1.0, ratified 2024-11-22; draft 0.1.4, 2023-09-15
"""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.csr_access import CsrAccess
from rvtrace_gdb.controlregs.ctr import wishes
from rvtrace_gdb.controlregs.ctr.array import clear_entries, read_entries, recorded
from rvtrace_gdb.controlregs.ctr.depth import set_depth
from rvtrace_gdb.controlregs.ctr.entries import Entry
from rvtrace_gdb.controlregs.ctr.errors import NotRestored
from rvtrace_gdb.controlregs.ctr.found import Found, disable, freeze, put_back, snapshot
from rvtrace_gdb.controlregs.ctr.hart import Hart
from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.controlregs.ctr.opened import detect as detect
from rvtrace_gdb.controlregs.ctr.opened import opened
from rvtrace_gdb.controlregs.ctr.request import CtrRequest
from rvtrace_gdb.controlregs.ctr.versions import Control, CtrVersion
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent


@dataclass(frozen=True)
class Started:
    """What the hart does since `start`. *found*: what it did before. *notes*: a line per wish that was not granted."""

    in_force: CtrInForce
    found: Found
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CtrStatus:
    """*recorded*: valid entries there are."""

    in_force: CtrInForce
    recorded: int


def start(
    access: CsrAccess,
    version: CtrVersion,
    request: CtrRequest,
    name: str,
    found: Found | None = None,
    progress: Progress = silent,
) -> Started:
    """Clear the array and record what *request* says from now on.

    *found*: what a `start` before this one found, to be kept when recording is started again. If this fails, everything
    but the entries is as it was. Raises DepthRefused, NothingRecorded, and as `read`.
    """
    with opened(access, version) as hart:
        before = snapshot(hart)
        others = [] if found else wishes.others(hart, before.control)
        try:
            notes = others + _start(hart, request, progress)
            in_force = hart.in_force(name)
        except BaseException as error:
            _undo(hart, before, error)
            raise
    return Started(in_force, found or before, tuple(notes))


def _start(hart: Hart, request: CtrRequest, progress: Progress) -> list[str]:
    """In this order: recording off and all wishes of others gone, depth, entries, status, control."""
    level, virtual = hart.level, hart.version.virtual
    guest = hart.virtual() is not None
    disable(hart)
    for control in (level.control, *([virtual] if guest else [])):
        _reset(hart, control)
    depth = set_depth(hart, request.depth)
    _clear(hart, depth, progress)
    freeze(hart, False)
    notes = wishes.missing_modes(hart, request, guest)
    vs_control, vs_lacking = wishes.apply(hart, virtual, request) if guest else (0, [])
    value, lacking = wishes.apply(hart, level.control, request)
    wishes.must_record(hart, value, vs_control)
    notes += wishes.not_granted(hart, level.control, lacking)
    notes += wishes.not_granted(hart, virtual, wishes.guest_only(hart, vs_lacking, vs_control, lacking))
    return notes + wishes.remarks(hart, request, value, vs_control)


def _reset(hart: Hart, control: Control) -> None:
    """A control register without any wish: shows whether it can be written at all."""
    checked = tuple(field for field in control.csr.by_name if field not in ("DEPTH", hart.version.clear))
    hart.write_control(control, wishes.kept(hart, control), checked)


def _undo(hart: Hart, before: Found, error: BaseException) -> None:
    try:
        put_back(hart, before)
    except RvtraceError as second:
        raise NotRestored(hart.level.control.csr, before.control, second, error) from error


def stop(access: CsrAccess, version: CtrVersion, found: Found | None) -> tuple[str, ...]:
    """Put controls, depth and FROZEN back as `start` found them; with None only switch recording off.

    Entries beyond the depth that was found can no longer be read then: read them before. Returns lines on what the user
    should know. Raises as `read`.
    """
    with opened(access, version) as hart:
        if found is not None:
            return put_back(hart, found)
        disable(hart)
        return ()


def clear(access: CsrAccess, version: CtrVersion, progress: Progress = silent) -> None:
    """Zero all entries and the cycle counter; in 0.1.4 the status, too. Raises as `read`."""
    with opened(access, version) as hart:
        _clear(hart, hart.depth(), progress)
        if version.clear is None:  # a write of the control register resets the counter, as SCTRCLR does
            control = hart.level.control
            hart.write_control(control, hart.read_control(control))


def _clear(hart: Hart, depth: int, progress: Progress) -> None:
    """1.0 has an instruction for it, which a debugger has no way to run without disturbing the program: write zeros."""
    control = hart.level.control
    if hart.version.clear is not None:
        value = control.csr.put(hart.read_control(control), hart.version.clear, 1)
        hart.write_control(control, value, tuple(f for f in control.csr.by_name if f != hart.version.clear))
    clear_entries(hart, depth, progress)


def status(access: CsrAccess, version: CtrVersion, name: str) -> CtrStatus:
    """A look that changes nothing. Raises as `read`."""
    with opened(access, version) as hart:
        in_force = hart.in_force(name)
        return CtrStatus(in_force, recorded(hart, in_force.depth))


def moved(access: CsrAccess, version: CtrVersion, since: CtrInForce) -> bool:
    """Whether the hart is seen to have run, or to have been reset, since *since* was read: in one look, as far as its
    present mode shows it. Raises HartRuns.
    """
    answers = access.run([("pc", None), (version.machine.status.number, None)])
    seen = zip(answers, (since.pc, since.status), strict=False)
    return any(isinstance(answer, int) and answer != value for answer, value in seen if value is not None)


def read(
    access: CsrAccess, version: CtrVersion, name: str, progress: Progress = silent
) -> tuple[CtrInForce, list[Entry]]:
    """How transfers are recorded, and the valid entries, youngest first.

    Raises RegisterRefused, WriteIneffective, StaleEntries, CtrForbidden, ReservedDepth, NotRestored, HartRuns.
    """
    with opened(access, version) as hart:
        in_force = hart.in_force(name)
        return in_force, read_entries(hart, in_force.depth, progress)
