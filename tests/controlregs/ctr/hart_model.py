"""A hart's CTR registers as a debugger meets them, written from the documents' text for these tests only.

Numbers and bit positions are spelled out here rather than taken from the tables under test. The options are what the
documents leave to an implementation; `Lies` is what may stand between a hart and whoever asks.

Ref: RISC-V Control Transfer Records 1.0, ratified 2024-11-22; draft 0.1.4, 2023-09-15
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAnswer, CsrName, CsrRequest
from rvtrace_gdb.support.errors import Progress, silent

ONES = (1 << 64) - 1
FILTERS = sum(1 << bit for bit in (33, 34, 35, 36, 37, 40, 41, 42, 43, 44, 45, 46, 47))
# What a hart with all options lets be written: M, S and U; RASEMU and xTE; BPFRZ and LCOFIFRZ; filters.
ALL_1_0 = 0b111 | 0b111 << 7 | 0b11 << 11 | FILTERS
ALL_0_1_4 = 0b111 | 0b11111 << 8 | 1 << 38 | FILTERS
DEPTH_CODES = {"1.0": (0, 1, 2, 3, 4), "0.1.4": (0, 1, 3, 7, 15)}
ENTRIES = 256


@dataclass
class Lies:
    """CSRs, or "priv", by what happens to accesses.

    *stale*: they read what they read first, whatever came since; *late*: what should have been read the time before.
    """

    ignored: frozenset[CsrName] = frozenset()
    refused: frozenset[CsrName] = frozenset()
    refuses_writes: frozenset[CsrName] = frozenset()
    stale: frozenset[CsrName] = frozenset()
    late: frozenset[CsrName] = frozenset()
    runs_after: int | None = None  # accesses, then the hart runs
    dumb_after: int | None = None  # accesses, then every one is refused
    first: dict[CsrName, int] = field(default_factory=dict)


@dataclass
class CtrHart:
    """*codes*: DEPTH values there are; any other becomes the lowest. *writable*: bits of the control register.

    *machine*: Smctr is there, not only Ssctr. *mstateen0*: None without Smstateen; else bit 54 (55 in the draft) lets
    lower modes use CTR, and bit 60 the alias CSRs.
    *strict*: the stub lets a debugger do what the mode may, and no more. *priv* None: there is no such register.
    """

    version: str = "1.0"
    xlen: int = 64
    writable: int = -1
    codes: tuple[int, ...] = ()
    machine: bool = True
    s_mode: bool = True
    hypervisor: bool = False
    priv: int | None = 3
    mstateen0: int | None = None
    strict: bool = False
    priv_fixed: bool = False
    lies: Lies = field(default_factory=Lies)
    name: str = "test hart"

    def __post_init__(self) -> None:
        ratified = self.version == "1.0"
        self.codes = self.codes or DEPTH_CODES[self.version]
        self.writable &= ALL_1_0 if ratified else ALL_0_1_4
        if not self.s_mode:
            self.writable &= ~(1 << 1 | 1 << (8 if ratified else 9))
        self.control = self.vs_control = 0
        self.code = self.codes[0]
        self.wrptr, self.wrap, self.frozen = 0, False, False
        self.array = [[0, 0, 0] for _ in range(ENTRIES)]
        self.selects = {0x150: 0x55, 0x250: 0x66, 0x350: 0x77}
        self.log: list[CsrRequest] = []
        self.batches = 0
        self.counter_resets = 0

    @property
    def depth(self) -> int:
        return 16 << DEPTH_CODES[self.version].index(self.code)

    def record(self, source: int, target: int, data: int) -> None:
        """What the hart does when a transfer is recorded."""
        self.array[self.wrptr] = [source | 1, target, data]
        self.wrptr = (self.wrptr + 1) % self.depth
        self.wrap |= self.wrptr == 0

    def pop(self) -> None:
        """A return under RAS emulation."""
        self.wrptr = (self.wrptr - 1) % self.depth
        self.array[self.wrptr][0] &= ~1

    def user_state(self) -> tuple[object, ...]:
        """What nobody but the user may change for good, besides the control registers."""
        return dict(self.selects), self.priv

    # The stub

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        self.batches += 1
        answers: list[CsrAnswer] = []
        for register, value in accesses:
            answer = self._access(register, value)
            answers.append(answer)
            if isinstance(answer, str):
                break
        return answers

    def _access(self, register: CsrName, value: int | None) -> CsrAnswer:
        lies = self.lies
        if lies.runs_after is not None and len(self.log) >= lies.runs_after:
            raise HartRuns(self.name)
        if lies.dumb_after is not None and len(self.log) >= lies.dumb_after:
            return "the cable is out"
        self.log.append((register, value))
        if register in lies.refused or (value is not None and register in lies.refuses_writes):
            return "refused"
        if value is not None:
            assert 0 <= value < 1 << self.xlen, f"{value:#x} does not fit {register}"
            return 0 if register in lies.ignored else self._write(register, value)
        got = self._read(register)
        if register in lies.stale and isinstance(got, int):
            return lies.first.setdefault(register, got)
        if register in lies.late and isinstance(got, int):
            got, lies.first[register] = lies.first.get(register, 0), got
        return got

    # The hart

    @property
    def _virtual(self) -> bool:
        return bool((self.priv or 0) & 4)

    def _closed(self, number: int) -> bool:
        """M mode keeps it to itself, or the mode has none of it."""
        if self.priv is None or self.priv == 3:
            return False
        if self._virtual and number == 0x15F:
            return True
        if self.strict and number >> 8 == 3:
            return True
        if self.mstateen0 is None or number >> 8 == 3:
            return False
        indirect = number & 0xFF in range(0x50, 0x54)
        bits = {60} if number & 0xFF == 0x50 else {54 if self.version == "1.0" else 55} | ({60} if indirect else set())
        return any(not self.mstateen0 >> bit & 1 for bit in bits)

    def _there(self, number: int) -> bool:
        if number == 0x301:
            return True
        if number in (0x30C, 0x31C):
            return self.mstateen0 is not None and (number == 0x30C or self.xlen == 32)
        if self.version == "1.0":
            numbers = {0x14E, 0x14F, 0x15F, 0x150, 0x151, 0x152, 0x153}
            numbers |= {0x34E} if self.machine else set()
            return number in numbers | ({0x24E, 0x250, 0x251, 0x252, 0x253} if self.hypervisor else set())
        high = {1, 2, 3} if self.xlen == 32 else {1, 3}
        numbers = {0x380 + n for n in high} | {0x350, 0x351, 0x352, 0x353} if self.machine else set()
        if self.s_mode:
            numbers |= {0x180 + n for n in high} | {0x150, 0x151, 0x152, 0x153}
        if self.hypervisor:
            numbers |= {0x280 + n for n in high - {3}} | {0x250, 0x251, 0x252, 0x253}
        return number in numbers

    def _as_seen(self, number: int) -> int:
        """With V=1 the names of S mode mean those of VS mode; the status and the entries are the same for all."""
        shared = {0x14F, 0x15F, 0x183}
        if self._virtual and number >> 8 == 1 and number not in shared:
            return number + 0x100
        return number

    def _read(self, register: CsrName) -> CsrAnswer:
        if register == "pc":
            return 0x8000_0000
        if register == "priv":
            return "no such register" if self.priv is None else self.priv
        assert isinstance(register, int)
        if not self._there(register) or self._closed(register):
            return "no such CSR" if not self._there(register) else "the mode may not"
        value = self._value(self._as_seen(register))
        return value & ((1 << self.xlen) - 1)

    def _value(self, number: int) -> int:
        if number == 0x301:
            return 1 << 20 | self.s_mode << 18 | self.hypervisor << 7
        if number in (0x30C, 0x31C):
            return (self.mstateen0 or 0) >> (32 if number == 0x31C else 0)
        if number in self.selects:
            return self.selects[number]
        if number & 0xFF in (0x51, 0x52, 0x53):
            return self._entry_word(number)
        if self.version == "1.0":
            hidden = 1 << 2 | 1 << 9
            return {
                0x34E: self.control,
                0x14E: self.control & ~hidden,
                0x24E: self.vs_control & ~hidden,
                0x14F: self.wrptr | self.frozen << 31,
                0x15F: self.code,
            }[number]
        control, guest = self.control | self.code << 16, self.vs_control | self.code << 16
        status = self.wrptr | self.wrap << 14 | self.frozen << 15
        hidden = 1 | 1 << 8
        return {
            0x381: control,
            0x382: control >> 32,
            0x383: status,
            0x181: control & ~hidden,
            0x182: control >> 32,
            0x183: status,
            0x281: guest & ~hidden,
            0x282: guest >> 32,
        }[number]

    def _selected(self, number: int) -> int | None:
        """Physical entry, None where there is none."""
        logical = self.selects[number & ~0xF] - 0x200
        if not 0 <= logical < 256:
            return None
        return (self.wrptr - 1 - logical) % self.depth if logical < self.depth else None

    def _entry_word(self, number: int) -> int:
        entry = self._selected(number)
        return 0 if entry is None else self.array[entry][number % 0x10 - 1]

    def _write(self, register: CsrName, value: int) -> CsrAnswer:
        if register == "priv":
            if self.priv is None:
                return "no such register"
            self.priv = self.priv if self.priv_fixed else value
            return 0
        assert isinstance(register, int), "the pc is not to be written"
        seen = self._read(register)
        if isinstance(seen, str):
            return seen
        number = self._as_seen(register)
        if number in self.selects:
            self.selects[number] = value
        elif number & 0xFF in (0x51, 0x52, 0x53):
            entry = self._selected(number)
            if entry is not None:
                self.array[entry][number % 0x10 - 1] = value
        else:
            self._write_ctr(number, value)
        return 0

    def _write_ctr(self, number: int, value: int) -> None:
        if number in (0x14F, 0x183, 0x383):
            self._write_status(value)
        elif number == 0x15F:
            assert value < 8, "reserved bits of sctrdepth"
            self._write_depth(value)
        elif number in (0x182, 0x282, 0x382):
            self._write_control(number - 1, value << 32, 0xFFFF_FFFF << 32)
        else:
            self._write_control(number, value, (1 << self.xlen) - 1)

    def _write_status(self, value: int) -> None:
        frozen = 31 if self.version == "1.0" else 15
        self.wrptr = value & 0xFF & self.depth - 1
        self.frozen = bool(value >> frozen & 1)
        if self.version != "1.0":
            self.wrap = bool(value >> 14 & 1)

    def _write_depth(self, code: int) -> None:
        self.code = code if code in self.codes else self.codes[0]
        self.wrptr &= self.depth - 1

    def _write_control(self, number: int, value: int, reach: int) -> None:
        self.counter_resets += 1
        ratified = self.version == "1.0"
        lowest = {3: 0, 2: 1 << 2 | 1 << 9 if ratified else 1 | 1 << 8, 1: 1 << 2 | 1 << 9 if ratified else 1 | 1 << 8}
        mask = self.writable & ~lowest[number >> 8] & reach
        if number >> 8 == 2:
            self.vs_control = self.vs_control & ~mask | value & mask
            return
        self.control = self.control & ~mask | value & mask
        if not ratified and reach & 0xF_0000:
            self._write_depth(value >> 16 & 0xF)
            if value >> 7 & 1:
                self.array = [[0, 0, 0] for _ in range(ENTRIES)]
                self.wrptr, self.wrap, self.frozen = 0, False, False
