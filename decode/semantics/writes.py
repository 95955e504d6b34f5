"""Which registers an instruction writes, by its encoding alone.

Registers have the numbers of the Debug Specification, and `csrs.PRIVILEGE`. Sources: those of `encodings`, and Volume
I, 20240411, chapter 30 (V: what its instructions write besides vector registers).
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import FCSR, FFLAGS, FLOATING, MSTATUS, PRIVILEGE, F, X
from rvtrace_gdb.decode.semantics import operations, zcmp
from rvtrace_gdb.decode.semantics.encodings import TABLES, Decoder, Operation
from rvtrace_gdb.decode.semantics.register_uses import register_use
from rvtrace_gdb.decode.semantics.templates import fp_template

EXTENSIONS = tuple(dict.fromkeys(name.rstrip("0123456789") for name in (*TABLES, "C", "Zcb")))
"""All that can be decoded: no two of them use the same encodings for instructions that write different registers."""

_CUSTOM = (0x0B, 0x2B, 0x5B, 0x7B)


class Writes(NamedTuple):
    """What an instruction writes, except for x0 and the pc.

    registers  those that it writes whenever it retires
    possible   those that it may write, besides them; None: it may write every register
    flags      it may set floating-point exception flags; *floating*: it makes mstatus.FS Dirty
    """

    registers: frozenset[int] = frozenset()
    possible: frozenset[int] | None = frozenset()
    flags: bool = False
    floating: bool = False


class WriteTable:
    """What the instructions of one XLEN write. *zcm*: the hart has Zcmp or Zcmt."""

    def __init__(self, xlen: int, *, zcm: bool) -> None:
        self._xlen, self._zcm = xlen, zcm
        names = [name for name in EXTENSIONS if not zcm or name not in "FD"] if zcm else EXTENSIONS
        self._decoder = _decoder(xlen, tuple(names))
        self._wide = _decoder(xlen, EXTENSIONS)

    def operations_of(self, word: int) -> Sequence[Operation]:
        """Return what an instruction does: several operations, in order, for one of Zcmp."""
        if word & 3 == 3:
            return [self._wide.decode(word)]
        several = zcmp.operations(word, self._xlen) if self._zcm else ()
        return several or [self._decoder.decode(word)]

    def writes_of(self, word: int) -> Writes:
        """Return what an instruction writes."""
        return _together([_of_operation(it, self._xlen) for it in self.operations_of(word)])


@lru_cache(maxsize=8)
def _decoder(xlen: int, extensions: tuple[str, ...]) -> Decoder:
    return Decoder(xlen, extensions)


def _together(several: Sequence[Writes]) -> Writes:
    if len(several) == 1:
        return several[0]
    return Writes(frozenset().union(*(it.registers for it in several)))


def _of_operation(op: Operation, xlen: int) -> Writes:
    name = op.name
    rd = frozenset({X + op.rd} if op.rd else ())
    if name == "illegal":
        return _undecodable(op, xlen)
    if name in operations.VALUES or name in operations.LOADS or name in ("jal", "jalr"):
        return Writes(rd)
    if name.startswith(("lr.", "sc.", "amo")):
        return Writes(rd)
    if name.startswith("csrr"):
        writes = name[4] == "w" or op.rs1
        return Writes(rd | {op.imm}, floating=op.imm in FLOATING) if writes else Writes(rd)
    if name in ("mret", "sret"):
        return Writes(frozenset({MSTATUS, PRIVILEGE}))
    if name in operations.FP_LOADS:
        return Writes(frozenset({F + op.rd}), floating=True)
    if name[0] == "f" and name not in operations.FP_STORES and not name.startswith("fence"):
        found = fp_template(op)
        written = rd if found.to_integer else frozenset({F + op.rd})
        flags = found.template.startswith("v,e=")
        return Writes(written, flags=flags, floating=flags or not found.to_integer)
    return Writes()


def _undecodable(op: Operation, xlen: int) -> Writes:
    """Return what an instruction writes that is not executed here, or may write: of a newer extension, or custom."""
    use = None if op.length == 2 else register_use(op.word, xlen)
    if use is not None:
        return Writes(frozenset(use.written), use.possible, flags=use.flags, floating=use.floating)
    opcode, rd = op.word & 0x7F, op.word >> 7 & 31
    if op.length == 2 or opcode in _CUSTOM or op.word & 0x1F == 0x1F:  # 48 bits and more
        return Writes(possible=None)
    return Writes(possible=frozenset({F + rd, FFLAGS, FCSR} | {X + it for it in (rd, rd | 1) if it}))
