"""What a tandem verifier does not compare: what a trace and a model cannot agree on, and what a trace never reports.

Source: Trace Protocol Specification, version 2018-11-20, 3.1 (non-deterministic state "should be the minimum necessary
... such as single registers or individual bits within registers") and 3.2 (elements absent from a partial trace). The
user may add masks. `absent_of` finds out what a trace never reports.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem
from rvtrace_gdb.decode.tandem.effects import NOWHERE
from rvtrace_gdb.decode.tandem.protocol import GPR, STORE_DATA, ElementForm, Opcode, StateId
from rvtrace_gdb.decode.tandem.registers import PHYSICAL
from rvtrace_gdb.decode.tandem.wording import number_of, register_name
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import number_in

ALL = (1 << 64) - 1
STORES, TRAP_STATUS, ADDRESSES = "stores", "trap-status", "addresses"
ABSENT = {
    STORES: "what was stored",
    ADDRESSES: "where it was stored",
    TRAP_STATUS: "what a trap or a return does to mstatus",
}
"""Elements that a partial trace may lack, besides registers, by the user's names."""

MIP_INPUTS = 1 << 3 | 1 << 7 | 1 << 9 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 10 | 1 << 6 | 1 << 2
"""The bits of mip that come from outside the hart, or may: MSIP, MTIP, SEIP, MEIP, SGEIP, LCOFIP,
and those of VS-mode.
"""

_IDENTITY = {0xF11: "mvendorid", 0xF12: "marchid", 0xF13: "mimpid"}
_SEED = 0x015
_NUMBER = re.compile(r"(?i)0x[0-9a-f]{1,16}|[0-9]{1,20}")


class BadMask(RvtraceError):
    """A mask that cannot be parsed. *text*: the mask; *where*: its place in a file, if it is in one."""

    def __init__(self, text: str, why: str, where: str = "") -> None:
        self.text, self.why = text, why
        super().__init__(f"mask {text!r}: {where}{why}")


@dataclass
class Masks:
    """*ignored*: bits by register that are not compared; *absent*: elements the trace does not have, of `ABSENT`."""

    ignored: dict[int, int] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)

    def add(self, text: str) -> None:
        """Add a mask in the user's notation: `tdata1`, `mstatus:0x600`, `x5`, `stores`. Raises BadMask."""
        name, colon, bits = text.strip().partition(":")
        if name in ABSENT and not colon:
            self.absent.add(name)
            return
        if colon and not _NUMBER.fullmatch(bits):
            raise BadMask(text.strip(), f"{bits!r} is not a bit mask: give a number like 0x600")
        regno = _number_of(name, text.strip())
        self.ignored[regno] = self.ignored.get(regno, 0) | (number_in(bits) if colon else ALL)

    def add_file(self, path: str | Path) -> None:
        """Add a mask for each line; # begins a comment. Raises BadMask, OSError, UnicodeDecodeError."""
        for number, line in enumerate(read_input(path).decode().splitlines(), 1):
            text = line.partition("#")[0].strip()
            if text:
                try:
                    self.add(text)
                except BadMask as error:
                    raise BadMask(error.text, error.why, f"{path}:{number}: ") from None

    def soft(self, regno: int) -> int:
        """Return the bits of a register that may differ."""
        return self.ignored.get(regno, 0) | inputs(regno)

    def described(self) -> Iterator[str]:
        """Yield what the user excluded from comparison, a few words each."""
        for regno, bits in sorted(self.ignored.items()):
            yield register_name(regno) + ("" if bits == ALL else f" bits 0x{bits:x}")
        yield from (ABSENT[name] for name in sorted(self.absent))


def inputs(regno: int) -> int:
    """Return the bits of a register that do not depend on what the hart did before: copied from the trace."""
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
    """Return the masks of a command line. Raises BadMask, OSError, UnicodeDecodeError."""
    masks = Masks()
    for path in files:
        masks.add_file(path)
    for text in texts:
        masks.add(text)
    return masks


_STORE_DATA = frozenset(int(identifier) for identifier in STORE_DATA)
_PLACES = {int(StateId.PHYSICAL_ADDRESS), int(StateId.EFFECTIVE_ADDRESS)}
_LOOKED_AT = 1000  # traps
_PAGE = 0x1000


def absent_of(tandem: DecodedTandem) -> set[str]:
    """Return which of `masks.ABSENT` no group of a trace reports, though there was something to report."""
    found = _memory_elements(tandem)
    status = tandem.index.registers.columns.get(csrs.MSTATUS)
    is_unknown = status is not None and bool(status.unknown)
    if (tandem.index.traps or is_unknown) and not _reports_status(tandem):
        found.add(TRAP_STATUS)
    return found


def _memory_elements(tandem: DecodedTandem) -> set[str]:
    """Return the absent elements about memory."""
    shapes = {number: tandem.trace.automaton.shapes[number] for number in set(tandem.trace.shapes)}
    if not all(shape.known for shape in shapes.values()):
        return set()
    with_data = [shape.forms for shape in shapes.values() if any(_is_data(form) for form in shape.forms)]
    requests = any(form.head == Opcode.MEMORY_REQUEST for shape in shapes.values() for form in shape.forms)
    if requests:
        return set()
    if not with_data:
        index = tandem.index
        unknown = any(writes.unknown for writes in index.memory.values())
        return {STORES} if unknown or len(index.memory_forgotten) > len(index.breaks) else set()
    placed = any(form.identifier in _PLACES for forms in with_data for form in forms if _is_state(form))
    return set() if placed else {ADDRESSES}


def _is_state(form: ElementForm) -> bool:
    return form.head == Opcode.ADDITIONAL_STATE


def _is_data(form: ElementForm) -> bool:
    return _is_state(form) and form.identifier in _STORE_DATA


def _reports_status(tandem: DecodedTandem) -> bool:
    """Return whether a trap reports mstatus, or sstatus."""
    columns = tandem.index.registers.columns
    for trapped in islice(tandem.index.traps, _LOOKED_AT):
        for regno in csrs.STATUS & columns.keys():
            written = columns[regno].last(trapped.group)
            if written is not None and written.group == trapped.group and written.value is not None:
                return True
    return False


def foreign_code(tandem: DecodedTandem, program: Image | None) -> list[tuple[int, bytes]]:
    """Return instructions that ran outside the program, by address: most often those of a boot ROM."""
    index, trace = tandem.index, tandem.trace
    found: dict[int, bytes] = {}
    inside: dict[int, bool] = {}
    trapped = {trap.group for trap in index.traps}
    previous = NOWHERE
    for group, retired in enumerate(index.retired):
        pc = index.origins.get(group, previous)
        previous = index.pcs[group]
        if not (retired or group in trapped) or pc == NOWHERE or inside.get(pc) or not _is_physical(tandem, group):
            continue
        is_inside = program is not None and program.knows(pc)
        instr = None if is_inside else trace.group(group).instr
        inside[pc] = is_inside or instr is not None
        if instr is not None and pc < _PHYSICAL:
            found[pc] = instr.word.to_bytes(instr.length, "little")
    return sorted(found.items())


_PHYSICAL = 1 << 56
"""Addresses from here on are not physical (RISC-V Privileged Architecture, "Sv39": 56 bits)."""


def _is_physical(tandem: DecodedTandem, group: int) -> bool:
    """Return whether instructions are fetched at physical addresses."""
    state = tandem.after(group - 1)
    return state.privilege in (3, None) or state.space == PHYSICAL


def pages(code: Sequence[tuple[int, bytes]]) -> list[tuple[int, int]]:
    """Return the pages that have some code, (address, bytes), in as few pieces as possible."""
    numbers = sorted({at // _PAGE for address, data in code for at in (address, address + len(data) - 1)})
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and sum(found[-1]) == number * _PAGE:
            found[-1] = found[-1][0], found[-1][1] + _PAGE
        else:
            found.append((number * _PAGE, _PAGE))
    return found
