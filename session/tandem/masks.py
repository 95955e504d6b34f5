"""What a tandem verifier does not compare: what a trace and a model cannot agree on, and what the user says.

Source: Trace Protocol Specification, version 2018-11-20, 3.1 (non-deterministic state "should be the minimum necessary
... such as single registers or individual bits within registers") and 3.2 (elements absent from a partial trace).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rvtrace_gdb.decode.tandem import csrs
from rvtrace_gdb.decode.tandem.layout import GPR
from rvtrace_gdb.decode.tandem.register_names import number_of
from rvtrace_gdb.decode.tandem.wording import register_name
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import number_in

ALL = (1 << 64) - 1
STORES, TRAP_STATUS, ADDRESSES = "stores", "trap-status", "addresses"
ABSENT = {
    STORES: "what was stored",
    ADDRESSES: "where it was stored",
    TRAP_STATUS: "what a trap or a return does to mstatus",
}
"""Elements a partial trace may be without, besides registers, by the name a user gives."""

MIP_INPUTS = 1 << 3 | 1 << 7 | 1 << 9 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 10 | 1 << 6 | 1 << 2
"""Of mip what comes from outside the hart, or may: MSIP, MTIP, SEIP, MEIP, SGEIP, LCOFIP, and those of VS-mode."""

_IDENTITY = {0xF11: "mvendorid", 0xF12: "marchid", 0xF13: "mimpid"}
_SEED = 0x015
_NUMBER = re.compile(r"(?i)0x[0-9a-f]{1,16}|[0-9]{1,20}")


class BadMask(RvtraceError):
    """A mask that cannot be read. *text*: as it was given; *where*: in a file, if it was."""

    def __init__(self, text: str, why: str, where: str = "") -> None:
        self.text, self.why = text, why
        super().__init__(f"mask {text!r}: {where}{why}")


@dataclass
class Masks:
    """*ignored*: bits by register that are not compared; *absent*: elements the trace does not have, of `ABSENT`."""

    ignored: dict[int, int] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    def add(self, text: str) -> None:
        """A mask as users write it: `tdata1`, `mstatus:0x600`, `x5`, `stores`. Raises BadMask."""
        name, colon, bits = text.strip().partition(":")
        if name in ABSENT and not colon:
            self.absent.add(name)
            return
        if colon and not _NUMBER.fullmatch(bits):
            raise BadMask(text.strip(), f"{bits!r} are no bits: a number as 0x600")
        regno = _number_of(name, text.strip())
        self.ignored[regno] = self.ignored.get(regno, 0) | (number_in(bits) if colon else ALL)

    def add_file(self, path: str | Path) -> None:
        """A mask a line, # begins a comment. Raises BadMask, OSError, UnicodeDecodeError."""
        for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
            text = line.partition("#")[0].strip()
            if text:
                try:
                    self.add(text)
                except BadMask as error:
                    raise BadMask(error.text, error.why, f"{path}:{number}: ") from None

    def soft(self, regno: int) -> int:
        """The bits of a register that need not be the same."""
        return self.ignored.get(regno, 0) | inputs(regno)

    def described(self) -> Iterator[str]:
        """What is not compared because the user said so, a few words each."""
        for regno, bits in sorted(self.ignored.items()):
            yield register_name(regno) + ("" if bits == ALL else f" bits 0x{bits:x}")
        yield from (ABSENT[name] for name in sorted(self.absent))


def inputs(regno: int) -> int:
    """The bits of a register that are no function of what the hart did before: copied from the trace."""
    if regno == csrs.MIP:
        return MIP_INPUTS
    if regno >= GPR:
        return ALL if regno in (csrs.MTIME, csrs.PC_PHYSICAL) else 0
    return ALL if csrs.is_counter(regno) or regno in _IDENTITY or regno == _SEED else 0


COPIED = (
    "counters and time (mcycle, minstret, cycle, time, instret, hpm counters)",
    "mip but for SSIP and STIP",
    *_IDENTITY.values(),
    "seed",
)
"""`inputs` in words."""


def _number_of(name: str, text: str) -> int:
    regno = number_of(name)
    if regno is None:
        raise BadMask(text, f"there is no register {name!r}, and none of {', '.join(ABSENT)}")
    return regno


def masks_of(texts: Iterable[str], files: Iterable[str] = ()) -> Masks:
    """Those of a command line. Raises BadMask, OSError, UnicodeDecodeError."""
    masks = Masks()
    for path in files:
        masks.add_file(path)
    for text in texts:
        masks.add(text)
    return masks
