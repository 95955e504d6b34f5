"""Lists of addresses, one a line, as most simulators can be made to print them.

An address is hexadecimal, with or without 0x. The lists of the reference code (riscv-non-isa/tg-nexus-trace,
refcode/c/NexRvConv.c), with the kind and size of each instruction ("0x20010522,L4") or without, are read too, up to
".end" where they have one. Comments start with #, ; or //. A list does not name its traps.
"""

import re
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

from rvtrace_gdb.decode.executed.pieces import Piece, Reader

_LINE = re.compile(
    rb"\s*(?:(?:0[xX])?([0-9a-fA-F]{1,16})(?:,(?:BN|B|L|[JC]I?|R)[24])?\s*)?(?:(?:#|;|//).*)?", re.DOTALL
)
_END = b".e"
_SIGN_EXTENDED = 0xFFFF_FFFF


class PcListReader(Reader):
    """Reads lists of addresses."""

    expected = "an address in hexadecimal (80000000, 0x80000000, or 0x80000000,L4)"
    advice = "a list of addresses cannot tell traps; the logs of Spike (-l) and QEMU (-d exec,nochain,int) can"
    can_name_traps = False

    @classmethod
    def recognizes(cls, head: Sequence[bytes]) -> bool:
        """Whether the first line that is neither blank nor a comment is an address."""
        for line in head:
            match = _LINE.fullmatch(line)
            if match is None or match[1]:
                return match is not None
        return False

    def pieces(self) -> Iterator[Piece]:
        """The addresses, in lists of a batch of lines each. Raises LogError."""
        for batch in self.log.batches():
            ended = False
            try:
                pcs = [int(line, 16) for line in batch]  # holds for nothing but bare addresses
            except ValueError:
                pcs, ended = self._line_by_line(batch)
            else:
                together = reduce(or_, pcs)
                if together & 1 or not 0 <= together < 1 << self.image.xlen:
                    pcs, ended = self._line_by_line(batch)
            yield pcs
            if ended:
                return

    def _line_by_line(self, batch: list[bytes]) -> tuple[list[int], bool]:
        """The addresses in *batch*, and whether the list ends there."""
        pcs: list[int] = []
        for index, line in enumerate(batch):
            if line.startswith(_END):
                return pcs, True
            match = _LINE.fullmatch(line)
            if match is None:
                self._bad_line(index, line)
            elif match[1]:
                pcs.append(self._address(index, match[1]))
        return pcs, False

    def _address(self, index: int, digits: bytes) -> int:
        pc = int(digits, 16)
        if self.image.xlen == 32 and pc >> 32 == _SIGN_EXTENDED:
            pc &= 0xFFFF_FFFF
        if pc >> self.image.xlen:
            raise self.log.error(index, f"0x{pc:x} is no address of a hart with {self.image.xlen} bits")
        if pc & 1:
            raise self.log.error(index, f"no instruction can be at 0x{pc:x}, an odd address")
        return pc
