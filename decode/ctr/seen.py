"""What a record says of the flow, held against the instruction it is about."""

from typing import NamedTuple

from rvtrace_gdb.decode.ctr.code import Code, Transfer
from rvtrace_gdb.decode.ctr.record import Record
from rvtrace_gdb.decode.ctr.wording import TYPE_NAMES
from rvtrace_gdb.decode.events import TrapKind
from rvtrace_gdb.decode.instructions import IType

_TRAPS = {
    IType.EXCEPTION: TrapKind.EXCEPTION,
    IType.INTERRUPT: TrapKind.INTERRUPT,
    IType.NONE: TrapKind.UNKNOWN,
}
_LEAVES_MODE = frozenset(_TRAPS) | {IType.TRAP_RETURN}
_ALIKE = {
    IType.TAKEN: IType.NOT_TAKEN,
    IType.OTHER_UNINFERABLE: IType.UNINFERABLE_TAIL_CALL,
    IType.OTHER_INFERABLE: IType.INFERABLE_TAIL_CALL,
}
"""Types that are one kind of instruction, or that harts need not tell apart."""


class Seen(NamedTuple):
    """A record, understood.

    source, target  as in the record; None: in a mode that is not recorded
    retired         the instruction at *source* did
    trap            which trap it is, None for none
    wrong           why record and program contradict each other at *source*, "" where they do not
    """

    source: int | None
    target: int | None
    retired: bool
    trap: TrapKind | None = None
    wrong: str = ""


def seen(record: Record, code: Code) -> Seen:
    """What *record* says of the program. Addresses are those of a hart, whatever else the record holds."""
    source = None if record.source is None else record.source & code.mask
    target = None if record.target is None else record.target & code.mask
    if record.kind not in _LEAVES_MODE:  # stays in its mode: a 0 is an address
        source, target = source or 0, target or 0
    if source is None:
        return Seen(None, target, False, _TRAPS.get(record.kind, _TRAPS[IType.NONE]))
    if record.kind in (IType.EXCEPTION, IType.INTERRUPT):
        return Seen(source, target, False, _TRAPS[record.kind])
    step = code.at(source)
    if record.kind is IType.NONE:
        return _untyped(source, target, step)
    if isinstance(step, str):
        return Seen(source, target, True)
    if record.kind is IType.NOT_TAKEN and step.is_branch:
        target = step.fall  # what ctrtarget holds was not said before 2025
    return Seen(source, target, True, wrong=_contradiction(record.kind, target, step))


def _contradiction(kind: IType, target: int | None, step: Transfer) -> str:
    """Why a record of this *kind* cannot be of an instruction, "" when it can."""
    if step.instruction.custom:
        return ""
    if _ALIKE.get(kind, kind) is not _ALIKE.get(step.kind, step.kind):
        there = TYPE_NAMES[step.kind] if step.kind not in (IType.NONE, IType.EXCEPTION, IType.NOT_TAKEN) else ""
        there = "branch" if step.is_branch else there or "plain instruction"
        return f"the record says {TYPE_NAMES[kind]}, and there is a {there}"
    leads = step.target if step.is_direct or kind is IType.TAKEN else None
    if leads is not None and leads != target:
        return f"the {TYPE_NAMES[kind]} there leads to 0x{leads:x}, not to 0x{target or 0:x}"
    return ""


def _untyped(source: int, target: int | None, step: Transfer | str) -> Seen:
    """A hart that does not say TYPE: the instruction tells. Of an indirect jump it is taken that it jumped."""
    if isinstance(step, str):
        return Seen(source, target, False)
    jumps = step.instruction.is_uninferable and (target is not None or step.kind is IType.TRAP_RETURN)
    leads = step.target is not None and step.target == target
    passes = step.is_branch and step.fall == target
    if jumps or leads or passes or step.instruction.custom:
        return Seen(source, target, True)
    return Seen(source, target, False, _TRAPS[IType.EXCEPTION if step.kind is IType.EXCEPTION else IType.NONE])
