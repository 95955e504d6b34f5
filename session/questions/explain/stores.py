"""Which instruction wrote some memory last: by values where they are known, else by addresses that the code says."""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import X
from rvtrace_gdb.session.past.past import INSTRUCTION, NoWrite, PastWrite
from rvtrace_gdb.session.past.register_writers import RegisterWriters
from rvtrace_gdb.session.questions.explain.code import SP, CodeRole, constant_of
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.support.errors import RvtraceError

_DEPTH_MOST = 6
_STORES_MOST = 2000
"""Instructions that store whose address is looked for in the code."""
_TRIES_MOST = 500
"""Stores that are looked at, the last ones."""


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
    """Return the last store to some memory among those whose address the code that ran before them says."""
    known = _constant_stores(evidence)
    position: int | None = before
    for _ in range(_TRIES_MOST):
        position = evidence.last_execution(known, position) if known and position is not None else None
        if position is None:
            return None
        at, width = address_at(evidence, position), evidence.code.effect(evidence.history.pc(position)).size
        if at is not None and at < address + size and address < at + width:
            return LastStore(position, False)
    return None


class _ConstantStores(NamedTuple):
    """The instructions that ran and store at an address that the code says, the last time they ran at least."""

    addresses: tuple[int, ...]


def _constant_stores(evidence: Evidence) -> tuple[int, ...]:
    return evidence.session.cached(
        _ConstantStores, evidence.history, lambda: _ConstantStores(tuple(_found_stores(evidence)))
    ).addresses


def _found_stores(evidence: Evidence) -> Iterator[int]:
    code = evidence.code
    ran = [pc for pc in sorted(evidence.executed) if code.effect(pc).role in (CodeRole.STORE, CodeRole.ATOMIC)]
    for pc in ran[:_STORES_MOST]:
        register, at = code.effect(pc).address, evidence.last_execution((pc,), evidence.part.stop)
        if at is None or register in (None, SP):
            continue
        if _constant(evidence, _writers(evidence), at, register or 0, _DEPTH_MOST) is not None:
            yield pc
