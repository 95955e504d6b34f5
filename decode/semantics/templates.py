"""Filling in the templates of `operations` for one instruction: what the two compilers have in common.

The register files are called `x` and `f` in the source that comes out; x0 is the number 0.
"""

from typing import Any, NamedTuple

from rvtrace_gdb.decode.semantics import operations
from rvtrace_gdb.decode.semantics.encodings import Operation

BOX = 0xFFFFFFFF_00000000
"""The upper half of a NaN-boxed single (ISA manual 22.2)."""
_NAN = 0x7FC00000  # what a single that is not NaN-boxed counts as
_HOLDS_A = ("{a}", "{sa}", "{wa}", "{ua}")
_HOLDS_B = ("{b}", "{sb}", "{wb}", "{ub}")


def x_register(number: int) -> str:
    """Return source for an integer register."""
    return f"x[{number}]" if number else "0"


def array_index(size: int) -> str:
    """Return source for the index of an access of *size* bytes at the offset `o`, in an array of such items."""
    return f"o>>{size.bit_length() - 1}" if size > 1 else "o"


def variant(op: Operation, table: dict[str, Any]) -> str:
    """Return the key of the cheapest template for *op*."""
    for field in ("rs1", "rs2", "rd", "imm"):
        key = f"{op.name} {field}=0"
        if key in table and getattr(op, field) == 0:
            return key
    return op.name


def integer_sources(op: Operation, template: str) -> list[int]:
    """Return the integer registers that a template reads, but x0."""
    found = [op.rs1] if any(name in template for name in _HOLDS_A) else []
    found += [op.rs2] if any(name in template for name in _HOLDS_B) else []
    return [number for number in found if number]


def floating_sources(op: Operation, template: str) -> list[int]:
    """Return the floating-point registers that a template reads."""
    reads = {"{fa}": op.rs1, "{fb}": op.rs2, "{fc}": op.rs3, "{fs}": op.rs1, "{fd}": op.rs1, "{f1}": op.rs1}
    return [number for name, number in reads.items() if name in template]


def operands(op: Operation, pc: int, xlen: int) -> dict[str, Any]:
    """Return what stands for the braces of a template, but those of floating point."""
    a, b, mask, sign = x_register(op.rs1), x_register(op.rs2), (1 << xlen) - 1, 1 << xlen - 1
    return {
        "a": a, "sa": _signed_expression(op.rs1, sign), "wa": _signed_word(a), "ua": f"{a}&0xffffffff",
        "b": b, "sb": _signed_expression(op.rs2, sign), "wb": _signed_word(b), "ub": f"{b}&0xffffffff",
        "i": op.imm, "iu": op.imm & mask, "rs1": op.rs1, "word": op.word,
        "fall": pc + op.length & mask, "target": pc + op.imm & mask,
        "M": mask, "S": sign, "X": xlen, "shift_mask": xlen - 1,
    }  # fmt: skip


def fp_operands(op: Operation, *, single: bool, rm: int | str) -> dict[str, Any]:
    """Return what stands for the braces of floating point. *single*: of the format; *rm*: the rounding mode."""
    return {
        "fa": _fp_operand(op.rs1, single), "fb": _fp_operand(op.rs2, single), "fc": _fp_operand(op.rs3, single),
        "fs": _fp_operand(op.rs1, True), "fd": _fp_operand(op.rs1, False), "f1": f"f[{op.rs1}]",
        "fmt": "sf.F32" if single else "sf.F64", "sign": 1 << 31 if single else 1 << 63, "rm": rm,
    }  # fmt: skip


class FpTemplate(NamedTuple):
    """The template of a floating-point instruction that is not a load or store.

    single      its format is single precision
    to_integer  the result goes to an integer register; *is_word*: its low 32 bits, sign-extended
    boxed       the result is a single that goes to a floating-point register
    """

    template: str
    single: bool
    to_integer: bool
    is_word: bool
    boxed: bool


def fp_template(op: Operation) -> FpTemplate:
    """Return the template of an instruction."""
    stem, _, last = op.name.rpartition(".")
    single = last == "s"
    to_integer = operations.FP_TO_INTEGER.get(op.name) or operations.FP_TO_INTEGER.get(stem)
    to_float = operations.TO_SINGLE.get(op.name) or operations.TO_DOUBLE.get(op.name)
    return FpTemplate(
        to_integer or to_float or operations.FP_ARITHMETIC[stem],
        single,
        to_integer is not None,
        op.name in operations.FP_WORD_RESULTS or stem in operations.FP_WORD_RESULTS,
        op.name in operations.TO_SINGLE if to_float else single,
    )


def _signed_expression(number: int, sign: int) -> str:
    return f"((x[{number}]^{sign})-{sign})" if number else "0"


def _signed_word(operand: str) -> str:
    return f"((({operand}&0xffffffff)^0x80000000)-0x80000000)"


def _fp_operand(number: int, single: bool) -> str:
    return f"(f[{number}]&0xffffffff if f[{number}]>={BOX} else {_NAN})" if single else f"f[{number}]"
