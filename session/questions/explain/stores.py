"""Which instruction wrote some memory last: by values where they are known, else by addresses that the code says."""

from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import X
from rvtrace_gdb.session.past.past import INSTRUCTION, NoWrite, PastWrite
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.session.questions.explain.code import Code, Role, constant_of
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.support.errors import RvtraceError

_DEPTH_MOST = 6
_STORES_MOST = 2000
"""Instructions that store whose address is looked for in the code."""


class LastStore(NamedTuple):
    """The position of the last store to some memory. *certain*: no store at an unknown address came later."""

    position: int
    certain: bool


def address_at(evidence: Evidence, position: int) -> int | None:
    """Return the address that the instruction at a position accesses: by values, else by the code that ran before."""
    effect = evidence.code.effect(evidence.history.pc(position))
    if effect.address is None:
        return None
    base = evidence.register(position, effect.address)
    if base is None:
        base = _constant(evidence, _writers(evidence), position, effect.address, _DEPTH_MOST)
    return None if base is None else base + effect.offset & (1 << evidence.code.xlen) - 1


def _writers(evidence: Evidence) -> RegisterWriters:
    return evidence.session.cached(
        RegisterWriters, evidence.history, lambda: RegisterWriters(evidence.history, evidence.program)
    )


def _constant(
    evidence: Evidence, writers: RegisterWriters, position: int, register: int, depth: int
) -> int | None:
    """Return the value of a register before a position that follows from constants in the code that wrote it."""
    if register == 0:
        return 0
    found = writers.last(position, X + register, progress=evidence.progress)
    if not depth or isinstance(found, NoWrite) or found.kind != INSTRUCTION or found.doubts:
        return None
    pc = evidence.history.pc(found.position)
    op, sources = evidence.code.operation(pc), evidence.code.effect(pc).sources
    needed = {it: _constant(evidence, writers, found.position, it, depth - 1) for it in sources}
    known = {it: value for it, value in needed.items() if value is not None}
    return constant_of(op, pc, known, evidence.code.xlen)


def last_store(evidence: Evidence, address: int, size: int, before: int) -> LastStore | None:
    """Return the last store to some memory before a position; None: there is none, as far as known."""
    if evidence.past is not None and evidence.past.has_accesses:
        try:
            found = evidence.past.memory_writer(before, address, size)
        except RvtraceError:
            found = NoWrite()
        if isinstance(found, PastWrite) and found.kind == INSTRUCTION:
            return LastStore(found.position, not found.doubts)
    return _by_code(evidence, address, size, before)


def _by_code(evidence: Evidence, address: int, size: int, before: int) -> LastStore | None:
    """Return the last execution of an instruction whose address is this one wherever it runs."""
    stores = constant_stores(evidence)
    matching = [pc for pc, (at, bytes_) in stores.items() if at < address + size and address < at + bytes_]
    position = evidence.last_execution(tuple(matching), before) if matching else None
    return None if position is None else LastStore(position, False)


class _ConstantStores(NamedTuple):
    places: dict[int, tuple[int, int]]


def constant_stores(evidence: Evidence) -> dict[int, tuple[int, int]]:
    """Return the address and the size of each instruction that ran and stores at an address that the code says."""
    return evidence.session.cached(
        _ConstantStores, evidence.history, lambda: _ConstantStores(_constant_stores(evidence))
    ).places


def _constant_stores(evidence: Evidence) -> dict[int, tuple[int, int]]:
    code, found = evidence.code, dict[int, tuple[int, int]]()
    ran = [pc for pc in sorted(evidence.executed) if code.effect(pc).role in (Role.STORE, Role.ATOMIC)]
    for pc in ran[:_STORES_MOST]:
        effect, base = code.effect(pc), _base_in_code(evidence, code, pc)
        if base is not None:
            found[pc] = base + effect.offset & (1 << code.xlen) - 1, effect.size
    return found


def _base_in_code(evidence: Evidence, code: Code, pc: int) -> int | None:
    """Return the constant with which an instruction forms its address, at its last execution."""
    register = code.effect(pc).address
    at = evidence.last_execution((pc,), evidence.part.stop)
    if at is None or register is None or register == 2:
        return None
    return _constant(evidence, _writers(evidence), at, register, _DEPTH_MOST)
