"""From machine code to compiled Python functions, one per basic block.

A generated function looks like this (RV64, `c.lw a5,0(a4)`, `add a0,a0,a5`, `bne a4,a3,...`):

    def block(x=x,m32=m32,load=load):
     x[15]=v if (v:=(m32[o>>2] if not(o:=x[14]-2147483648)&-134217725 else load(o,4,0)))<2147483648 else v|...
     x[10]=(x[10]+x[15])&18446744073709551615
     return 2147483676 if x[14]!=x[13] else 2147483690
"""

from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any, Protocol

from rvtrace_gdb.transport.simulated import arithmetic, softfloat
from rvtrace_gdb.transport.simulated.block import HartBlock, Trap
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.csr import CsrFile
from rvtrace_gdb.transport.simulated.data_access import DataAccess
from rvtrace_gdb.transport.simulated.isa import Decoder, Operation, instruction_length
from rvtrace_gdb.transport.simulated.source import UNFETCHABLE, BlockSource, Shape
from rvtrace_gdb.transport.simulated.system_instructions import SystemInstructions
from rvtrace_gdb.transport.simulated.triggers import Access, TriggerModule

# Interrupts and the end of a time slice are looked at between blocks, so no block may be long.
LONGEST_BLOCK = 64

# What generated code may name; a block gets those it uses as argument defaults, which Python reads fastest.
_NAMES = (
    "x", "f", "m8", "m16", "m32", "m64", "load", "store", "h", "csr", "data", "system", "sf", "Trap",
    "div", "divu", "rem", "remu",
)  # fmt: skip


class TranslatedHart(Protocol):
    """What the translator needs of the hart."""

    bus: Bus
    xlen: int
    x: list[int]
    f: list[int]
    csr: CsrFile
    data: DataAccess
    system: SystemInstructions
    triggers: TriggerModule

    @property
    def accesses_wanted(self) -> bool: ...


class Translator:
    """Makes blocks for one hart."""

    def __init__(self, hart: TranslatedHart, extensions: str) -> None:
        self._hart = hart
        self._bus = hart.bus
        self._extensions = extensions
        self._decoder = Decoder(hart.xlen, extensions)
        self._mask = (1 << hart.xlen) - 1
        self._globals: dict[str, Any] = {
            "x": hart.x, "f": hart.f, "h": hart, "csr": hart.csr, "data": hart.data,
            "system": hart.system, "load": hart.data.load, "store": hart.data.store, "sf": softfloat, "Trap": Trap,
            **{name: getattr(arithmetic, name) for name in ("div", "divu", "rem", "remu")},
            **{f"m{8 * n}": view for n, view in hart.bus.main.views.items()},
        }  # fmt: skip

    def translate(self, pc: int, limit: int = LONGEST_BLOCK) -> HartBlock:
        """The block of at most *limit* instructions at *pc*; where nothing can be fetched, one that traps."""
        source = BlockSource(self._shape())
        pcs: list[int] = []
        words: list[int] = []
        here, ended = pc, False
        while not ended and source.count < limit:
            operation = self._operation(here)
            if operation.name == UNFETCHABLE and pcs:
                break
            if self._execute_trigger(here):
                if pcs:
                    break
                source.check_execute_trigger(here)
            ended = source.add(operation, here)
            pcs.append(here)
            words.append(operation.word)
            here = here + operation.length & self._mask
        if not ended:
            source.end(here)
        return HartBlock(tuple(pcs), tuple(words), here, self._function(source))

    def still_there(self, block: HartBlock) -> bool:
        """Whether memory holds the instructions *block* was made from."""
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
        """The 16 or 32 bits of the instruction at *pc*. Raises `BusError` where there is no RAM."""
        word = int.from_bytes(self._bus.read_bytes(pc, 2), "little")
        if instruction_length(word) == 4:
            word |= int.from_bytes(self._bus.read_bytes(pc + 2 & self._mask, 2), "little") << 16
        return word

    def _execute_trigger(self, pc: int) -> bool:
        triggers = self._hart.triggers
        return bool(triggers.watched & Access.EXECUTE and triggers.fitting(Access.EXECUTE, pc, 1))

    def _shape(self) -> Shape:
        ram = self._bus.main
        return Shape(
            xlen=self._hart.xlen,
            compressed="C" in self._extensions,
            ram_base=ram.base,
            fast_size=1 << ram.size.bit_length() - 1,
            watched=self._hart.triggers.watched,
            tohost=self._hart.data.tohost,
            tells_accesses=self._hart.accesses_wanted,
        )

    def _function(self, source: BlockSource) -> Callable[[], int]:
        text = source.text()
        defaults = ",".join(f"{name}={name}" for name in _NAMES if name in text)
        namespace = dict(self._globals)
        exec(_compiled(f"def block({defaults}):\n {text}\n"), namespace)
        function: Callable[[], int] = namespace["block"]
        return function


class BlockCache:
    """The translated blocks by address; `translated` stays the same dictionary and may be read directly."""

    def __init__(self, translator: Translator, limit: int) -> None:
        self._translator = translator
        self._limit = limit
        self._distrusted: dict[int, HartBlock] = {}
        self.translated: dict[int, HartBlock] = {}

    def translate(self, pc: int) -> HartBlock:
        """The block at *pc*, which is not in `translated`: a distrusted one if memory still holds it, or a new one."""
        block = self._distrusted.pop(pc, None)
        if block is None or not self._translator.still_there(block):
            block = self._translator.translate(pc, self._limit)
        self.translated[pc] = block
        return block

    def distrust(self) -> None:
        """Memory may have changed."""
        self._distrusted.update(self.translated)
        self.translated.clear()

    def clear(self) -> None:
        """What blocks are compiled for has changed (triggers, tohost)."""
        self._distrusted.clear()
        self.translated.clear()


@lru_cache(maxsize=8192)
def _compiled(source: str) -> CodeType:
    """Compiling is most of the cost of a block, and a restarted program has the same ones."""
    return compile(source, "<block>", "exec")
