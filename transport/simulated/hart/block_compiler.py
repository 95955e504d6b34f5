"""From machine code to compiled Python functions, one per basic block.

A generated function looks like this (RV64, `c.lw a5,0(a4)`, `add a0,a0,a5`, `bne a4,a3,...`):

    def block(x=x,m32=m32,load=load):
     x[15]=v if (v:=(m32[o>>2] if not(o:=x[14]-2147483648)&-134217725 else load(o,4,0)))<2147483648 else v|...
     x[10]=(x[10]+x[15])&18446744073709551615
     return 2147483676 if x[14]!=x[13] else 2147483690

Its source is made of the templates of `decode.semantics.operations` and of `instructions`; loads and stores have a fast
path into RAM; the checks of mstatus.FS and of the rounding mode are added here. Generated code uses these names: `x`
and `f` the register files, `m8`..`m64` main memory as arrays, `load` and `store` for what the fast path does not do,
`h` the hart, `csr` its CSRs, `data` its `DataAccess`, `system` its `SystemInstructions`, `sf` the floating-point
arithmetic; `o` (an offset into main memory), `v`, `e`, `t`, `r`, `w` are scratch.
"""

from collections.abc import Callable, Iterator, Sequence, Set
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple, Protocol

from rvtrace_gdb.decode.semantics import operations, softfloat
from rvtrace_gdb.decode.semantics.encodings import Decoder, Operation, instruction_length
from rvtrace_gdb.decode.semantics.operations import BRANCHES, LOADS, STORES, VALUES, sign_extended
from rvtrace_gdb.decode.semantics.templates import (
    BOX,
    array_index,
    fp_operands,
    fp_template,
    operands,
    variant,
    x_register,
)
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.hart.block import (
    ILLEGAL_INSTRUCTION,
    INSTRUCTION_ACCESS_FAULT,
    INSTRUCTION_MISALIGNED,
    HartBlock,
    HartTrap,
)
from rvtrace_gdb.transport.simulated.hart.csr import FS, CsrFile
from rvtrace_gdb.transport.simulated.hart.instructions import (
    ENDING,
    REPORTED_ACCESSES,
    REPORTED_WHOLE,
    STATEMENTS,
    DataAccess,
    SystemInstructions,
)
from rvtrace_gdb.transport.simulated.hart.kernel_blocks import KernelBlocks
from rvtrace_gdb.transport.simulated.hart.reports import RetirementReports
from rvtrace_gdb.transport.simulated.hart.triggers import TriggerAccess, TriggerCsrs

UNFETCHABLE = "unfetchable"
"""The mnemonic of an instruction that cannot be fetched; `imm` is the address."""


class CodeProperties(NamedTuple):
    """The properties besides the instructions that generated code depends on."""

    xlen: int
    compressed: bool
    """Whether instructions may lie on odd halfwords."""
    ram_base: int
    fast_size: int
    """Bytes of main memory the fast path reaches: a power of two, for one operation tests range and alignment."""
    watched: TriggerAccess
    tohost: int | None
    reports_accesses: bool = False
    """Whether `RetirementReports.accessed` is called for each access."""
    marked: bool = False
    """Whether not all of memory is known, so that no access takes the fast path."""


class BlockSource:
    """The source lines of one function, added instruction by instruction."""

    def __init__(self, shape: CodeProperties) -> None:
        self._shape = shape
        self._mask = (1 << shape.xlen) - 1
        self._sign = 1 << shape.xlen - 1
        self._fp_checked = self._fp_dirty = False
        self.lines: list[str] = []
        self.count = 0

    def add(self, op: Operation, pc: int) -> bool:
        """Append one instruction. Return True when it must be the last one."""
        lines, ends = self._instruction_source(op, pc)
        self.lines += lines
        self.count += 1
        return ends

    def _instruction_source(self, op: Operation, pc: int) -> tuple[Iterator[str], bool]:
        if op.name in LOADS:
            return self._load(op, *LOADS[op.name]), False
        if op.name in STORES:
            return self._store(op, STORES[op.name], x_register(op.rs2), self._shape.xlen), False
        if op.name in VALUES:
            return self._assigned_value(op, pc), False
        if op.name in BRANCHES:
            return self._branch(op, pc), True
        if op.name in ("jal", "jalr"):
            return self._jump(op, pc), True
        if op.name == UNFETCHABLE:
            return self._raise_trap(INSTRUCTION_ACCESS_FAULT, op.imm), True
        if op.name[0] == "f" and not op.name.startswith("fence"):
            return self._floating_point(op, pc), False
        return self._statement(op, pc), self._statement_key(op) in ENDING

    # -- integer instructions

    def _assigned_value(self, op: Operation, pc: int) -> Iterator[str]:
        if op.rd:
            yield f"x[{op.rd}]={VALUES[variant(op, VALUES)].format_map(operands(op, pc, self._shape.xlen))}"

    def _branch(self, op: Operation, pc: int) -> Iterator[str]:
        values = operands(op, pc, self._shape.xlen)
        condition = BRANCHES[variant(op, BRANCHES)].format_map(values)
        if values["target"] & 2 and not self._shape.compressed:
            yield f"if {condition}:{self._misaligned(values['target'])}"
            yield f"return {values['fall']}"
        else:
            yield f"return {values['target']} if {condition} else {values['fall']}"

    def _jump(self, op: Operation, pc: int) -> Iterator[str]:
        values = operands(op, pc, self._shape.xlen)
        target = str(values["target"])
        if op.name == "jalr":
            yield f"t=({values['a']}+{op.imm})&{self._mask - 1}"
            target = "t"
        if not self._shape.compressed:
            yield f"if {target}&2:{self._misaligned(target)}"
        if op.rd:
            yield f"x[{op.rd}]={values['fall']}"
        yield f"return {target}"

    def _misaligned(self, target: int | str) -> str:
        return ";".join(self._raise_trap(INSTRUCTION_MISALIGNED, target))

    def _raise_trap(self, cause: int, value: int | str) -> Iterator[str]:
        yield f"h.position={self.count}"
        yield f"raise Trap({cause},{value})"

    def _statement_key(self, op: Operation) -> str:
        name = op.name.partition(".")[0]
        if name in ("lr", "sc"):
            return name
        return "amo" if name.startswith("amo") else variant(op, STATEMENTS)

    def _statement(self, op: Operation, pc: int) -> Iterator[str]:
        values = operands(op, pc, self._shape.xlen)
        values["size"] = 8 if op.name.endswith(".d") else 4
        values["operation"] = op.name.removeprefix("amo").partition(".")[0]
        values["reported"] = values["operation"].removesuffix("u")  # data trace does not tell signed from unsigned
        values["data"] = (1 << 8 * values["size"]) - 1
        key = self._statement_key(op)
        if self._shape.reports_accesses:
            key = REPORTED_WHOLE.get(key, key)
        lines = [line.format_map(values) for line in STATEMENTS[key]]
        yield f"h.position={self.count}"
        yield from lines
        if access := REPORTED_ACCESSES.get(key.partition(" ")[0]):
            yield from self._report_access(access.format_map(values))
        if op.rd and any(line.startswith("v=") for line in lines):
            yield f"x[{op.rd}]=v"
        if key in ENDING:
            yield "return t" if lines[-1].startswith("t=") else f"return {values['fall']}"

    # -- loads and stores

    def _load(self, op: Operation, size: int, is_signed: bool) -> Iterator[str]:
        yield from self._watch(op, TriggerAccess.LOAD, size)
        value = self._loaded_value(op, size)
        if self._shape.reports_accesses:
            yield f"w={value}"
            yield from self._report_access(f"'load',{size},'',{self._address_expression(op)},w")
            value = "w"
        if is_signed:
            value = sign_extended(f"({value})", 8 * size, self._shape.xlen)
        yield f"x[{op.rd}]={value}" if op.rd else f"v={value}"

    def _loaded_value(self, op: Operation, size: int) -> str:
        fast = f"m{8 * size}[{array_index(size)}]"
        slow = f"load(o,{size},{self.count})"
        if self._shape.marked:
            return f"load({self._offset(op)},{size},{self.count})"
        return f"{fast} if not(o:={self._offset(op)})&{self._slow_mask(size)} else {slow}"

    def _store(self, op: Operation, size: int, value: str, bits: int) -> Iterator[str]:
        yield from self._watch(op, TriggerAccess.STORE, size)
        if 8 * size < bits:
            value += f"&{(1 << 8 * size) - 1}"
        tohost = "" if self._shape.tohost is None else f" or o=={self._shape.tohost - self._shape.ram_base}"
        if self._shape.marked:
            yield f"store({self._offset(op)},{size},{self.count},{value})"
            return
        yield f"o={self._offset(op)}"
        yield f"if o&{self._slow_mask(size)}{tohost}:store(o,{size},{self.count},{value})"
        yield f"else:m{8 * size}[{array_index(size)}]={value}"
        yield from self._report_access(f"'store',{size},'',{self._address_expression(op)},{value}")

    def _address_expression(self, op: Operation) -> str:
        return f"{x_register(op.rs1)}+{op.imm}&{self._mask}"

    def _report_access(self, access: str) -> Iterator[str]:
        """Yield the call that reports an access. *access*: the fields of `Accessed` after the first; its registers must
        not have changed yet.
        """
        if self._shape.reports_accesses:
            yield f"accessed({self.count},{access})"

    def _offset(self, op: Operation) -> str:
        return f"{x_register(op.rs1)}{op.imm - self._shape.ram_base:+d}"

    def _slow_mask(self, size: int) -> int:
        """Return a mask that has a bit in common with every offset that the fast path cannot take, negative ones
        included.
        """
        return ~(self._shape.fast_size - 1) | size - 1

    def _watch(self, op: Operation, access: TriggerAccess, size: int) -> Iterator[str]:
        if self._shape.watched & access:
            yield f"h.position={self.count}"
            yield f"h.trigger_effects.fire({int(access)},{self._address_expression(op)},{size})"

    # -- floating point

    def _floating_point(self, op: Operation, pc: int) -> Iterator[str]:
        yield from self._fp_enabled(op)
        if op.name in operations.FP_LOADS:
            yield from self._watch(op, TriggerAccess.LOAD, operations.FP_LOADS[op.name])
            yield f"v={self._loaded_value(op, operations.FP_LOADS[op.name])}"
            yield from self._report_access(f"'load',{operations.FP_LOADS[op.name]},'',{self._address_expression(op)},v")
            yield from self._write_f(op, op.name == "flw")
        elif op.name in operations.FP_STORES:
            yield from self._store(op, operations.FP_STORES[op.name], f"f[{op.rs2}]", 64)
        else:
            yield from self._fp_operation(op, pc)

    def _fp_operation(self, op: Operation, pc: int) -> Iterator[str]:
        found = fp_template(op)
        if "{rm}" in found.template:
            yield from self._rounding(op)
        values = operands(op, pc, self._shape.xlen)
        yield found.template.format_map(values | fp_operands(op, single=found.single, rm=op.rm if op.rm < 5 else "r"))
        if not found.to_integer:
            yield from self._write_f(op, found.boxed)
        elif op.rd:
            yield f"x[{op.rd}]={sign_extended('v', 32, self._shape.xlen) if found.is_word else 'v'}"
        if found.template.startswith("v,e="):
            yield "if e:csr.raise_flags(e)"

    def _fp_enabled(self, op: Operation) -> Iterator[str]:
        """Yield the check of mstatus.FS, once in a block, where it cannot change: Off makes the instruction illegal."""
        if not self._fp_checked:
            self._fp_checked = True
            yield f"if not csr.mstatus&{FS}:{self._illegal(op)}"

    def _rounding(self, op: Operation) -> Iterator[str]:
        """Yield the check of the rounding mode: 5 and 6 are reserved, and 7 means the one in frm, where these are
        reserved as well.
        """
        if op.rm == 7:
            yield "r=csr.floating_point.frm"
            yield f"if r>4:{self._illegal(op)}"
        elif op.rm > 4:
            yield from self._raise_trap(ILLEGAL_INSTRUCTION, op.word)

    def _illegal(self, op: Operation) -> str:
        return ";".join(self._raise_trap(ILLEGAL_INSTRUCTION, op.word))

    def _write_f(self, op: Operation, single: bool) -> Iterator[str]:
        yield f"f[{op.rd}]=v|{BOX}" if single else f"f[{op.rd}]=v"
        if not self._fp_dirty:
            self._fp_dirty = True
            yield f"csr.mstatus|={FS}"


# Interrupts and the end of a time slice are looked at between blocks, so no block may be long.
LONGEST_BLOCK = 64

# What generated code may name; a block gets those it uses as argument defaults, which Python reads fastest.
_NAMES = (
    "x", "f", "m8", "m16", "m32", "m64", "load", "store", "h", "csr", "data", "system", "sf", "Trap",
    "accessed",
    *operations.FUNCTIONS,
)  # fmt: skip


class TranslatedHart(Protocol):
    """The part of the hart that the translator uses."""

    bus: Bus
    xlen: int
    x: list[int]
    f: list[int]
    csr: CsrFile
    data: DataAccess
    system: SystemInstructions
    triggers: TriggerCsrs
    reports: RetirementReports

    @property
    def calls_accessed(self) -> bool: ...


class Translator:
    """Translates blocks for one hart."""

    def __init__(self, hart: TranslatedHart, extensions: Sequence[str]) -> None:
        self._hart = hart
        self._bus = hart.bus
        self._extensions = extensions
        self._decoder = Decoder(hart.xlen, extensions)
        self._mask = (1 << hart.xlen) - 1
        self.stops: Set[int] = frozenset()
        """Where blocks begin that the kernel does not execute: breakpoints of who runs the hart block by block."""
        self._globals: dict[str, Any] = {
            "x": hart.x, "f": hart.f, "h": hart, "csr": hart.csr, "data": hart.data,
            "system": hart.system, "load": hart.data.load, "store": hart.data.store, "sf": softfloat, "Trap": HartTrap,
            "accessed": hart.reports.accessed,
            **{name: getattr(operations, name) for name in operations.FUNCTIONS},
            **{f"m{8 * n}": view for n, view in hart.bus.main.views.items()},
        }  # fmt: skip

    def translate(self, pc: int, limit: int = LONGEST_BLOCK) -> HartBlock:
        """Return the block of at most *limit* instructions at *pc*; where nothing can be fetched, one that traps."""
        source = BlockSource(self.shape())
        pcs: list[int] = []
        operations: list[Operation] = []
        here, ended, stopped, triggers = pc, False, False, self._hart.triggers
        while not ended and source.count < limit:
            operation = self._operation(here)
            if operation.name == UNFETCHABLE and pcs:
                break
            if triggers.watched & TriggerAccess.EXECUTE and triggers.fitting(TriggerAccess.EXECUTE, here, 1):
                if pcs:
                    break
                stopped = True
                source.lines.append(f"h.position=0;h.trigger_effects.fire({int(TriggerAccess.EXECUTE)},{here},1)")
            if here in self.stops:
                if pcs:
                    break
                stopped = True
            ended = source.add(operation, here)
            pcs.append(here)
            operations.append(operation)
            here = here + operation.length & self._mask
        if not ended:
            source.lines.append(f"return {here}")  # it continues in another block
        block = HartBlock(tuple(pcs), tuple(operation.word for operation in operations), here, lambda: first_run())
        block.operations = None if stopped else tuple(operations)

        def first_run() -> int:
            block.run = self._function(source)  # most of a block's cost, and the kernel may execute it all the time
            return block.run()

        return block

    def still_there(self, block: HartBlock) -> bool:
        """Return whether memory holds the instructions *block* was made from."""
        try:
            return all(self._fetch(pc) == word for pc, word in zip(block.pcs, block.words, strict=True))
        except BusError:
            return False

    def _operation(self, pc: int) -> Operation:
        try:
            return self._decoder.decode(self._fetch(pc))
        except BusError as error:
            return Operation(UNFETCHABLE, 2, 0, imm=error.address)

    def _fetch(self, pc: int) -> int:
        """Return the 16 or 32 bits of the instruction at *pc*. Raises `BusError` where there is no RAM."""
        word = int.from_bytes(self._bus.read_bytes(pc, 2), "little")
        if instruction_length(word) == 4:
            word |= int.from_bytes(self._bus.read_bytes(pc + 2 & self._mask, 2), "little") << 16
        return word

    def shape(self) -> CodeProperties:
        """Return the properties in force."""
        ram = self._bus.main
        return CodeProperties(
            xlen=self._hart.xlen,
            compressed="C" in self._extensions,
            ram_base=ram.base,
            fast_size=1 << ram.size.bit_length() - 1,
            watched=self._hart.triggers.watched,
            tohost=self._hart.data.tohost,
            reports_accesses=self._hart.calls_accessed,
            marked=ram.marks is not None,
        )

    def _function(self, source: BlockSource) -> Callable[[], int]:
        text = "\n ".join(source.lines)
        defaults = ",".join(f"{name}={name}" for name in _NAMES if name in text)
        namespace = dict(self._globals)
        exec(_compiled(f"def block({defaults}):\n {text}\n"), namespace)
        function: Callable[[], int] = namespace["block"]
        return function


class BlockCache:
    """The translated blocks by address; `translated` stays the same dictionary and may be read directly. *kernel*: it
    knows them, too.
    """

    def __init__(self, translator: Translator, limit: int, kernel: KernelBlocks | None = None) -> None:
        self._translator = translator
        self._limit = limit
        self._kernel = kernel
        self._distrusted: dict[int, HartBlock] = {}
        self.translated: dict[int, HartBlock] = {}

    def translate(self, pc: int) -> HartBlock:
        """Return the block at *pc*, which is not in `translated`: a distrusted one if memory still holds it, or a new
        one.
        """
        block = self._distrusted.pop(pc, None)
        if block is None or not self._translator.still_there(block):
            block = self._translator.translate(pc, self._limit)
        self.translated[pc] = block
        if self._kernel is not None:
            self._kernel.add(block)
        return block

    def distrust(self) -> None:
        """Verify blocks before they are used again, as memory may have changed."""
        self._distrusted.update(self.translated)
        self._forget()

    def clear(self) -> None:
        """Drop all blocks, as what they are compiled for has changed (triggers, tohost)."""
        self._distrusted.clear()
        self._forget()

    def _forget(self) -> None:
        self.translated.clear()
        if self._kernel is not None:
            self._kernel.forget()


class TranslatedCode:
    """The code of one hart: in blocks, and one instruction at a time, as it is stepped; `kernel` has the blocks that
    the compiled kernel executes.
    """

    def __init__(self, translator: Translator, bus: Bus) -> None:
        self.translator = translator
        self.kernel = KernelBlocks(bus, translator.shape)
        self.blocks = BlockCache(translator, LONGEST_BLOCK, self.kernel)
        self.singles = BlockCache(translator, 1)

    def distrust(self) -> None:
        self.blocks.distrust()
        self.singles.distrust()

    def clear(self) -> None:
        self.blocks.clear()
        self.singles.clear()


@lru_cache(maxsize=8192)
def _compiled(source: str) -> CodeType:
    """Compile source. This is most of the cost of a block, and a restarted program has the same blocks."""
    return compile(source, "<block>", "exec")
