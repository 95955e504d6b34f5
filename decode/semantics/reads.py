"""Which registers and which memory an instruction reads, for each of its results: what its result is made of.

Registers have the numbers of the Debug Specification. x0 is nobody's source. The dynamic rounding mode, and flags that
only accumulate, count as nothing. Sources: those of `encodings`; which registers a result is computed from is what its
template (`operations`) has.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import XRETS, F, X
from rvtrace_gdb.decode.semantics.encodings import Operation
from rvtrace_gdb.decode.semantics.operations import BRANCHES, FP_LOADS, FP_STORES, LOADS, STORES, VALUES
from rvtrace_gdb.decode.semantics.register_uses import RegisterUse, register_use
from rvtrace_gdb.decode.semantics.templates import floating_sources, fp_template, integer_sources, variant
from rvtrace_gdb.decode.semantics.writes import WriteTable

MEMORY, FLOW = -2, -3
"""What a result is if it is no register: stored bytes, and where the program goes on."""


class Operand(NamedTuple):
    """Memory that an operation accesses: *size* bytes at the content of register *base* (X: none) plus *offset*."""

    base: int
    offset: int
    size: int


class OperationResult(NamedTuple):
    """A result of an instruction, and what it is made of.

    result     the number of a register, MEMORY or FLOW
    registers  whose values it is made of
    loaded     memory whose content it is made of; *stored*: where it is stored
    is_copy    it is the value of its only register, or of what it loads
    """

    result: int
    registers: tuple[int, ...] = ()
    loaded: Operand | None = None
    stored: Operand | None = None
    is_copy: bool = False

    @property
    def base(self) -> int | None:
        """The register that an address is made of, None without one."""
        operand = self.loaded or self.stored
        return None if operand is None or operand.base == X else operand.base


class ReadSet(NamedTuple):
    """The results of an instruction. *is_known*: False: nobody here knows what it reads and writes."""

    results: tuple[OperationResult, ...] = ()
    is_known: bool = True
    name: str = ""

    @property
    def registers(self) -> frozenset[int]:
        """All registers that the instruction reads, those of addresses included."""
        found = frozenset(number for it in self.results for number in it.registers)
        return found | {it.base for it in self.results if it.base is not None}

    def results_of(self, result: int | None) -> tuple[OperationResult, ...]:
        """Return what one result is made of; None, or none of this instruction's: all."""
        return tuple(it for it in self.results if it.result == result) or self.results


class ReadTable:
    """What the instructions of one XLEN read. *zcm*: the hart has Zcmp or Zcmt."""

    def __init__(self, xlen: int, *, zcm: bool) -> None:
        self._table, self._xlen = WriteTable(xlen, zcm=zcm), xlen
        self._known: dict[int, ReadSet] = {}

    def reads_of(self, word: int) -> ReadSet:
        """Return what an instruction reads."""
        found = self._known.get(word)
        if found is None:
            several = self._table.operations_of(word)
            if several[0].name == "illegal":
                found = _not_executed(several[0], self._xlen)
            else:
                results = _without_own_sources([result for op in several for result in _results(op)])
                found = ReadSet(results, all(op.name != "illegal" for op in several), several[0].name)
            self._known[word] = found
        return found


def _without_own_sources(results: Sequence[OperationResult]) -> tuple[OperationResult, ...]:
    """Return the results of an instruction that does several things: cm.popret returns to what it has loaded itself."""
    found: dict[int, OperationResult] = {}
    for it in results:
        own = next((found[number] for number in it.registers if it.result == FLOW and number in found), None)
        found[it.result] = it
        if own is not None:
            results = [own._replace(result=FLOW) if one is it else one for one in results]
    return tuple(results)


def _not_executed(op: Operation, xlen: int) -> ReadSet:
    """Return what an instruction reads that the reconstruction does not execute."""
    use = None if op.length == 2 else register_use(op.word, xlen)
    made = {} if use is None else {number: sources for number, sources in use.written.items() if sources is not None}
    if use is None or not (use.written or use.atomic) or len(made) < len(use.written):
        return ReadSet((), False, op.name)
    if not use.atomic:
        return ReadSet(tuple(OperationResult(number, sources) for number, sources in made.items()), True, op.name)
    rs2 = op.word >> 20 & 31
    return ReadSet(tuple(_exchanged(use, X + (op.word >> 15 & 31), rs2, list(made))), True, op.name)


def _exchanged(use: RegisterUse, base: int, rs2: int, own: Sequence[int]) -> Iterator[OperationResult]:
    """Yield the results of an atomic operation that is not executed. *own*: the registers that get what was there."""
    width = use.atomic >> use.pairs
    for at, number in enumerate(own):
        yield OperationResult(number, loaded=Operand(base, at * width, width), is_copy=True)
    whole = Operand(base, 0, use.atomic)
    given = tuple(dict.fromkeys((*_integers(rs2, *([rs2 + 1] if rs2 and use.pairs else [])),
                                 *(own if use.compares else ()))))  # fmt: skip
    yield OperationResult(MEMORY, given, loaded=whole, stored=whole)


def _results(op: Operation) -> Sequence[OperationResult]:
    """Return the results of one operation."""
    name, rd = op.name, X + op.rd
    if name in VALUES:
        template = VALUES[variant(op, VALUES)]
        sources = _integers(*integer_sources(op, template))
        return [OperationResult(rd, sources, is_copy=template in ("{a}", "{b}"))] if op.rd else []
    if name in BRANCHES:
        return [OperationResult(FLOW, _integers(op.rs1, op.rs2))]
    if name in LOADS:
        return [OperationResult(rd, loaded=Operand(X + op.rs1, op.imm, LOADS[name][0]), is_copy=True)]
    if name in STORES:
        stored = Operand(X + op.rs1, op.imm, STORES[name])
        return [OperationResult(MEMORY, _integers(op.rs2), stored=stored, is_copy=True)]
    if name in FP_LOADS:
        return [OperationResult(F + op.rd, loaded=Operand(X + op.rs1, op.imm, FP_LOADS[name]), is_copy=True)]
    if name in FP_STORES:
        stored = Operand(X + op.rs1, op.imm, FP_STORES[name])
        return [OperationResult(MEMORY, (F + op.rs2,), stored=stored, is_copy=True)]
    return list(_other_results(op))


def _other_results(op: Operation) -> Iterator[OperationResult]:
    name, rd = op.name, X + op.rd
    if name in ("jal", "jalr"):
        if op.rd:
            yield OperationResult(rd)
        if name == "jalr":
            yield OperationResult(FLOW, _integers(op.rs1))
    elif name.startswith(("lr.", "sc.", "amo")):
        yield from _atomic(op)
    elif name.startswith("csrr"):
        yield from _csr(op)
    elif name in ("mret", "sret"):
        yield OperationResult(FLOW, (XRETS[op.word],))
    elif name[0] == "f" and not name.startswith("fence"):
        found = fp_template(op)
        sources = (*(F + it for it in floating_sources(op, found.template)), *_converted(op, found.template))
        is_move = name.startswith("fsgnj.") and op.rs1 == op.rs2
        yield OperationResult(
            rd if found.to_integer else F + op.rd, tuple(dict.fromkeys(sources)),
            is_copy=is_move or name.startswith("fmv."),
        )  # fmt: skip


def _converted(op: Operation, template: str) -> tuple[int, ...]:
    """Return the integer register that becomes a number of floating point."""
    return _integers(*integer_sources(op._replace(rs2=0), template))


def _atomic(op: Operation) -> Iterator[OperationResult]:
    place = Operand(X + op.rs1, 0, {"b": 1, "h": 2, "w": 4, "d": 8}[op.name.split(".")[1][0]])
    rd = X + op.rd
    if op.name.startswith("lr."):
        yield OperationResult(rd, loaded=place, is_copy=True)
        return
    if op.name.startswith("sc."):
        yield OperationResult(rd)
        yield OperationResult(MEMORY, _integers(op.rs2), stored=place, is_copy=True)
        return
    yield OperationResult(rd, loaded=place, is_copy=True)
    if op.name.startswith("amoswap"):
        yield OperationResult(MEMORY, _integers(op.rs2), stored=place, is_copy=True)
    else:
        yield OperationResult(MEMORY, _integers(op.rs2), loaded=place, stored=place)


def _csr(op: Operation) -> Iterator[OperationResult]:
    is_immediate, writes_alone = op.name.endswith("i"), op.name[4] == "w"
    written = () if is_immediate else _integers(op.rs1)
    if op.rd:
        yield OperationResult(X + op.rd, (op.imm,), is_copy=True)
    if writes_alone or op.rs1:
        yield OperationResult(op.imm, written if writes_alone else (op.imm, *written), is_copy=writes_alone)


def _integers(*numbers: int) -> tuple[int, ...]:
    return tuple(dict.fromkeys(X + number for number in numbers if number))
