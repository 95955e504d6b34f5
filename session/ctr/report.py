"""What the session says of Control Transfer Records: lines ready to print."""

from collections.abc import Sequence

from rvtrace_gdb.controlregs.csr_access import CsrAccess
from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES
from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.controlregs.ctr.procedures import CtrStatus
from rvtrace_gdb.controlregs.ctr.settings import settings
from rvtrace_gdb.controlregs.ctr.transfers import TransferType
from rvtrace_gdb.decode.ctr.wording import TYPE_NAMES
from rvtrace_gdb.decode.instructions import IType
from rvtrace_gdb.session.captured import CapturedRecords
from rvtrace_gdb.session.ctr.items import items
from rvtrace_gdb.session.report import line
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.lines import warning

_MODES = ("m", "s", "u", "vs", "vu")
_PLURALS = {"not-taken branch": "not-taken branches", "taken branch": "taken branches"}


def target(access: CsrAccess) -> str:
    """How the hart is reached."""
    return line("target", f"CSRs by {access.name}")


def recording(how: CtrInForce) -> str:
    """E.g. "ctr0: CTR 1.0, 16 entries, M-, S- and U-mode, without direct jumps, freezes at breakpoints"."""
    return line(how.name, f"CTR {how.version}, {how.depth} entries, {_what(how)}", encoder=(how.name, "stopped"))


def held(records: CapturedRecords) -> str:
    """How many records were read."""
    return line(records.in_force.name, _filled(records), records=_counted(records))


def status(records: CapturedRecords, now: CtrStatus | RvtraceError | None) -> list[str]:
    """How a hart records *now*, None: it is not asked, *records* are all there is; else why it cannot be asked."""
    how = now.in_force if isinstance(now, CtrStatus) else records.in_force
    lines = [recording(how)]
    if isinstance(now, CtrStatus):
        state = "frozen" if settings(how).frozen else "recording"
        lines.append(line("state", _state(now), encoder=(how.name, state), records=(now.recorded, how.depth)))
    else:
        lines.append(line("read", _filled(records), records=_counted(records)))
    return [*lines, *([warning(now)] if isinstance(now, RvtraceError) else [])]


def notes(texts: Sequence[str]) -> list[str]:
    return [line("note", text) for text in texts]


def failure(error: RvtraceError | None) -> list[str]:
    """Why what was read is not all there is."""
    return [] if error is None else [warning(f"the records were not read: {error}")]


def _what(how: CtrInForce) -> str:
    found = settings(how)
    modes = [f"{mode.upper()}-mode" for mode in _MODES if mode in found.modes]
    if not modes:
        return "records nothing: no privilege mode is enabled"
    parts = [f"records {_listed(modes)}"]
    if found.ras:
        parts.append("RAS emulation (calls that have not returned)")
    else:
        parts += _filters(found.kinds)
    if found.external:
        parts.append(f"and traps into {_listed([f'{mode.upper()}-mode' for mode in sorted(found.external)])}")
    froze = [name for name, on in (("a breakpoint", found.freeze_breakpoint), ("an LCOFI", found.freeze_lcofi)) if on]
    return ", ".join([*parts, *([f"freezes at {' or '.join(froze)}"] if froze else [])])


def _filters(kinds: frozenset[TransferType]) -> list[str]:
    """What is not recorded, or is beyond the usual."""
    usual = [kind for kind in TYPE_NAMES if kind not in (IType.NONE, IType.UNINFERABLE_JUMP, IType.NOT_TAKEN)]
    missing = [_plural(kind) for kind in usual if TransferType(kind) not in kinds]
    there = [_plural(kind) for kind in usual if TransferType(kind) in kinds]
    not_taken = TransferType.NOT_TAKEN_BRANCH in kinds
    if not there:
        return ["only not-taken branches" if not_taken else "no kind of transfer"]
    more = ["not-taken branches, too"] if not_taken else []
    if not missing:
        return ["all kinds of transfers", *more]
    return [f"only {_listed(there)}" if len(there) < len(missing) else f"all but {_listed(missing)}", *more]


def _plural(kind: IType) -> str:
    name = TYPE_NAMES[kind]
    return _PLURALS.get(name, f"{name}s")


def _state(now: CtrStatus) -> str:
    found = settings(now.in_force)
    frozen = "frozen: nothing is recorded until FROZEN is cleared (`trace ctr start`)" if found.frozen else "not frozen"
    return f"{frozen}; {now.recorded} of {now.in_force.depth} entries have records, WRPTR {found.write_pointer}"


def _counted(records: CapturedRecords) -> tuple[int, int]:
    """How many entries have records, of how many."""
    return sum(item.record is not None for item in items(records.data)), records.in_force.depth


def _filled(records: CapturedRecords) -> str:
    valid, depth = _counted(records)
    there = len(records.data) // ENTRY_BYTES
    full = ", full: older ones were overwritten" if there == valid == depth else ""
    return f"{valid} of {depth} entries have records{full}"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
