"""What instructions compute, as Python functions of their operands' values: from the templates of `decode.semantics`.

A function of an integer instruction takes the values of rs1 and rs2 and has the immediate in it. One of a
floating-point instruction takes those of its source registers in order, and the rounding mode.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from rvtrace_gdb.decode.semantics import operations, softfloat
from rvtrace_gdb.decode.semantics.encodings import Operation
from rvtrace_gdb.decode.semantics.operations import AMO, BRANCHES, VALUES, sign_extended
from rvtrace_gdb.decode.semantics.templates import BOX, fp_operands, fp_template, operands

Binary = Callable[[int, int], int]

_NAMES: dict[str, Any] = {name: getattr(operations, name) for name in operations.FUNCTIONS} | {"sf": softfloat}
_REGISTERS = {"x[1]": "a", "x[2]": "b", "f[1]": "a", "f[2]": "b", "f[3]": "c"}


def constant(op: Operation, pc: int, xlen: int) -> int:
    """Return what lui, auipc, or addi from x0 computes."""
    template = VALUES["addi rs1=0" if op.name == "addi" else op.name]
    found: int = eval(template.format_map(operands(op, pc, xlen)))
    return found


@lru_cache(maxsize=4096)
def value_function(name: str, imm: int, xlen: int) -> Binary:
    """Return the function of an integer instruction that has a template."""
    op = Operation(name, 4, 0, rd=1, rs1=1, rs2=2, imm=imm)
    return _compiled(f"lambda a,b:{VALUES[name].format_map(operands(op, 0, xlen))}")


@lru_cache(maxsize=64)
def branch_function(name: str, xlen: int) -> Binary:
    """Return the condition of a branch."""
    op = Operation(name, 4, 0, rs1=1, rs2=2)
    return _compiled(f"lambda a,b:{BRANCHES[name].format_map(operands(op, 0, xlen))}")


@lru_cache(maxsize=64)
def atomic_function(name: str, size: int) -> Binary:
    """Return what an atomic operation stores: a function of what memory held, and of the register."""
    bits, function = 8 * size, AMO[name]
    mask = (1 << bits) - 1
    return lambda memory, register: function(memory & mask, register & mask, bits) & mask


class FloatingPoint(NamedTuple):
    """A floating-point instruction that is not a load or store.

    function    of the values of its sources, and of the rounding mode
    sources     the fields of those: "rs1" and so on, with "x" or "f" before it for the register file
    to_integer  the result goes to an integer register
    boxed       the result is a single in a floating-point register
    rounds      it depends on the rounding mode
    """

    function: Callable[..., int]
    sources: tuple[str, ...]
    to_integer: bool
    boxed: bool
    rounds: bool


@lru_cache(maxsize=512)
def floating_point(name: str, xlen: int) -> FloatingPoint:
    """Return a floating-point instruction by its name."""
    op = Operation(name, 4, 0, rd=1, rs1=1, rs2=2, rs3=3)
    found = fp_template(op)
    values = operands(op, 0, xlen) | fp_operands(op, single=found.single, rm="rm")
    statement = found.template.format_map(values)
    sources = tuple(
        f"{file}rs{number}" for number in (1, 2, 3) for file in "xf" if f"{file}[{number}]" in statement
    )
    result = "v"
    boxed = found.boxed and not found.to_integer
    if found.is_word:
        result = sign_extended("v", 32, xlen)
    elif boxed:
        result = f"v|{BOX}"
    for register, argument in _REGISTERS.items():
        statement = statement.replace(register, argument)
    names = dict(_NAMES)
    exec(f"def function(a=0,b=0,c=0,rm=0):\n {statement}\n return {result}", names)
    return FloatingPoint(names["function"], sources, found.to_integer, boxed, "{rm}" in found.template)


def _compiled(source: str) -> Binary:
    for register, argument in _REGISTERS.items():
        source = source.replace(register, argument)
    function: Binary = eval(source, dict(_NAMES))
    return function
