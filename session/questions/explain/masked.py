"""Who switched interrupts off: by the instructions that write the CSRs which enable them.

Source: RISC-V Instruction Set Manual II (20240411), "Privilege and Global Interrupt-Enable Stack in mstatus register",
"Supervisor Status (sstatus) Register".
"""

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.csrs import CSRS
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.decode.semantics.encodings import Operation
from rvtrace_gdb.session.questions.explain.code import CodeRole
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces

_SIE, _MIE = 1 << 1, 1 << 3
_ENABLES = {CSRS["mstatus"]: _SIE | _MIE, CSRS["sstatus"]: _SIE}
"""The bits of CSRs without which no interrupt is taken."""
_TRIES_MOST = 64
_RETURNS_WITHIN = 8


def masked_since(evidence: Evidence, before: int) -> int | None:
    """Return the position of the instruction that switched interrupts off, if they certainly were off before a
    position; None: they were not, or that is not known.
    """
    writers = [pc for pc in evidence.executed if _writes(evidence, pc)]
    returns = [pc for pc in evidence.executed if evidence.itype(pc) is IType.TRAP_RETURN]
    at = evidence.last_execution(writers, before) if writers else None
    for _ in range(_TRIES_MOST):
        if at is None:
            return None
        switched = _switched(evidence, at)
        if switched is not None:
            break
        at = evidence.last_execution(writers, at)
    else:
        return None
    if switched or any(at < it.position < before for it in evidence.trap_events):
        return None
    returned = evidence.last_execution(returns, before) if returns else None
    return None if returned is not None and returned > at else at


def masked_text(evidence: Evidence, places: ProgramPlaces, position: int) -> str:
    """Return who switched interrupts off at a position, as a sentence."""
    place = places.place_at(position)
    at = "" if place is None or not place.line else f" {place.line}"
    by = places.function_name(evidence.history.pc(position))
    caller = _caller(evidence, position)
    called_by = "" if caller is None else f", called by {places.function_name(evidence.history.pc(caller))}"
    return f"Interrupts are off since #{history_number(position)} {by}{at}{called_by}."


def masking_function(evidence: Evidence, position: int) -> int:
    """Return an address in the function that was to switch interrupts on again: that in which they are switched off,
    its caller where it does nothing else.
    """
    pcs = evidence.history.pcs(position, min(position + _RETURNS_WITHIN, evidence.part.stop))
    caller = _caller(evidence, position)
    returns = any(evidence.itype(pc) is IType.RETURN for pc in pcs)
    return evidence.history.pc(position if caller is None or not returns else caller)


def _caller(evidence: Evidence, position: int) -> int | None:
    return next((it.call for it in evidence.frames(position, 2) if it.call is not None), None)


def _writes(evidence: Evidence, pc: int) -> bool:
    if evidence.code.effect(pc).role is not CodeRole.CSR:
        return False
    op = evidence.code.operation(pc)
    return op.imm in _ENABLES and (op.rs1 != 0 or op.name.startswith("csrrw"))


def _switched(evidence: Evidence, position: int) -> bool | None:
    """Return whether an instruction switched interrupts on; None: neither on nor off, or that is not known."""
    op = evidence.code.operation(evidence.history.pc(position))
    value = _operand(evidence, position, op)
    if value is None:
        return True  # perhaps
    bits = value & _ENABLES[op.imm]
    if op.name.startswith("csrrw"):
        return bool(bits)
    return op.name.startswith("csrrs") if bits else None


def _operand(evidence: Evidence, position: int, op: Operation) -> int | None:
    return op.rs1 if op.name.endswith("i") else evidence.register(position, op.rs1)
