"""The blocks of a hart that the compiled kernel executes (decode/kernel/hart/hart.h), with the same result as their
functions in Python.

The kernel has the instructions that compute, access main memory and jump. A block with any other one, with a watchpoint
or with accesses that are reported is Python's. So is a block of the kernel whenever one of its accesses turns out to be
a trap, a device or a command to the host: it is undone in the kernel, and executed here. Where memory has marks, so is
one that reads what is unknown.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.semantics.encodings import Operation, signed
from rvtrace_gdb.decode.semantics.operations import BRANCHES, LOADS, STORES, VALUES
from rvtrace_gdb.decode.semantics.templates import integer_sources
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.hart.block import HartBlock
from rvtrace_gdb.transport.simulated.hart.reports import HartItem
from rvtrace_gdb.transport.simulated.hart.triggers import TriggerAccess

WENT_ON, LEFT, LEFT_EVER = range(3)
"""Why the kernel stopped: `enum HartStop`."""
LONGEST_RUN = 1 << 20
"""Instructions of one call: a signal is noticed after it."""
_OPERATION = struct.Struct("=BBBB4xQ")  # CodeOperation
_NOBODY = 32  # the register of a result that is not used
_ALL_ONES = (1 << 64) - 1

# The operation on sign-extended registers that is the RV32 one.
_OF_RV32 = {
    name: f"{name}w"
    for name in (
        "addi", "slli", "srli", "srai", "add", "sub", "sll", "srl", "sra", "mul", "mulh", "mulhsu", "mulhu", "div",
        "divu", "rem", "remu",
    )
}  # fmt: skip


class Properties(Protocol):
    """What the code depends on: `block_compiler.CodeProperties`."""

    @property
    def xlen(self) -> int: ...
    @property
    def compressed(self) -> bool: ...
    @property
    def ram_base(self) -> int: ...
    @property
    def fast_size(self) -> int: ...
    @property
    def watched(self) -> TriggerAccess: ...
    @property
    def tohost(self) -> int | None: ...
    @property
    def reports_accesses(self) -> bool: ...


class KernelBlocks:
    """The blocks of one hart that the kernel executes. *properties*: returns those in force."""

    def __init__(self, bus: Bus, properties: Callable[[], Properties]) -> None:
        self._properties = properties
        self._blocks: list[HartBlock] = []  # by their numbers in the kernel
        self._by_pc: dict[int, HartBlock] = {}
        self._loop: Any = None
        compiled, shape = kernel(), properties()
        if compiled is not None:
            odd = 0 if shape.compressed else 2
            marks = () if bus.main.marks is None else (bus.main.marks,)
            self._loop = compiled.HartLoop(shape.xlen, bus.main.views[1], shape.ram_base, shape.fast_size, odd, *marks)
            self._numbers = {name: number for number, name in enumerate(compiled.HART_OPERATIONS)}

    def forget(self) -> None:
        """Forget all blocks."""
        self._blocks.clear()
        self._by_pc.clear()
        if self._loop is not None:
            shape = self._properties()
            self._loop.forget(_ALL_ONES if shape.tohost is None else shape.tohost - shape.ram_base & _ALL_ONES)

    def add(self, block: HartBlock) -> None:
        """Let the kernel execute this block, if it can."""
        block.in_kernel = False
        if self._loop is None or block.operations is None:
            return
        packed = self._packed(block, block.operations)
        if packed is not None:
            self._loop.add(block.pc, block.next, block.n, packed)
            self._blocks.append(block)
            self._by_pc[block.pc] = block
            block.in_kernel = True

    def execute(
        self, x: list[int], pc: int, budget: int, retired: list[HartItem] | None
    ) -> tuple[HartBlock | None, int, int]:
        """Execute blocks from *pc* on, where one is `HartBlock.in_kernel`, until *budget* instructions have retired.

        Returns:
            the block that is to be executed in Python next, if it is one that the kernel knows; where it goes on; how
            many instructions have retired.
        """
        stop, pc, ran = self._loop.run(x, pc, min(budget, LONGEST_RUN), self._blocks, retired)
        if stop == WENT_ON:
            return None, pc, ran
        block = self._by_pc[pc]
        block.in_kernel = stop != LEFT_EVER
        return block, pc, ran

    def _packed(self, block: HartBlock, operations: Sequence[Operation]) -> bytes | None:
        """Return the operations of a block as the kernel takes them, None if it does not."""
        shape = self._properties()
        if shape.reports_accesses:
            return None
        rows = list(self._packed_operations(zip(operations, block.pcs, strict=True), shape))
        return None if None in rows else b"".join(row for row in rows if row)

    def _packed_operations(self, code: Iterable[tuple[Operation, int]], shape: Properties) -> Iterator[bytes | None]:
        """Yield each operation, nothing for one that does nothing, None for one that the kernel does not have."""
        for op, pc in code:
            watched = (op.name in LOADS and shape.watched & TriggerAccess.LOAD) or (
                op.name in STORES and shape.watched & TriggerAccess.STORE
            )
            yield None if watched else self._packed_operation(op, pc, shape)

    def _packed_operation(self, op: Operation, pc: int, shape: Properties) -> bytes | None:
        name, immediate = self._named(op, pc, shape)
        number = self._numbers.get(name)
        if name == "fence":
            return b""
        if number is None:
            return None
        if op.name in BRANCHES or op.name == "jal":
            if immediate & 2 and not shape.compressed:
                return None
        elif op.rd == 0 and op.name not in LOADS and op.name not in STORES and op.name != "jalr":
            return b""
        return _OPERATION.pack(number, *_registers(op), immediate)

    def _named(self, op: Operation, pc: int, shape: Properties) -> tuple[str, int]:
        """Return the name of an operation in the kernel, and its immediate."""
        xlen, mask = shape.xlen, (1 << shape.xlen) - 1
        if op.name in BRANCHES or op.name == "jal":
            return op.name, pc + op.imm & mask
        if op.name in ("lui", "auipc"):
            value = op.imm + (pc if op.name == "auipc" else 0)
            return "li", signed(value, xlen) & _ALL_ONES
        return _OF_RV32.get(op.name, op.name) if xlen == 32 else op.name, op.imm & _ALL_ONES


def _registers(op: Operation) -> tuple[int, int, int]:
    """Return rd, rs1 and rs2 of an operation; 0 for a source that it does not have, whatever its code has there."""
    if op.name in STORES or op.name in BRANCHES:
        return _NOBODY, op.rs1, op.rs2
    rd = op.rd or _NOBODY
    if op.name in LOADS or op.name == "jalr":
        return rd, op.rs1, 0
    sources = integer_sources(op, VALUES[op.name]) if op.name in VALUES else []
    return rd, op.rs1 if op.rs1 in sources else 0, op.rs2 if op.rs2 in sources else 0
