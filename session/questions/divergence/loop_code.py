"""Whether a loop waits: what decides that it goes on comes from memory, a device or a CSR, and not from the loop.

A round is looked at as it ran, instruction by instruction: what each one reads was written earlier in the round, or in
the round before, or by neither. Going back from the branch that decides, a cycle through the rounds means that the loop
counts, or that it follows pointers; a load whose address no cycle changes, or a CSR, without such a cycle, means that
it waits. Slots of the stack are followed like registers. A loop that stores anything else than what is the same in
each round does more than waiting. Of an instruction that is not understood nothing is assumed: it is no such loop.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from rvtrace_gdb.decode.semantics.writes import EXTENSIONS

_SP, _FP = 2, 8
_BRANCHES = frozenset(("beq", "bne", "blt", "bge", "bltu", "bgeu"))
_LOADS = frozenset(("lb", "lh", "lw", "ld", "lbu", "lhu", "lwu", "lr.w", "lr.d"))
_STORES = frozenset(("sb", "sh", "sw", "sd", "sc.w", "sc.d"))
_IDEMPOTENT = ("amoswap", "amoor", "amoand", "amomin", "amomax")
_CONSTANTS = frozenset(("lui", "auipc", "jal"))
_NOTHING = frozenset(("fence", "fence.i", "wfi", "ebreak"))
_ONE_SOURCE = frozenset(
    (
        "jalr", "addi", "slti", "sltiu", "xori", "ori", "andi", "slli", "srli", "srai", "addiw", "slliw", "srliw",
        "sraiw", "slli.uw", "clz", "ctz", "cpop", "sext.b", "sext.h", "zext.h", "orc.b", "rev8", "rori", "clzw", "ctzw",
        "cpopw", "roriw", "bclri", "bexti", "binvi", "bseti", "zext.b", "not", "zext.w",
    )
)  # fmt: skip
_TWO_SOURCES = frozenset(
    (
        "add", "sub", "sll", "slt", "sltu", "xor", "srl", "sra", "or", "and", "addw", "subw", "sllw", "srlw", "sraw",
        "mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu", "mulw", "divw", "divuw", "remw", "remuw",
        "sh1add", "sh2add", "sh3add", "add.uw", "sh1add.uw", "sh2add.uw", "sh3add.uw", "andn", "orn", "xnor", "min",
        "minu", "max", "maxu", "rol", "ror", "rolw", "rorw", "bclr", "bext", "binv", "bset", "clmul", "clmulr",
        "clmulh", "czero.eqz", "czero.nez",
    )
)  # fmt: skip

_StackSlot = tuple[int, int]
"""A slot of the stack: a register that points into it, sp or fp, as it was where the round begins, and an offset."""
_ReadCell = int | _StackSlot
"""A register, or a slot of the stack."""


class _RoundNode(NamedTuple):
    """What an instruction of a round does: which cells it *reads* and *writes*; whether it *loads* what is not on the
    stack, or a CSR; whether it *stores* elsewhere than on the stack, and whether a store twice is as one.
    """

    reads: tuple[_ReadCell, ...] = ()
    writes: tuple[_ReadCell, ...] = ()
    loads: bool = False
    stores: bool = False


@lru_cache(maxsize=4)
def _decoder(xlen: int) -> Decoder:
    return Decoder(xlen, EXTENSIONS)


def operation_at(image: Image, pc: int) -> Operation | None:
    """Return what the instruction at an address is, None if that is not known."""
    try:
        code = image.read(pc, image.instruction(pc).length)
    except (CodeMissing, ValueError):
        return None
    found = _decoder(image.xlen).decode(int.from_bytes(code, "little"))
    return None if found.name == "illegal" else found


def branch_registers(image: Image, pc: int) -> tuple[int, int] | None:
    """Return the registers that a conditional branch compares, None if there is no such instruction."""
    found = operation_at(image, pc)
    return (found.rs1, found.rs2) if found is not None and found.name in _BRANCHES else None


def is_waiting_round(image: Image, pcs: Sequence[int]) -> bool:
    """Return whether the instructions at these addresses, of which the last one is a conditional branch, are a round of
    a loop that waits until that branch goes the other way.
    """
    operations = [op for op in (operation_at(image, pc) for pc in pcs) if op is not None]
    if len(operations) != len(pcs) or not operations or operations[-1].name not in _BRANCHES:
        return False
    nodes = _nodes(operations)
    if nodes is None:
        return False
    round_ = _Round(nodes)
    decided = round_.comes_from([len(nodes) - 1])
    if decided is None or not any(nodes[number].loads for number in decided):
        return False
    return all(
        (closure := round_.comes_from([number])) is not None
        and not any(nodes[other].loads for other in closure - {number})
        for number, node in enumerate(nodes)
        if node.stores
    )


class _Round:
    """The instructions of a round, and where what each reads comes from."""

    def __init__(self, nodes: Sequence[_RoundNode]) -> None:
        self._nodes = nodes
        last = {cell: number for number, node in enumerate(nodes) for cell in node.writes}
        self._sources: list[list[tuple[int, bool]]] = []  # of each: who writes it, and whether in the round before
        latest: dict[_ReadCell, int] = {}
        for number, node in enumerate(nodes):
            carried = [(last[cell], True) for cell in node.reads if cell not in latest and cell in last]
            self._sources.append([*((latest[cell], False) for cell in node.reads if cell in latest), *carried])
            latest.update(dict.fromkeys(node.writes, number))

    def comes_from(self, numbers: Iterable[int]) -> set[int] | None:
        """Return these and all instructions that what they read comes from; None: it changes from round to round by
        itself.
        """
        found: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += [source for source, _ in self._sources[number]]
        return None if self._has_cycle(found) else found

    def _has_cycle(self, among: set[int]) -> bool:
        """Return whether something of these depends on itself: what is left when all that depends on nothing else is
        taken away again and again.
        """
        left = set(among)
        while True:
            free = {number for number in left if not any(source in left for source, _ in self._sources[number])}
            if not free:
                return bool(left)
            left -= free


def _nodes(operations: Sequence[Operation]) -> list[_RoundNode] | None:
    """Return what the instructions of a round do, None if one of them is not understood."""
    for pointers in ((_SP, _FP), (_SP,)):  # fp may be a register like any other
        stack = _StackPointers(pointers)
        found = list(map(stack.node, operations))
        if stack.is_balanced:
            nodes = [node for node in found if node is not None]
            return _with_linked_slots(nodes) if len(nodes) == len(found) else None
    return None


def _with_linked_slots(nodes: Sequence[_RoundNode]) -> list[_RoundNode]:
    """Return the same; what is loaded from a slot of the stack that the round writes comes from there."""
    written = {cell for node in nodes for cell in node.writes if isinstance(cell, tuple)}
    return [node._replace(loads=False) if written.intersection(node.reads) else node for node in nodes]


class _StackPointers:
    """The *pointers* into the stack, which are registers, while a round runs."""

    def __init__(self, pointers: Sequence[int]) -> None:
        self._pointers = pointers
        self._at: dict[int, _StackSlot] = {register: (register, 0) for register in pointers}
        self._kept: dict[_StackSlot, _StackSlot] = {}  # pointers that were saved on the stack

    @property
    def is_balanced(self) -> bool:
        """Whether all pointers are what they were before the round."""
        return self._at == {register: (register, 0) for register in self._pointers}

    def node(self, op: Operation) -> _RoundNode | None:
        """Return what an instruction does, None if it is not understood."""
        name = op.name
        if name in _LOADS or name in _STORES:
            return self._access(op)
        if name == "addi" and op.rd in self._pointers and op.rs1 in self._at:
            origin, offset = self._at[op.rs1]
            self._at[op.rd] = origin, offset + op.imm
            return _RoundNode()
        if name in _BRANCHES:
            return _RoundNode(self._cells(op.rs1, op.rs2))
        if name in _NOTHING:
            return _RoundNode()
        if name.startswith("csrr"):
            reads = () if name.endswith("i") else self._cells(op.rs1)
            return self._written(op, reads, loads=True)
        if name.startswith(_IDEMPOTENT):
            return self._written(op, self._cells(op.rs1, op.rs2), loads=True, stores=True)
        sources = _source_registers(op)
        return None if sources is None else self._written(op, self._cells(*sources))

    def _access(self, op: Operation) -> _RoundNode | None:
        is_load = op.name in _LOADS
        base = self._at.get(op.rs1)
        if base is None or op.name[:2] in ("lr", "sc"):
            if is_load:
                return self._written(op, self._cells(op.rs1), loads=True)
            reads = self._cells(op.rs1, op.rs2)
            return self._written(op, reads, loads=True, stores=True) if op.name[:2] == "sc" else _RoundNode(
                reads, stores=True
            )  # fmt: skip
        slot = base[0], base[1] + op.imm
        if is_load:
            kept = self._kept.get(slot)
            if op.rd in self._pointers and kept is not None:
                self._at[op.rd] = kept
                return _RoundNode()
            return self._written(op, (slot,), loads=True)
        if op.rs2 in self._at:
            self._kept[slot] = self._at[op.rs2]
        else:
            self._kept.pop(slot, None)
        return _RoundNode(self._cells(op.rs2), (slot,))

    def _written(
        self, op: Operation, reads: tuple[_ReadCell, ...], *, loads: bool = False, stores: bool = False
    ) -> _RoundNode:
        """Return what an instruction does that writes its destination."""
        self._at.pop(op.rd, None)
        return _RoundNode(reads, (op.rd,) if op.rd else (), loads, stores)

    def _cells(self, *registers: int) -> tuple[_ReadCell, ...]:
        """Return the registers that are read; those that point into the stack are as they were."""
        return tuple(register for register in registers if register and register not in self._at)


def _source_registers(op: Operation) -> tuple[int, ...] | None:
    """Return the registers that an instruction reads, None if it is not understood."""
    if op.name in _CONSTANTS:
        return ()
    if op.name in _ONE_SOURCE:
        return (op.rs1,)
    return (op.rs1, op.rs2) if op.name in _TWO_SOURCES else None
