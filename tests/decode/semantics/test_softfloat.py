"""`decode.semantics.softfloat` against two independent floating-point units: the host's and Spike's.

The host (x86-64, SSE and libm's fma; it detects tininess after rounding, as RISC-V does) judges RNE, RTZ, RDN and RUP.
Where x86 and RISC-V define different things it is not asked: NaN payloads (RISC-V: canonical NaN), the flags of
0 * infinity + quiet NaN (x86: none), the value of an invalid conversion to an integer (x86: "integer indefinite"),
minimum and maximum, conversions to unsigned integers. Spike judges all five modes and all operations. What the ISA
manual says in tables is in `test_softfloat_tables`.
"""

import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from rvtrace_gdb.decode.semantics import softfloat
from rvtrace_gdb.decode.semantics.softfloat import F32, F64, NV, NX, OF, RDN, RMM, RNE, RTZ, RUP, UF, FloatFormat
from tests.decode.semantics.softfloat_operands import Operands, Triple, integers
from tests.decode.semantics.softfloat_oracles import HOST_MODES, Answers, Batch, build_host, run_host, run_spike
from tests.helpers.amounts import LONG

ALL_MODES = (RNE, RTZ, RDN, RUP, RMM)
FORMATS = {32: F32, 64: F64}
OTHER = {32: F64, 64: F32}
SEED = 754

Model = Callable[[Triple, FloatFormat, int], tuple[int, int]]


def _signed(pattern: int, bits: int) -> int:
    pattern &= (1 << bits) - 1
    return pattern - (1 << bits) if pattern >> bits - 1 else pattern


MODELS: dict[str, Model] = {
    "add": lambda t, fmt, rm: softfloat.add(t[0], t[1], fmt, rm),
    "sub": lambda t, fmt, rm: softfloat.sub(t[0], t[1], fmt, rm),
    "mul": lambda t, fmt, rm: softfloat.mul(t[0], t[1], fmt, rm),
    "div": lambda t, fmt, rm: softfloat.div(t[0], t[1], fmt, rm),
    "sqrt": lambda t, fmt, rm: softfloat.sqrt(t[0], fmt, rm),
    "fma": lambda t, fmt, rm: softfloat.fma(*t, fmt, rm),
    "fmsub": lambda t, fmt, rm: softfloat.fma(t[0], t[1], t[2] ^ fmt.sign_bit, fmt, rm),
    "fnmsub": lambda t, fmt, rm: softfloat.fma(t[0] ^ fmt.sign_bit, t[1], t[2], fmt, rm),
    "fnmadd": lambda t, fmt, rm: softfloat.fma(t[0] ^ fmt.sign_bit, t[1], t[2] ^ fmt.sign_bit, fmt, rm),
    "minimum": lambda t, fmt, rm: softfloat.minimum(t[0], t[1], fmt),
    "maximum": lambda t, fmt, rm: softfloat.maximum(t[0], t[1], fmt),
    "eq": lambda t, fmt, rm: softfloat.eq(t[0], t[1], fmt),
    "lt": lambda t, fmt, rm: softfloat.lt(t[0], t[1], fmt),
    "le": lambda t, fmt, rm: softfloat.le(t[0], t[1], fmt),
    "classify": lambda t, fmt, rm: (softfloat.classify(t[0], fmt), 0),
    "to_w": lambda t, fmt, rm: softfloat.to_int(t[0], fmt, 32, True, rm),
    "to_wu": lambda t, fmt, rm: softfloat.to_int(t[0], fmt, 32, False, rm),
    "to_l": lambda t, fmt, rm: softfloat.to_int(t[0], fmt, 64, True, rm),
    "to_lu": lambda t, fmt, rm: softfloat.to_int(t[0], fmt, 64, False, rm),
    "from_w": lambda t, fmt, rm: softfloat.from_int(_signed(t[0], 32), fmt, rm),
    "from_wu": lambda t, fmt, rm: softfloat.from_int(t[0] & 0xFFFFFFFF, fmt, rm),
    "from_l": lambda t, fmt, rm: softfloat.from_int(_signed(t[0], 64), fmt, rm),
    "from_lu": lambda t, fmt, rm: softfloat.from_int(t[0], fmt, rm),
    "convert": lambda t, fmt, rm: softfloat.convert(t[0], fmt, F32 if fmt is F64 else F64, rm),
}

# {f}: s or d, {o}: the other one
INSTRUCTIONS = {
    "add": "fadd.{f} fa3, fa0, fa1",
    "sub": "fsub.{f} fa3, fa0, fa1",
    "mul": "fmul.{f} fa3, fa0, fa1",
    "div": "fdiv.{f} fa3, fa0, fa1",
    "sqrt": "fsqrt.{f} fa3, fa0",
    "fma": "fmadd.{f} fa3, fa0, fa1, fa2",
    "fmsub": "fmsub.{f} fa3, fa0, fa1, fa2",
    "fnmsub": "fnmsub.{f} fa3, fa0, fa1, fa2",
    "fnmadd": "fnmadd.{f} fa3, fa0, fa1, fa2",
    "minimum": "fmin.{f} fa3, fa0, fa1",
    "maximum": "fmax.{f} fa3, fa0, fa1",
    "eq": "feq.{f} a0, fa0, fa1",
    "lt": "flt.{f} a0, fa0, fa1",
    "le": "fle.{f} a0, fa0, fa1",
    "classify": "fclass.{f} a0, fa0",
    "to_w": "fcvt.w.{f} a0, fa0",
    "to_wu": "fcvt.wu.{f} a0, fa0",
    "to_l": "fcvt.l.{f} a0, fa0",
    "to_lu": "fcvt.lu.{f} a0, fa0",
    "from_w": "fcvt.{f}.w fa3, a0",
    "from_wu": "fcvt.{f}.wu fa3, a0",
    "from_l": "fcvt.{f}.l fa3, a0",
    "from_lu": "fcvt.{f}.lu fa3, a0",
    "convert": "fcvt.{o}.{f} fa3, fa0",
}
UNROUNDED = {"minimum", "maximum", "eq", "lt", "le", "classify"}
HOST_OPERATIONS = sorted(
    {"add", "sub", "mul", "div", "sqrt", "fma", "eq", "lt", "le"}
    | {"to_w", "to_l", "from_w", "from_wu", "from_l", "from_lu", "convert"}
)


def _operands(name: str, width: int) -> list[Triple]:
    """The operands of one operation; a third of them if this is not the long run, but all where they are hard."""
    found = _all_operands(name, width)
    return found if LONG or name in ("mul", "fma") else Random(SEED).sample(found, len(found) // 3)


def _all_operands(name: str, width: int) -> list[Triple]:
    """Other ones in every operation and format."""
    seed = SEED * width + sorted(MODELS).index(name)
    operands = Operands(FORMATS[width], seed)
    if name in ("mul", "div"):
        return operands.products(2500) if name == "mul" else operands.quotients(2500)
    if name == "fma":
        return operands.multiply_adds(4000)
    if name in ("fmsub", "fnmsub", "fnmadd"):
        return operands.random.sample(operands.multiply_adds(1000), 1500)
    if name.startswith("to_"):
        return operands.near_integers(500)
    if name.startswith("from_"):
        return integers(250, seed)
    if name == "convert" and width == 64:
        return operands.narrowed(700)
    if name == "sqrt":
        return operands.squares(2000)
    if name in ("classify", "convert"):
        return operands.singles(2000)
    return operands.sums(2500)


def _result_bits(name: str, width: int) -> int:
    """How many low bits of an answer are the result; RV64 sign-extends 32-bit integers."""
    if name == "convert":
        return 96 - width
    return 32 if name in ("to_w", "to_wu") else 64 if name.startswith("to_") else width


def _check(name: str, width: int, operands: Sequence[Triple], modes: Sequence[int], expected: Answers) -> None:
    fmt, model, mask = FORMATS[width], MODELS[name], (1 << _result_bits(name, width)) - 1
    wrong = []
    for rm, answers in zip(modes, expected, strict=True):
        for triple, (bits, flags) in zip(operands, answers, strict=True):
            got = model(triple, fmt, rm)
            if got != (bits & mask, flags):
                shown = ", ".join(f"{a:#x}" for a in triple)
                wrong.append(f"{name}({shown}, {width}, rm={rm}): {got[0]:#x} {got[1]}, not {bits & mask:#x} {flags}")
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:20])


def _is_nan(bits: int, fmt: FloatFormat) -> bool:
    return bits & ~fmt.sign_bit > fmt.infinity


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert platform.machine() == "x86_64", "the oracle is SSE: other units detect tininess before rounding"
    return build_host(tmp_path_factory.mktemp("softfloat_host"))


def _in_riscv_terms(name: str, width: int, triple: Triple, answer: tuple[int, int], rm: int) -> tuple[int, int]:
    """The host's answer, with what x86 defines differently (module docstring) replaced."""
    bits, flags = answer
    if name in ("to_w", "to_l"):
        # x86 signals what it cannot convert, but its value is not RISC-V's: Spike and the manual's table judge that.
        return (MODELS[name](triple, FORMATS[width], rm)[0], flags) if flags & NV else answer
    if name in ("eq", "lt", "le"):
        return answer
    fmt = OTHER[width] if name == "convert" else FORMATS[width]
    return (fmt.canonical_nan, flags) if _is_nan(bits, fmt) else answer


def _infinity_times_zero_plus_nan(triple: Triple, fmt: FloatFormat) -> bool:
    factors = {a & ~fmt.sign_bit for a in triple[:2]}
    return factors == {0, fmt.infinity} and _is_nan(triple[2], fmt)


@pytest.mark.parametrize("width", FORMATS)
@pytest.mark.parametrize("name", HOST_OPERATIONS)
def test_agrees_with_the_host(host: Path, name: str, width: int) -> None:
    operands = _operands(name, width)
    if name == "fma":
        operands = [triple for triple in operands if not _infinity_times_zero_plus_nan(triple, FORMATS[width])]
    raw = run_host(host, name, width, operands)
    expected = [
        [_in_riscv_terms(name, width, t, answer, rm) for t, answer in zip(operands, answers, strict=True)]
        for rm, answers in zip(HOST_MODES, raw, strict=True)
    ]
    _check(name, width, operands, HOST_MODES, expected)


def _batch(name: str, width: int) -> Batch:
    letter, other = ("s", "d") if width == 32 else ("d", "s")
    return Batch(
        INSTRUCTIONS[name].format(f=letter, o=other),
        operand_bits=width,
        result_bits=_result_bits(name, width),
        operands=_operands(name, width),
        modes=(RNE,) if name in UNROUNDED else ALL_MODES,
        integer_operand=name.startswith("from_"),
        integer_result=name.startswith("to_") or name in ("eq", "lt", "le", "classify"),
    )


SpikeAnswers = dict[tuple[str, int], tuple[Batch, Answers]]


@pytest.fixture(scope="module")
def spike(tmp_path_factory: pytest.TempPathFactory) -> SpikeAnswers:
    keys = [(name, width) for name in MODELS for width in FORMATS]
    batches = [_batch(*key) for key in keys]
    answers = run_spike(tmp_path_factory.mktemp("softfloat_spike"), batches)
    return dict(zip(keys, zip(batches, answers, strict=True), strict=True))


@pytest.mark.parametrize("width", FORMATS)
@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_spike(spike: SpikeAnswers, name: str, width: int) -> None:
    batch, answers = spike[name, width]
    _check(name, width, batch.operands, batch.modes, answers)


@pytest.mark.parametrize("width", FORMATS)
@pytest.mark.parametrize("name", ["mul", "fma"])
def test_operands_reach_what_is_hard(spike: SpikeAnswers, name: str, width: int) -> None:
    """By Spike's answers: overflow, underflow, and rounding up to the least normal number both with UF and without."""
    fmt = FORMATS[width]
    seen = {(a[0] & ~fmt.sign_bit, a[1]) for mode in spike[name, width][1] for a in mode}
    assert {(fmt.hidden_bit, NX), (fmt.hidden_bit, NX | UF)} <= seen, "tininess before and after rounding never differ"
    assert {(fmt.infinity, OF | NX), (fmt.max_finite, OF | NX), (0, NX | UF), (1, NX | UF)} <= seen
