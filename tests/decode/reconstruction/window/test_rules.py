"""What each instruction tells of its operands and its result: certain values, and never a wrong one."""

from collections.abc import Mapping, Sequence
from itertools import product
from random import Random
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.reconstruction.window.functions import value_function
from rvtrace_gdb.decode.reconstruction.window.rules import value_rule
from rvtrace_gdb.decode.reconstruction.window.shapes import result_shape
from rvtrace_gdb.decode.semantics.encodings import TABLES, signed
from rvtrace_gdb.decode.semantics.operations import VALUES
from tests.decode.reconstruction.window.by_hand import DATA, edge, encoded, stored, window
from tests.helpers.amounts import LONG
from tests.transport.simulated.hart.torture import edge_values

A, B, D = 11, 12, 10
_IMMEDIATE = ("slti", "sltiu", "xori", "ori", "andi", "addi", "addiw")
_SHIFTS = (
    "slli", "srli", "srai", "slliw", "srliw", "sraiw", "rori", "roriw", "slli.uw", "bclri", "bexti", "binvi", "bseti",
)  # fmt: skip


def _instructions(xlen: int) -> list[str]:
    rows = [row.split()[0] for group in TABLES if not group.endswith(str(96 - xlen)) for row in _rows_of(group)]
    return [name for name in dict.fromkeys(rows) if name in VALUES and name not in ("lui", "auipc")]


def _rows_of(group: str) -> list[str]:
    return [row.strip() for line in TABLES[group].splitlines() for row in line.split("|") if row.strip()]


@pytest.mark.parametrize("xlen", [64, 32])
def test_no_operand_and_no_result_is_ever_wrong(xlen: int) -> None:
    """Every instruction, with each part of its registers known at the end, or only their low bytes."""
    random, values = Random(xlen), edge_values(xlen)
    known = 0
    for name in _instructions(xlen):
        for _ in range(6 if LONG else 1):
            imm = random.randrange(32) if name in _SHIFTS else random.choice((-2048, -1, 0, 1, 5, 255, 2047))
            imm = imm if name in (*_IMMEDIATE, *_SHIFTS) else 0
            a, b = random.choice(values), random.choice(values)
            truth = {A: a, B: b, D: value_function(name, imm, xlen)(a, b)}
            word = encoded(name, xlen, rd=D, rs1=A, rs2=B if name not in (*_IMMEDIATE, *_SHIFTS) else 0, imm=imm)
            ways = list(product((0, 1, 8, "begin"), (0, 1, 8, "begin"), (0, 1, 8)))
            for told in random.sample(ways, 12 if LONG else 4):
                known += _compare(word, truth, dict(zip(truth, told, strict=True)), xlen)
    assert known > 30


def _compare(word: int, truth: Mapping[int, int], told: Mapping[int, object], xlen: int) -> int:
    """Compare what a window knows. *told*: of each register, 1: all at the end, "begin": all at the beginning, 8: the
    low byte, 0: nothing.
    """
    stores = [encoded("sb", xlen, rs1=3, rs2=number, imm=number) for number, kind in told.items() if kind == 8]
    memory = {DATA + number: truth[number] & 0xFF for number in truth}
    x = {number: truth[number] for number, kind in told.items() if kind == 1}
    begin = edge({number: truth[number] for number, kind in told.items() if kind == "begin"})
    found = window([word, *stores], begin=begin, end=edge({**x, 3: DATA}, memory), xlen=xlen)
    assert not found.contradicted, (hex(word), truth, told)
    values = {A: found.x(0, A), B: found.x(0, B), D: found.x(1, D)}
    for number, value in values.items():
        assert value in (None, truth[number]), (hex(word), number, truth, told)
    return sum(value is not None and told[number] in (0, 8) for number, value in values.items())


def test_shapes_hold_for_every_instruction() -> None:
    """The shape of a result holds for all operands of the shapes that theirs have, and for a known second one."""
    random = Random(5)
    for xlen in (64, 32):
        mask, values = (1 << xlen) - 1, edge_values(xlen)
        for name in _instructions(xlen):
            imm = random.randrange(32) if name in _SHIFTS else random.choice((-2048, -256, -1, 1, 5, 255, 2047))
            imm = imm if name in (*_IMMEDIATE, *_SHIFTS) else 0
            rule = value_rule(name, imm, xlen)
            for _ in range(400 if LONG else 60):
                a, b = (_shaped(random, values, xlen) for _ in range(2))
                known = random.choice((None, b.value)) if rule.is_binary else rule.constant
                shape = result_shape(rule.family, a.shape, b.shape, known, xlen)
                result = rule.forward(a.value, b.value)
                inside = result < 1 << shape if shape > 0 else signed(result, -shape) & mask == result
                assert inside, (name, imm, xlen, a, b, known, shape, hex(result))


class _Shaped(NamedTuple):
    value: int
    shape: int


def _shaped(random: Random, values: Sequence[int], xlen: int) -> _Shaped:
    """Return a value, and a shape that it has."""
    bits = random.choice((1, 8, 12, 16, 32, xlen - 1, xlen))
    value = random.choice((random.choice(values), random.getrandbits(xlen)))
    if random.random() < 0.5:
        return _Shaped(value & (1 << bits) - 1, bits)
    return _Shaped(signed(value, bits) & (1 << xlen) - 1, -bits if bits < xlen else xlen)


def _before(words: Sequence[int], end: Mapping[int, int], register: int = A, xlen: int = 64) -> int | None:
    """Return a register at the beginning of a window at whose end registers are known."""
    found = window(words, end=edge(end), xlen=xlen)
    assert not found.contradicted
    return found.x(0, register)


def test_what_is_not_written_until_the_end_is_known() -> None:
    found = window([encoded("addi", rd=D, rs1=A, imm=5)], end=edge({D: 12, 5: 77}))
    assert [found.x(0, number) for number in (0, 5, 6, D, A)] == [0, 77, None, None, 7]
    assert [found.x(1, number) for number in (0, 5, 6, D, A)] == [0, 77, None, 12, 7]


@pytest.mark.parametrize(
    ("name", "fields", "result", "operand"),
    [
        ("add", {"rs2": B}, 105, 5), ("sub", {"rs2": B}, -95, 5), ("xor", {"rs2": B}, 5 ^ 100, 5),
        ("xnor", {"rs2": B}, ~(5 ^ 100), 5), ("xori", {"imm": -1}, -6, 5), ("mul", {"rs2": 9}, 15, 5),
        ("mul", {"rs2": B}, 500, None), ("rori", {"imm": 4}, 5 << 60, 5), ("rol", {"rs2": 9}, 40, 5),
        ("rev8", {}, 5 << 56, 5), ("binvi", {"imm": 3}, 13, 5), ("sh2add", {"rs2": B}, 120, None),
        ("czero.eqz", {"rs2": 8}, 5, 5), ("czero.eqz", {"rs2": 8}, 0, None), ("or", {"rs2": 8}, 0, 0),
        ("and", {"rs2": B}, 100, None), ("sltiu", {"imm": 1}, 1, 0), ("srli", {"imm": 1}, 2, None),
        ("addw", {"rs2": B}, 105, None), ("srli", {"imm": 0}, 5, 5),
    ],
)  # fmt: skip
def test_the_operand_that_a_result_tells(name: str, fields: dict[str, int], result: int, operand: int | None) -> None:
    """x12 is 100, x9 is 3; x8 is not known."""
    word = encoded(name, rd=D, rs1=A, **fields)
    assert _before([word], {D: result & (1 << 64) - 1, B: 100, 9: 3}) == operand


def test_low_bits_and_the_shape_of_a_value_tell_it() -> None:
    """A byte was loaded, so that it is known from the low 32 bits that addiw keeps, and the 8 that the AND keeps."""
    load = encoded("lbu", rd=A, rs1=8)
    for word, result in ((encoded("addiw", rd=D, rs1=A, imm=1), 201), (encoded("andi", rd=D, rs1=A, imm=0xFF), 200)):
        assert window([load, word], end=edge({D: result})).x(1, A) == 200


def test_what_two_shifts_cut_off_was_zero() -> None:
    """`(unsigned short)x`: of x, 16 bits are known, and the word in which it is loaded has no more."""
    words = [encoded("lhu", rd=A, rs1=8), encoded("slli", rd=B, rs1=A, imm=48), encoded("srli", rd=B, rs1=B, imm=48)]
    found = window([*words, encoded("addi", rd=A)], end=edge({B: 0xFEDC}))
    assert found.x(1, A) == 0xFEDC and found.x(2, B) == 0xFEDC << 48


def test_the_low_bits_pass_sums_products_and_shifts_backward() -> None:
    """`data[i] = (data[i] * 5 + 7) << 1`, of which a byte is stored: seven bits of what was loaded are known, and of
    the next value, which is masked to five of these, all.
    """
    words = [
        encoded("addi", rd=5, imm=5), encoded("mul", rd=A, rs1=A, rs2=5), encoded("addi", rd=A, rs1=A, imm=7),
        encoded("slli", rd=B, rs1=A, imm=1), encoded("sb", rs1=3, rs2=B),
    ]  # fmt: skip
    first = encoded("andi", rd=14, rs1=A, imm=0x1F)
    value = 0x1234_5678_9ABC_DE6B
    found = window([first, *words], end=edge({3: DATA}, stored(DATA, 1, (value * 5 + 7) << 1 & 0xFF)))
    assert found.x(1, 14) == 0x0B and found.x(0, A) is None


def test_what_a_branch_was_equal_to() -> None:
    beq = encoded("beq", rs1=A, rs2=B, imm=8)
    nop = encoded("addi")
    assert window([beq, nop, nop], order=[0, 2], end=edge({B: 6})).x(0, A) == 6
    assert window([beq, nop, nop], order=[0, 1], end=edge({B: 6})).x(0, A) is None
    assert window([encoded("bne", rs1=A, imm=8), nop, nop], order=[0, 1]).x(0, A) == 0
    assert window([encoded("bltu", rs2=A, imm=8), nop, nop], order=[0, 1]).x(0, A) == 0


@pytest.mark.parametrize(
    ("branch", "limit", "step", "end"), [("blt", 10, 1, 10), ("bge", -3, -1, -4), ("bltu", 8, 2, None)]
)
def test_the_end_of_a_loop_tells_its_counter(branch: str, limit: int, step: int, end: int | None) -> None:
    """A round before it had not passed the limit, and now it has. In steps of two it may be one more."""
    words = [encoded("addi", rd=A, rs1=A, imm=step), encoded(branch, rs1=A, rs2=B, imm=-4), encoded("addi")]
    mask = (1 << 64) - 1
    found = window(words, order=[0, 1, 0, 1, 2], begin=edge({B: limit & mask}))
    assert found.x(5, A) == (None if end is None else end & mask)
    assert found.x(0, A) == (None if end is None else end - 2 * step & mask)


@pytest.mark.parametrize(("limit", "end"), [(10, 10), ((1 << 31) - 1, (1 << 31) - 1), (1 << 31, None)])
def test_a_sum_of_32_bits_that_does_not_overflow_is_a_sum(limit: int, end: int | None) -> None:
    """The counter was loaded, so that it has 32 bits, and was below the limit; the last limit is none."""
    words = [
        encoded("lw", rd=A, rs1=3), encoded("blt", rs1=A, rs2=B, imm=8), 0, encoded("addiw", rd=D, rs1=A, imm=1),
        encoded("blt", rs1=D, rs2=B, imm=-16), encoded("addi"),
    ]  # fmt: skip
    found = window(words, order=[0, 1, 3, 4, 5], begin=edge({B: limit}))
    assert found.x(5, D) == end and found.x(1, A) == (None if end is None else end - 1)


def test_where_a_jump_went_tells_its_register() -> None:
    found = window([encoded("jalr", rd=1, rs1=A, imm=-4), 0, encoded("addi")], order=[0, 2])
    assert found.x(0, A) == 0x8000_000C and found.x(1, 1) == 0x8000_0004


def test_singles_and_doubles() -> None:
    """fneg, moves and exact conversions are inverted; sums are computed where the rounding mode is known."""
    double, single = 0x4008_0000_0000_0000, 0xFFFF_FFFF_4040_0000  # 3.0
    f: list[int | None] = [None] * 32
    f[1] = double
    ends = {
        "fsgnjn.d": double ^ 1 << 63, "fsgnj.d": double, "fcvt.d.s": single,
    }  # fmt: skip
    for name, before in ends.items():
        rs2, mode = (0, 7) if name == "fcvt.d.s" else (2, 0)
        word = encoded(name, rd=1, rs1=2, rs2=rs2, rm=mode)
        assert window([word], end=edge(f=f)).f(0, 2) == before
    assert window([encoded("fcvt.d.w", rd=1, rs1=A), encoded("addiw", rd=D, rs1=A)], end=edge(f=f)).x(2, D) == 3
    begin = [None, double, double, *[None] * 29]
    for csrs, result in (({}, None), ({3: 0}, 0x4018_0000_0000_0000)):
        found = window([encoded("fadd.d", rd=3, rs1=1, rs2=2, rm=7)], begin=edge(f=begin, csrs=csrs))
        assert found.f(1, 3) == result


def test_comparisons_of_singles_are_integers() -> None:
    single = 0xFFFF_FFFF_4040_0000
    begin = edge(f=[single, *[None] * 31])
    words = [encoded("feq.s", rd=A, rm=2), encoded("fmv.x.w", rd=B), encoded("fclass.s", rd=D, rm=1)]
    found = window(words, begin=begin)
    assert (found.x(3, A), found.x(3, B), found.x(3, D)) == (1, 0x4040_0000, 1 << 6)


def test_wide_floating_point_registers_of_a_narrow_hart() -> None:
    """On RV32 a double does not fit an integer register; what fsw stores is its low half, which does not tell it."""
    double = 0x4008_1234_5678_9ABC
    f: list[int | None] = [double, *[None] * 31]
    words = [encoded("fsd", 32, rs1=3), encoded("fld", 32, rd=1, rs1=3), encoded("lw", 32, rd=A, rs1=3, imm=4)]
    words += [encoded("fsw", 32, rs1=3, imm=16), encoded("lw", 32, rd=B, rs1=3, imm=16)]
    words.append(encoded("flw", 32, rd=2, rs1=3))
    found = window(words, begin=edge({3: DATA}, f=f), xlen=32)
    assert (found.f(6, 1), found.x(6, A), found.x(6, B)) == (double, 0x4008_1234, 0x5678_9ABC)
    assert found.f(6, 2) == 0xFFFF_FFFF_5678_9ABC
    backward = window([encoded("fsw", 32, rs1=3)], end=edge({3: DATA}, stored(DATA, 4, 5)), xlen=32)
    assert backward.f(0, 0) is None and not backward.contradicted
    loaded = window([encoded("flw", 32, rd=1, rs1=3), *words[3:4]], end=edge({3: DATA}, stored(DATA, 4, 5)), xlen=32)
    assert loaded.f(1, 1) == 0xFFFF_FFFF_0000_0005
