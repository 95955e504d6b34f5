"""What hart a model is to be: what the user says, or else the trace's parameters and the program."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.protocol import TandemParameters
from rvtrace_gdb.support.errors import RvtraceError

PAGE = 1 << 12
USUAL_MEMORY = (0x8000_0000, 1 << 31)
_PICCOLO = ("piccolo", "piccolo-2018")  # the one of the cores that is smaller than its parameters say
_LETTERS = "iemafdqcbvh"
_ALWAYS = ["zicsr", "zifencei", "zicntr"]  # which were parts of "I"
_ISA = re.compile(r"rv(32|64)([a-z]+)((?:_[a-z][a-z0-9]*)*)")
_PRIVILEGES = ("m", "mu", "msu")
_MMUS = {32: ("sv32",), 64: ("sv39", "sv48", "sv57")}
_FLEN = {"q": 128, "d": 64, "f": 32}
MOST_PMP = 64
COUNTERS = {0xC00: 0xB00, 0xC02: 0xB02, 0xC80: 0xB80, 0xC82: 0xB82}
"""The read-only counters, with the writable counters they show."""
DEVICES = 1 << 28
"""The size in bytes of the range of physical addresses, the last ones, that a model reserves for its devices."""
DCSR = 0x7B0
HALTING = 1 << 15 | 1 << 13 | 1 << 12 | 1 << 2
"""The bits of dcsr that would stop a model: ebreakm, ebreaks, ebreaku, step."""


class BadModel(RvtraceError):
    """A model, or a hart, that is not supported."""


@dataclass(frozen=True)
class ModelOptions:
    """The user's options for a model; None and () are the defaults.

    isa      "rv64imafdc_zicsr_zba"; else the trace's XLEN and FLEN with IMAC, and what the program's attributes name
    priv     privilege modes, "m", "mu" or "msu"
    pmp      PMP regions
    mmu      the largest mode of address translation, "sv32", "sv39", "sv48" or "sv57"; else the largest there is
    memory   RAM besides the program's pages and the usual 2 GiB: base and size in bytes
    start    the pc after a reset; else the program's entry
    python   the interpreter that has Spike; else rvtrace's own
    timeout  the limit for each answer, in seconds
    """

    isa: str | None = None
    priv: str | None = None
    pmp: int = 0
    mmu: str | None = None
    memory: tuple[tuple[int, int], ...] = ()
    start: int | None = None
    python: str | None = None
    timeout: float = 30


@dataclass(frozen=True)
class ModelMachine:
    """The hart and memory that a model implements.

    *mmu*: None without S-mode. *memory*: base and size of each RAM, in whole pages, not adjacent, in ascending order.
    """

    xlen: int
    isa: str
    priv: str
    pmp: int
    mmu: str | None
    memory: tuple[tuple[int, int], ...]
    start: int
    program: tuple[tuple[int, bytes], ...]

    @property
    def letters(self) -> str:
        """The one-letter extensions of the ISA, lower case."""
        return "".join(sorted(_parsed(self.isa)[1], key=_LETTERS.index))

    @property
    def more(self) -> list[str]:
        """The other extensions of the ISA."""
        return _parsed(self.isa)[2]

    @property
    def flen(self) -> int:
        """The width of floating-point registers, 0 without them."""
        return next((size for letter, size in _FLEN.items() if letter in self.letters), 0)

    @property
    def modes(self) -> str:
        """The privilege modes as they are printed."""
        return ", ".join(self.priv.upper())


def machine_of(image: Image | None, parameters: TandemParameters, options: ModelOptions) -> ModelMachine:
    """Return the machine for a program and a trace. Raises BadModel for options that contradict these or each other."""
    program = () if image is None else tuple(image.segments)
    isa = options.isa.lower() if options.isa else usual_isa(image, parameters)
    xlen = _parsed(isa)[0]
    if xlen != parameters.xlen:
        raise BadModel(f"a model of {isa} cannot follow a trace of RV{parameters.xlen}")
    priv = options.priv or ("msu" if parameters.supervisor and parameters.dialect.name not in _PICCOLO else "mu")
    if priv not in _PRIVILEGES:
        raise BadModel(f"a hart has privilege modes {', '.join(_PRIVILEGES[:-1])} or {_PRIVILEGES[-1]}, not {priv!r}")
    if not 0 <= options.pmp <= MOST_PMP:
        raise BadModel(f"a hart has 0 to {MOST_PMP} PMP regions, not {options.pmp}")
    mmus = _MMUS[xlen] if priv == "msu" else ()
    if options.mmu is not None and options.mmu not in mmus:
        having = ", ".join(mmus) if mmus else "no address translation"
        raise BadModel(f"a hart of {isa} with modes {priv} has {having}, not {options.mmu!r}")
    entry = 0 if image is None else image.entry
    start = options.start if options.start is not None else entry or USUAL_MEMORY[0]
    if not 0 <= start < 1 << xlen:
        raise BadModel(f"an RV{xlen} hart cannot start at {start:#x}")
    wanted = [USUAL_MEMORY, *options.memory, *((at, len(data)) for at, data in program)]
    mmu = options.mmu or (mmus[-1] if mmus else None)
    return ModelMachine(xlen, isa, priv, options.pmp, mmu, pages(wanted, xlen), start, program)


def usual_isa(image: Image | None, parameters: TandemParameters) -> str:
    """Return the default ISA: IMAC, floating point as wide as the trace's, and the program's own extensions."""
    small = parameters.dialect.name in _PICCOLO  # riscv-tests name F and D, which these cores do not have
    letters = set("imac") if small else set("imac" + {0: "", 32: "f", 64: "fd"}[parameters.flen])
    needed = _needed(image)
    if not small:
        letters |= {name for name in needed if name in _LETTERS}
    more = _ALWAYS + [name for name in needed if len(name) > 1 and name not in _ALWAYS]
    return "_".join([f"rv{parameters.xlen}{''.join(sorted(letters, key=_LETTERS.index))}", *more])


def _needed(image: Image | None) -> list[str]:
    """Return the extensions named by the attributes of the program's files, without versions, each once."""
    found: dict[str, None] = {}
    for elf, _ in [] if image is None else image.elves:
        names = elf.isa.lower()[4:].split("_")
        found.update((re.sub(r"\d+p\d+$", "", name), None) for name in names if name)
    return list(found)


def pages(ranges: Iterable[tuple[int, int]], xlen: int) -> tuple[tuple[int, int], ...]:
    """Extend ranges of addresses to whole pages and merge adjacent ones. Raises BadModel for impossible ranges."""
    merged: list[list[int]] = []
    for base, size in sorted(ranges):
        if size <= 0 or base < 0 or base + size > memory_end(xlen):
            raise BadModel(
                f"{base:#x}+{size:#x} is not memory of an RV{xlen} model, which has 0 to {memory_end(xlen) - 1:#x}"
            )
        start, end = base & -PAGE, base + size + PAGE - 1 & -PAGE
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    return tuple((start, end - start) for start, end in merged)


def memory_end(xlen: int) -> int:
    """Return the first address that cannot be memory: addresses have 34 bits (Sv32) or 56 (Sv39 and larger), and the
    last ones are for devices.
    """
    return (1 << (34 if xlen == 32 else 56)) - DEVICES


def memory_line(memory: Iterable[tuple[int, int]]) -> str:
    return "memory: " + ", ".join(f"{base:#x}-{base + size - 1:#x}" for base, size in memory)


def _parsed(isa: str) -> tuple[int, set[str], list[str]]:
    found = _ISA.fullmatch(isa)
    if found is None or found[2][0] not in "ieg" or set(found[2]) - set(_LETTERS + "g"):
        raise BadModel(f"{isa!r} is not an ISA such as rv64imafdc_zba")
    letters = set(found[2]) | (set("imafd") if "g" in found[2] else set())
    return int(found[1]), letters - {"g"}, found[3].split("_")[1:]
