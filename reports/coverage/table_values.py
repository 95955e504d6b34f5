"""What registers have in front of a jump through a table: constants, and sums of unknown numbers with factors.

A number of 32 bits that is extended to 64, whether with its sign or with zeros, counts as the same number: compilers
compare one and use the other, and the index of a table is small.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import X
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from rvtrace_gdb.decode.semantics.writes import EXTENSIONS, Writes, WriteTable

_ENTRIES_AT_MOST = 1 << 16
_SHIFTED_ADDS = {"sh1add": 1, "sh2add": 2, "sh3add": 3, "sh1add.uw": 1, "sh2add.uw": 2, "sh3add.uw": 3}
_ADDS = {"add": 0, "addw": 0, "add.uw": 0, **_SHIFTED_ADDS}
_LOADS = frozenset({"lb", "lbu", "lh", "lhu", "lw", "lwu", "ld"})
_STORES = {"sb": 1, "sh": 2, "sw": 4, "sd": 8}
_LOADS_OF_STORES = {"sw": ("lw", "lwu"), "sd": ("ld",)}
_SIZES = {"lb": 1, "lbu": 1, "lh": 2, "lhu": 2, "lw": 4, "lwu": 4, "ld": 8}


class LinearSum(NamedTuple):
    """A *constant*, and unknown numbers, each with its factor."""

    constant: int
    factors: frozenset[tuple["UnknownNumber | Loaded", int]] = frozenset()

    def sum_with(self, other: "LinearSum") -> "LinearSum":
        """Return the sum of both."""
        factors = dict(self.factors)
        for what, factor in other.factors:
            factors[what] = factors.get(what, 0) + factor
        return LinearSum(self.constant + other.constant, frozenset(it for it in factors.items() if it[1]))

    def times(self, factor: int) -> "LinearSum":
        """Return the product with a number that is not 0."""
        return LinearSum(self.constant * factor, frozenset((what, one * factor) for what, one in self.factors))

    def divided(self, by: int) -> "LinearSum | None":
        """Return what is unknown of it, divided; None if there is nothing, or a remainder."""
        if not self.factors or any(factor % by for _, factor in self.factors):
            return None
        return LinearSum(0, frozenset((what, factor // by) for what, factor in self.factors))


class UnknownNumber(NamedTuple):
    """What a register has: a *number* for each time that it was written."""

    number: int


class Loaded(NamedTuple):
    """What a load by an instruction with a *name* gives. *number*: how often memory was written before."""

    number: int
    name: str
    address: LinearSum


class IndexLimit(NamedTuple):
    """A *number* that is less than *bound*."""

    number: LinearSum
    bound: int


class TableCode:
    """The instructions of a program, decoded."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self.xlen = image.xlen
        self._decoder = Decoder(image.xlen, [name for name in EXTENSIONS if not image.zcm or name not in "FD"])
        self._writes = WriteTable(image.xlen, zcm=image.zcm)
        self._operations: dict[int, Operation] = {}

    def at(self, pc: int) -> Operation:
        """Return the operation at an address that has an instruction."""
        found = self._operations.get(pc)
        if found is None:
            found = self._operations[pc] = self._decoder.decode(self._code_word(pc))
        return found

    def written_at(self, pc: int) -> Writes:
        """Return what it writes."""
        return self._writes.writes_of(self._code_word(pc))

    def _code_word(self, pc: int) -> int:
        return int.from_bytes(self._image.read(pc, min(self._image.instruction(pc).length, 4)), "little")


class TableValues:
    """What the registers and the memory have, as far as that is known."""

    def __init__(self, xlen: int) -> None:
        self._xlen = xlen
        self._count = 0
        self._registers: dict[int, LinearSum] = {}
        self._limits: list[IndexLimit] = []
        self._memory: dict[tuple[str, LinearSum], LinearSum] = {}
        self.forget()

    def forget(self) -> None:
        """Nothing is known any more: other code leads here."""
        self._registers = {0: LinearSum(0)}
        self._limits = []
        self._forget_memory()

    def register(self, number: int) -> LinearSum:
        """Return what a register has."""
        if number not in self._registers:
            self._registers[number] = self._unknown()
        return self._registers[number]

    def limit(self, index: LinearSum) -> IndexLimit | None:
        """Return the last limit of a number that differs from this one by a constant."""
        return next((it for it in reversed(self._limits) if it.number.factors == index.factors), None)

    def branch(self, operation: Operation, *, taken: bool) -> None:
        """Note what a branch that was *taken*, or was not, says: that one number is less than another, or at most."""
        if operation.name not in ("bltu", "bgeu"):
            return
        one, other = self.register(operation.rs1), self.register(operation.rs2)
        if (operation.name == "bltu") == taken:
            number, bound = one, other
        else:
            number, bound = other, one.sum_with(LinearSum(1))
        if not bound.factors and number.factors and 0 < bound.constant <= _ENTRIES_AT_MOST:
            self._limits.append(IndexLimit(number, bound.constant))

    def execute(self, pc: int, operation: Operation, writes: Writes) -> None:
        """Do what an instruction does; what is not understood makes what it may write unknown."""
        if operation.name in _STORES:
            self._store(operation)
            return
        value = self._result(pc, operation)
        if value is not None:
            self._set_register(operation.rd, value)
            return
        if writes.possible is None:
            self.forget()
            return
        for register in writes.registers | writes.possible:
            if X < register < X + 32:
                self._set_register(register - X, self._unknown())
        if operation.name == "illegal" or operation.name.startswith(("sc.", "amo", "fs")):
            self._forget_memory()

    def _result(self, pc: int, operation: Operation) -> LinearSum | None:
        one, other = self.register(operation.rs1), self.register(operation.rs2)
        if operation.name in _LOADS:
            return self._load(operation.name, one.sum_with(LinearSum(operation.imm)))
        if operation.name in ("addi", "addiw"):
            return one.sum_with(LinearSum(operation.imm))
        if operation.name == "lui":
            return LinearSum(operation.imm)
        if operation.name == "auipc":
            return LinearSum(pc + operation.imm)
        if operation.name in _ADDS:
            return one.times(1 << _ADDS[operation.name]).sum_with(other)
        if operation.name == "slli":
            return one.times(1 << operation.imm)
        if operation.name == "srli" and self._xlen == 64 and operation.imm <= 32:
            return _extended(one, operation.imm)
        return None

    def _load(self, name: str, address: LinearSum) -> LinearSum:
        found = self._memory.get((name, address))
        if found is None:
            found = self._memory[name, address] = LinearSum(0, frozenset({(Loaded(self._count, name, address), 1)}))
        return found

    def _store(self, operation: Operation) -> None:
        """Write to memory. What has another base may be the same place."""
        address, size = self.register(operation.rs1).sum_with(LinearSum(operation.imm)), _STORES[operation.name]
        self._count += 1
        self._memory = {
            (name, place): value
            for (name, place), value in self._memory.items()
            if place.factors == address.factors
            and not (place.constant < address.constant + size and address.constant < place.constant + _SIZES[name])
        }
        for name in _LOADS_OF_STORES.get(operation.name, ()):
            self._memory[name, address] = self.register(operation.rs2)

    def _forget_memory(self) -> None:
        self._count += 1
        self._memory = {}

    def _set_register(self, register: int, value: LinearSum) -> None:
        if register:
            self._registers[register] = value

    def _unknown(self) -> LinearSum:
        self._count += 1
        return LinearSum(0, frozenset({(UnknownNumber(self._count), 1)}))


def _extended(shifted: LinearSum, right: int) -> LinearSum | None:
    """Return a number of 32 bits that was shifted to the left end and is shifted back to the right."""
    whole = 1 << 32
    if not shifted.factors or shifted.constant % whole or any(factor % whole for _, factor in shifted.factors):
        return None
    divided = frozenset((what, factor >> right) for what, factor in shifted.factors)
    return LinearSum(shifted.constant >> right, divided)
