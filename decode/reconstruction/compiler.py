"""From instructions that ran to Python functions that execute them on values of which some are unknown.

A *run* is consecutive instructions of a history, with the address that came after each. Its function looks like this
(RV64, `c.lw a5,0(a4)`, `add a0,a0,a5`, and a `bne a4,a3` that was taken):

    def run(x=x,m32=m32,K=K,load=load,differ=differ):
     v=(m32[o>>2] if not(o:=x[14]-2147483648)&-134217725 and K[o>>3]==255 else load(o,4)) if x[14] is not None else None
     x[15]=(v if v<2147483648 else v|18446744069414584320) if v is not None else None
     x[10]=((x[10]+x[15])&18446744073709551615) if x[10] is not None and x[15] is not None else None
     if x[14] is not None and x[13] is not None and not(x[14]!=x[13]):contradict(2)

None is unknown. Nothing decides where execution goes on: the history says so, and a branch or jump that cannot have
gone there is a contradiction. Generated code uses these names: `x` and `f` the register files, `m8`..`m64` the main
RAM as arrays, `K` and `D` its `KnownRam.known_bytes` and `KnownRam.dirty`; `load`, `store` and `forget` for what the
fast path does not do, with an offset from the main RAM; `h` the `ExecutedHart`; `sf` the floating-point arithmetic.
`o`, `v`, `e`, `r` are scratch. `seen`, if accesses are observed, is called before each.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from rvtrace_gdb.decode.program.instructions import EBREAK
from rvtrace_gdb.decode.reconstruction.undefined import effects
from rvtrace_gdb.decode.semantics import operations, softfloat, zcmp
from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation
from rvtrace_gdb.decode.semantics.operations import BRANCHES, LOADS, STORES, VALUES, sign_extended
from rvtrace_gdb.decode.semantics.templates import (
    BOX,
    array_index,
    floating_sources,
    fp_operands,
    fp_template,
    integer_sources,
    operands,
    variant,
    x_register,
)

RESULTS = "x[10]", "x[11]", "f[10]", "f[11]"
"""The registers of results, a0, a1, fa0 and fa1: bit n of `ExecutedHart.lost` is for number n."""

Word = tuple[int, int]
"""An instruction: its address, and its 16 or 32 bits."""


class MainRam(NamedTuple):
    """What the fast path of loads and stores reaches. With a *size* that is a power of two, one test is enough for its
    range and alignment.
    """

    base: int
    size: int

    def misses(self, size: int) -> int:
        """Return a mask that has a bit in common with each offset that is not aligned, or out of range unless it is
        between `size` and the next power of two.
        """
        return ~((1 << (self.size - 1).bit_length()) - 1) | size - 1

    @property
    def is_power_of_two(self) -> bool:
        return not self.size & self.size - 1


NO_RAM = MainRam(-1 << 70, 8)
"""No address is there."""


class RunSource:
    """The source lines of one run."""

    def __init__(self, decoder: Decoder, xlen: int, main: MainRam, *, observed: bool, zcm: bool) -> None:
        self._decoder, self._xlen, self._main, self._observed, self._zcm = decoder, xlen, main, observed, zcm
        self._mask, self._sign = (1 << xlen) - 1, 1 << xlen - 1
        self._served = self._is_trapless = False
        self.lines: list[str] = []

    def add(
        self, number: int, pc: int, word: int, following: int | None, outcome: bool | None, *, served: bool
    ) -> None:
        """Append an instruction. *number*: in its run. *following*: the address that came after it, None: not known
        here. *outcome*: of a store-conditional, whether it stored, if a branch shows it. *served*: it is the ebreak of
        a semihosting call.
        """
        self._served = served
        self._is_trapless = following is not None
        several = zcmp.operations(word, self._xlen) if self._zcm and word & 3 != 3 else ()
        for op in several or [self._decoder.decode(word)]:
            lines = list(self._instruction_source(op, number, pc, following, outcome))
            written = " ".join(lines)
            for result, name in enumerate(RESULTS):
                if f"{name}=" in written:
                    lines.append(f"if {name} is None:h.lost|={1 << result}")
            self.lines += lines

    def _instruction_source(
        self, op: Operation, number: int, pc: int, following: int | None, outcome: bool | None
    ) -> Iterator[str]:
        if op.name in LOADS:
            return self._load(op, number)
        if op.name in STORES:
            return self._store(op, number, STORES[op.name], f"x[{op.rs2}]" if op.rs2 else "0")
        if op.name in VALUES:
            return self._assigned_value(op, pc)
        if op.name in BRANCHES:
            return self._branch(op, number, pc, following)
        if op.name in ("jal", "jalr"):
            return self._jump(op, number, pc, following)
        if op.name == "illegal":
            return self._forget_written(op, number)
        if op.name[0] == "f" and not op.name.startswith("fence"):
            return self._floating_point(op, number)
        return self._statement(op, number, outcome)

    # -- integer instructions

    def _assigned_value(self, op: Operation, pc: int) -> Iterator[str]:
        if not op.rd:
            return
        template = VALUES[variant(op, VALUES)]
        value = template.format_map(operands(op, pc, self._xlen))
        yield f"x[{op.rd}]={_if_known(value, integer_sources(op, template))}"

    def _branch(self, op: Operation, number: int, pc: int, following: int | None) -> Iterator[str]:
        values = operands(op, pc, self._xlen)
        if following is None or values["fall"] == values["target"]:
            return
        taken = following == values["target"]
        if op.name in ("beq", "bne") and taken == (op.name == "beq"):
            yield f"if {values['a']}!={values['b']}:h.equal({op.rs1},{op.rs2},{number})"
            return
        template = BRANCHES[variant(op, BRANCHES)]
        condition = f"({template.format_map(values)})"
        wrong = f"not{condition}" if taken else condition
        known = _all_known(integer_sources(op, template))
        yield f"if {known + ' and ' if known else ''}{wrong}:h.contradict({number})"

    def _jump(self, op: Operation, number: int, pc: int, following: int | None) -> Iterator[str]:
        values = operands(op, pc, self._xlen)
        if op.name == "jalr" and following is not None:
            target = f"({values['a']}+{op.imm})&{self._mask - 1}"
            known = _all_known([op.rs1] if op.rs1 else [])
            yield f"if {known + ' and ' if known else ''}{target}!={following}:h.contradict({number})"
        if op.rd:
            yield f"x[{op.rd}]={values['fall']}"

    def _statement(self, op: Operation, number: int, outcome: bool | None) -> Iterator[str]:
        name, _, rest = op.name.partition(".")
        size = 8 if rest.startswith("d") else 4
        a, b = x_register(op.rs1), x_register(op.rs2)
        if name == "lr":
            yield from self._load_as(op, number, size, is_signed=True)
        elif name == "sc":
            yield f"{self._destination(op)}=h.store_conditional({a},{b},{size},{outcome},{number})"
        elif name.startswith("amo"):
            yield f"{self._destination(op)}=h.atomic({name[3:]!r},{a},{b},{size},{number})"
        elif name.startswith("csrr"):
            source = f"{op.rs1}" if name.endswith("i") else a
            writes = name[4] == "w" or op.rs1 != 0
            reads = name[4] != "w" or op.rd != 0
            yield f"{self._destination(op)}=h.csr({name[4]!r},{op.imm},{source},{writes},{reads},{number})"
        elif name in ("mret", "sret"):
            yield f"h.{name}({number})"
        elif name in ("ecall", "ebreak") and self._is_trapless:
            yield f"h.{'semihosting' if self._served else 'trapless'}({number})"

    def _destination(self, op: Operation) -> str:
        return f"x[{op.rd}]" if op.rd else "v"

    def _forget_written(self, op: Operation, number: int) -> Iterator[str]:
        """An instruction without semantics here: what it may write is unknown behind it."""
        found = effects(op, self._xlen)
        if found.registers is None:
            yield "h.forget_registers()"
        else:
            for register in found.registers:
                if register:
                    yield f"x[{register}]=None"
            for register in found.floating:
                yield f"f[{register}]=None"
            if found.state:
                yield "h.forget_floating_state()"
        if found.stores:
            yield f"h.forget_memory({number})"
        elif found.loads and self._observed:
            yield f"h.seen_unknown_load({number})"

    # -- loads and stores

    def _load(self, op: Operation, number: int) -> Iterator[str]:
        size, is_signed = LOADS[op.name]
        return self._load_as(op, number, size, is_signed=is_signed)

    def _load_as(self, op: Operation, number: int, size: int, *, is_signed: bool) -> Iterator[str]:
        yield from self._observe(op, number, size, "load")
        value = self._loaded_value(op, size)
        if not op.rd:
            return
        if not is_signed or 8 * size >= self._xlen:
            yield f"x[{op.rd}]={value}"
            return
        yield f"v={value}"
        high = (1 << self._xlen) - (1 << 8 * size)
        yield f"x[{op.rd}]=(v if v<{1 << 8 * size - 1} else v|{high}) if v is not None else None"

    def _loaded_value(self, op: Operation, size: int) -> str:
        fast = f"m{8 * size}[{array_index(size)}]"
        inside = "" if self._main.is_power_of_two else f" and o<{self._main.size}"
        hits = f"not(o:={self._offset(op)})&{self._main.misses(size)}{inside} and K[o>>3]==255"
        value = f"{fast} if {hits} else load(o,{size})"
        return _if_known(value, [op.rs1] if op.rs1 else [])

    def _store(self, op: Operation, number: int, size: int, value: str) -> Iterator[str]:
        yield from self._observe(op, number, size, "store")
        offset, otherwise = self._offset(op), "if"
        if op.rs1:
            yield f"if x[{op.rs1}] is None:h.forget_memory({number})"
            otherwise = "elif"
        unknown = "" if value == "0" else f"{value} is None or "
        outside = "" if self._main.is_power_of_two else f" or o>={self._main.size}"
        yield f"{otherwise} {unknown}(o:={offset})&{self._main.misses(size)}{outside}:store({offset},{size},{value})"
        fits = value == "0" or (8 * size >= self._xlen and value[0] == "x")
        masked = value if fits else f"{value}&{(1 << 8 * size) - 1}"
        marks = "K[o>>3]=255" if size == 8 else f"K[o>>3]|={(1 << size) - 1}<<(o&7)"
        yield f"else:m{8 * size}[{array_index(size)}]={masked};{marks};D[o>>12]=1"

    def _observe(self, op: Operation, number: int, size: int, kind: str) -> Iterator[str]:
        if self._observed:
            address = _if_known(f"{x_register(op.rs1)}+{op.imm}&{self._mask}", [op.rs1] if op.rs1 else [])
            yield f"h.seen({number},{kind!r},{address},{size})"

    def _offset(self, op: Operation) -> str:
        return f"{x_register(op.rs1)}{op.imm - self._main.base:+d}"

    # -- floating point

    def _floating_point(self, op: Operation, number: int) -> Iterator[str]:
        if op.name in operations.FP_LOADS:
            size = operations.FP_LOADS[op.name]
            yield from self._observe(op, number, size, "load")
            yield f"v={self._loaded_value(op, size)}"
            box = f"v|{BOX}" if size == 4 else "v"
            yield f"f[{op.rd}]={box} if v is not None else None"
            yield "h.dirty()"
        elif op.name in operations.FP_STORES:
            size = operations.FP_STORES[op.name]
            yield from self._store(op, number, size, f"f[{op.rs2}]")
        else:
            yield from self._fp_operation(op)

    def _fp_operation(self, op: Operation) -> Iterator[str]:
        found = fp_template(op)
        template = found.template
        conditions = [_all_known(integer_sources(op, template))]
        conditions += [f"f[{number}] is not None" for number in floating_sources(op, template)]
        if "{rm}" in template:
            yield f"r={op.rm if op.rm < 5 else 'h.rounding()'}"
            conditions.append("r is not None")
        known = " and ".join(dict.fromkeys(it for it in conditions if it)) or "True"
        has_flags = template.startswith("v,e=")
        unknown = "v,e=None,None" if has_flags else "v=None"
        values = operands(op, 0, self._xlen) | fp_operands(op, single=found.single, rm="r")
        yield f"if {known}:{template.format_map(values)}"
        yield f"else:{unknown}"
        if has_flags:
            yield "if e!=0:h.raise_flags(e)"
        if not found.to_integer:
            yield f"f[{op.rd}]=v|{BOX} if v is not None else None" if found.boxed else f"f[{op.rd}]=v"
            yield "h.dirty()"
        elif op.rd:
            yield f"x[{op.rd}]={_if(sign_extended('v', 32, self._xlen), 'v is not None') if found.is_word else 'v'}"


def _all_known(registers: Sequence[int]) -> str:
    return " and ".join(f"x[{number}] is not None" for number in dict.fromkeys(registers))


def _if_known(value: str, registers: Sequence[int]) -> str:
    return _if(value, _all_known(registers))


def _if(value: str, condition: str) -> str:
    return f"({value}) if {condition} else None" if condition else value


LONGEST_RUN = 256
"""Instructions in one function."""

_NAMES = ("x", "f", "m8", "m16", "m32", "m64", "K", "D", "load", "store", "h", "sf", *operations.FUNCTIONS)
"""What generated code may name; a function gets those it uses as argument defaults, which Python reads fastest."""


class RunCompiler:
    """Compiles runs. *names*: what generated code uses, see above."""

    def __init__(self, xlen: int, extensions: Iterable[str], main: MainRam, names: dict[str, Any]) -> None:
        extensions = tuple(extensions)
        self._decoder, self._zcm = Decoder(xlen, extensions), "Zcmp" in extensions
        self._xlen, self._main = xlen, main
        functions = {name: getattr(operations, name) for name in operations.FUNCTIONS}
        self._globals = {**names, "sf": softfloat, **functions}

    def compiled(
        self, words: Sequence[Word], following: int | None, *, observed: bool, served: Callable[[int], bool]
    ) -> Callable[[], None]:
        """Return the function of a run. *following*: the address after its last instruction, None: unknown. *served*
        returns whether the ebreak at an address is that of a semihosting call.
        """
        source = RunSource(self._decoder, self._xlen, self._main, observed=observed, zcm=self._zcm)
        for number, (pc, word) in enumerate(words):
            after = words[number + 1][0] if number + 1 < len(words) else following
            outcome = self._outcome(words, number, following)
            source.add(number, pc, word, after, outcome, served=word == EBREAK and served(pc))
        text = "\n ".join(source.lines or ["pass"])
        defaults = ",".join(f"{name}={name}" for name in _NAMES if name in text)
        namespace = dict(self._globals)
        exec(_compiled(f"def run({defaults}):\n {text}\n"), namespace)
        function: Callable[[], None] = namespace["run"]
        return function

    def _outcome(self, words: Sequence[Word], number: int, following: int | None) -> bool | None:
        """Return whether a store-conditional stored, where the branch behind it shows that; None: unknown."""
        if words[number][1] & 0x7F != 0x2F or number + 1 >= len(words):
            return None
        store = self._decoder.decode(words[number][1])
        pc, word = words[number + 1]
        branch = self._decoder.decode(word)
        after = words[number + 2][0] if number + 2 < len(words) else following
        if not store.name.startswith("sc.") or branch.name not in ("beq", "bne") or not store.rd or after is None:
            return None
        if {branch.rs1, branch.rs2} != {store.rd, 0} or branch.imm == branch.length:
            return None
        is_taken = after == pc + branch.imm & (1 << self._xlen) - 1
        return is_taken == (branch.name == "beq")


@lru_cache(maxsize=8192)
def _compiled(source: str) -> CodeType:
    """Compile source. This is most of the cost of a run, and a program has the same runs again."""
    return compile(source, "<run>", "exec")
