"""Compiled expressions have the values, and the texts, that the evaluation has: of random ones, at random moments.

That the evaluation is right a real dprintf says, in tests/endtoend/trace/test_log.py.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from rvtrace_gdb.decode.expressions.compiled import ExpressionCompiler, text_function
from rvtrace_gdb.decode.expressions.evaluator import Evaluator
from rvtrace_gdb.decode.expressions.formatting import Formatter
from rvtrace_gdb.decode.expressions.locations import UnknownValue
from rvtrace_gdb.decode.expressions.syntax import BadExpression
from rvtrace_gdb.decode.program.image import Image
from tests.helpers.amounts import crossed
from tests.helpers.cross_compiler import HOME, compile_program

PROGRAM = HOME / "tests" / "programs" / "logged.c"
MORE = "\nstruct outer { int k; union { int one; struct { short low, high; }; }; } outer = {1, {2}};\n"
NUMBERS = (
    "outer.high", "outer.one",
    "n", "i", "total", "ch", "rounds", "a", "v", "c", "first.value", "second.next->value", "first.at.y", "first.lo",
    "first.mid", "first.hi", "matrix[1][2]", "many[i]", "many[first.lo]", "text[i % 5]", "first.color", "first.flags",
    "counter", "big", "sink", "$a0", "$sp", "$pc", "p->at.x", "p->next->u.c[2]", "(*p).mid", "local.value", "first.ok",
    "7", "0xffffffff", "'x'", "GREEN", "ratio", "first.d", "sizeof(first)", "i << 2", "first.bytes[i & 3]",
)  # fmt: skip
OTHERS = ("first", "many", "&first", "p", "first.name", "*first.name@3", "&many[3]", "&p->at", "first.next", "*p",
          "first.call", "second.u", "&first.lo", "text", "$t0", "$nothing")  # fmt: skip
OPERATORS = ("+", "-", "*", "/", "%", "&", "|", "^", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "<<")
CASTS = ("char", "unsigned char", "short", "unsigned int", "long", "_Bool", "struct node *", "double", "enum color")


class RandomMoment:
    """Registers and memory of which every twentieth is unknown. Pointers point somewhere."""

    def __init__(self, pc: int, seed: int) -> None:
        self.pc, self._seed = pc, seed

    def _number(self, what: object, bits: int) -> int | None:
        rng = Random(f"{self._seed} {what}")
        return None if not rng.randrange(20) else rng.choice([rng.getrandbits(bits), rng.getrandbits(4)])

    def register(self, number: int) -> int | None:
        return self._number(f"x{number}", 32) if number else 0

    def named_register(self, name: str) -> int | None:
        if name == "pc":
            return self.pc
        if name == "nothing":
            raise KeyError(name)
        return self._number(name, 32)

    def entry_register(self, number: int) -> int | None:
        return None

    def memory(self, address: int, size: int) -> Sequence[int | None]:
        is_whole = size <= 8 and self._number(address >> 3, 8) is not None
        return [self._number(it, 8) or (0 if is_whole else None) for it in range(address, address + size)]


def random_expression(rng: Random, depth: int) -> str:
    """The text of an expression, most of which have a value."""
    kind = rng.randrange(10)
    if not depth or kind < 3:
        return rng.choice(NUMBERS if rng.randrange(4) else OTHERS)
    inner = f"({random_expression(rng, depth - 1)})"
    if kind == 3:
        return f"({rng.choice(CASTS)}){inner}"
    if kind == 4:
        return rng.choice("-~!+*&") + inner
    if kind == 5:
        return f"{inner}->value"
    other = rng.choice([*NUMBERS, f"({random_expression(rng, depth - 1)})"])
    return f"{inner} {rng.choice(OPERATORS)} {other}" if kind < 9 else f"{inner}[{other}]"


def said(make: object, *given: object) -> object:
    """What a function returns, or why there is nothing."""
    try:
        return make(*given)  # type: ignore[operator]
    except UnknownValue as unknown:
        return unknown.text, False
    except BadExpression as error:
        return f"bad: {error}"


@pytest.mark.parametrize(("march", "level"), crossed(("rv64gc", "rv32gc"), ("-Og", "-O0")))
def test_the_same_values_and_texts(tmp_path: Path, march: str, level: str) -> None:
    source = tmp_path / "logged.c"
    source.write_text(PROGRAM.read_text() + MORE)
    elf = compile_program(tmp_path, source, march=march, options=(level, "-fno-inline"))
    evaluator, rng, done = Evaluator(Image.from_elf(elf)), Random(f"{march} {level}"), 0
    functions = [begin for name in ("work", "fact", "helper") for begin, _ in evaluator.image.symbols_named(name)]
    places = [address for begin in functions for address in range(begin, begin + 60, 2)]
    formatters = [Formatter(evaluator), Formatter(evaluator, "x")]
    for number in range(1200):
        text, pc = random_expression(rng, 3), rng.choice(places)
        try:
            node = evaluator.parsed(text, evaluator.program.scope_at(pc))
        except BadExpression:
            continue
        compiler = ExpressionCompiler(evaluator, pc)
        compiled, condition = compiler.compiled(node), compiler.compiled_condition(node)
        done += compiled is not None and not text.isalnum()
        for seed in range(3):
            moment = RandomMoment(pc, 1000 * number + seed)

            def shown(formatter: Formatter, moment: RandomMoment = moment, node: object = node) -> object:
                return formatter.text(evaluator.value(node, moment), moment)  # type: ignore[arg-type]

            if compiled is not None:
                for it in formatters:
                    assert said(text_function(compiled, it), moment) == said(shown, it), text
            if condition is not None:
                expected = said(lambda at=moment, it=node: evaluator.is_true(evaluator.value(it, at), at))
                assert said(condition, moment) == expected, text
    assert done > 200
