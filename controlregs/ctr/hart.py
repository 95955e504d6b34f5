"""Access to one hart's registers of Control Transfer Records, and to the entries they give access to.

Failed accesses are reported with the name of the register, and writes are read back. Some debug stubs apply the rules
of the hart's present mode to a debugger, too. Then `priv` is written, but only when registers are closed or show their
VS versions (V=1), and it is restored: writing it can cost the program the reservation of its lr/sc.

Entries are read through a select CSR and its alias CSRs; the select CSR is left as it was found. Each access to an
entry reads the select CSR back: if writing it had no effect, the values would be those of another entry.

Ref: RISC-V Control Transfer Records 1.0, "State Enable Access Control", "Entry Registers"; draft 0.1.4, chapters 3 and
4; Privileged Architecture, Smstateen for mstateen0
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rvtrace_gdb.controlregs.ctr.entries import ENTRIES_MAX, ENTRY_SELECT, SOURCE, CtrEntry
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues
from rvtrace_gdb.controlregs.ctr.versions import RV32, VERSIONS, Control, CtrVersion, Indirect, Level
from rvtrace_gdb.controlregs.errors import (
    CtrForbidden,
    NoCtr,
    NotRestored,
    RegisterRefused,
    ReservedDepth,
    StaleEntries,
    UnknownVersion,
    WriteIneffective,
    mode_name,
)
from rvtrace_gdb.controlregs.fields import Csr
from rvtrace_gdb.controlregs.target import CsrAccess
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

CtrAccess = tuple[Csr | str, int | None]
"""A register and the value to write, or None to read it."""
LOW_WORD = (1 << 32) - 1
MISA = 0x301


class CtrHart:
    """The CTR registers of one hart. *level*: the privilege level whose registers are used. *mode*: `priv` as it was
    found, None where there is none; *pc*: likewise.
    """

    def __init__(self, access: CsrAccess, version: CtrVersion) -> None:
        self.access, self.version = access, version
        self.level: Level = version.machine
        self.mode = self.ask("priv")
        self.pc = self.ask("pc")

    @property
    def way(self) -> str:
        return self.access.name

    @property
    def indirect(self) -> Indirect:
        return self.level.indirect

    @property
    def machine(self) -> bool:
        return self.level is self.version.machine

    @property
    def control_bits(self) -> int:
        """A mask of the bits of a control register that are accessible."""
        return 64 if self.access.xlen > RV32 or self.level.control.high else 32

    def why_not(self, register: Csr | str, value: int | None = None) -> str | None:
        """Return why the register cannot be read, or *value* not be written to it; None if it can."""
        return refusal(self.access, register, value)

    def ask(self, register: Csr | str | int) -> int | None:
        """Return the register's value, or None when the access is refused."""
        answer = self.access.run([(_csr_number(register), None)])
        return answer[0] if answer and isinstance(answer[0], int) else None

    def run(self, accesses: Sequence[CtrAccess]) -> list[int]:
        """Do all accesses and return the values. Raises RegisterRefused."""
        answers = self.access.run([(_csr_number(register), value) for register, value in accesses])
        done: list[int] = []
        for answer in answers:
            if isinstance(answer, str):
                break
            done.append(answer)
        if len(done) < len(accesses):
            register, value = accesses[len(done)]
            why = str(answers[len(done)]) if len(done) < len(answers) else "no answer"
            raise RegisterRefused(self.way, register, "read" if value is None else "written", why)
        return done

    def read(self, register: Csr | str) -> int:
        return self.run([(register, None)])[0]

    def write(self, register: Csr | str, value: int, mask: int = -1) -> int:
        """Write *value* and return what the register then reads. Raises WriteIneffective if that differs in the bits of
        *mask*.
        """
        got = self.run([(register, value), (register, None)])[1]
        if (got ^ value) & mask:
            raise WriteIneffective(self.way, register, value, got)
        return got

    def read_control(self, control: Control) -> int:
        """Return the 64 bits of a control register. Bits that are not accessible, and the field that starts an action,
        are 0.
        """
        clear = self.version.clear
        lasting = ~control.csr.mask(*([clear] if clear else []))
        if self.access.xlen > RV32:
            return self.read(control.csr) & lasting
        if control.high is None:
            return self.read(control.csr) & LOW_WORD & lasting
        low, high = self.run([(control.csr, None), (control.high, None)])
        return (high << 32 | low & LOW_WORD) & lasting

    def write_control(self, control: Control, value: int, checked: Sequence[str] | None = None) -> int:
        """Write a control register and return what it then reads. *checked*: the fields that must hold the value
        written; None: all that are named.

        Bits that are not accessible are left out. Raises WriteIneffective.
        """
        if self.access.xlen > RV32:
            self.run([(control.csr, value)])
        elif control.high is None:
            self.run([(control.csr, value & LOW_WORD)])
        else:  # what enables is in the low half
            self.run([(control.high, value >> 32), (control.csr, value & LOW_WORD)])
        got = self.read_control(control)
        mask = control.csr.mask(*(control.csr.by_name if checked is None else checked)) & (1 << self.control_bits) - 1
        if (got ^ value) & mask:
            raise WriteIneffective(self.way, control.csr, value, got)
        return got

    def depth_register(self) -> Csr:
        return self.version.depth or self.level.control.csr

    def depth(self) -> int:
        """Return the present number of entries. Raises ReservedDepth."""
        register = self.depth_register()
        code = register.get(self.read(register), "DEPTH")
        entries = self.version.entries(code)
        if entries is None:
            raise ReservedDepth(register, code)
        return entries

    def virtual(self) -> int | None:
        """Return the value of the control register of VS and VU mode; None without the H extension."""
        return None if self.ask(self.version.virtual.csr) is None else self.read_control(self.version.virtual)

    def in_force(self, name: str) -> CtrRegisterValues:
        """Read the registers and return how transfers are recorded."""
        return CtrRegisterValues(
            name=name,
            version=self.version.key,
            xlen=self.access.xlen,
            depth=self.depth(),
            control=self.read_control(self.level.control),
            vs_control=self.virtual() or 0,
            status=self.read(self.level.status),
            pc=self.pc,
            privilege=self.mode,
            misa=self.ask(MISA),
        )

    @contextmanager
    def keeping(self, register: Csr | str, value_before: int) -> Iterator[None]:
        """Restore the register to *value_before* at the end of the context, whatever happens in between. Raises
        NotRestored.
        """
        first: BaseException | None = None
        try:
            yield
        except BaseException as error:
            first = error
            raise
        finally:
            try:
                self.write(register, value_before)
            except RvtraceError as error:
                raise NotRestored(register, value_before, error, first) from first


def _csr_number(register: Csr | str | int) -> int | str:
    return register.number if isinstance(register, Csr) else register


def refusal(access: CsrAccess, register: Csr | str, value: int | None = None) -> str | None:
    """Return why the register cannot be read, or *value* not be written to it; None if it can."""
    answer = access.run([(_csr_number(register), value)])
    return (answer[0] if isinstance(answer[0], str) else None) if answer else "no answer"


M_MODE = 3
VIRTUALIZED = 1 << 2
MSTATEEN0, MSTATEEN0H = 0x30C, 0x31C
CSRIND_BIT = 60  # of mstateen0: access to the select and alias CSRs
XLEN_64 = 64


def detect(access: CsrAccess, wanted: str | None = None) -> CtrVersion:
    """Return the version whose control register answers, trying 1.0 first; or the version *wanted*, if that one
    answers.

    Raises UnknownVersion, NoCtr, CtrForbidden, HartRuns.
    """
    if wanted is not None and wanted not in VERSIONS:
        raise UnknownVersion(wanted, tuple(VERSIONS))
    candidates = [VERSIONS[wanted]] if wanted else list(VERSIONS.values())
    hart = CtrHart(access, candidates[0])
    found, why = _answering(access, candidates), None
    if found is None and hart.mode not in (None, M_MODE):
        with _raised(hart) as why:
            found = _answering(access, candidates)
    if found is not None:
        return found
    refusals = _refusals(access, candidates)
    if why is not None and hart.mode is not None:
        csr = hart.version.machine.control.csr
        raise CtrForbidden(hart.way, csr, hart.mode, why, _closed_by(hart), sure=False)
    other = _answering(access, [version for version in VERSIONS.values() if version not in candidates])
    raise NoCtr(hart.way, wanted, refusals, other.key if other else None)


def _answering(access: CsrAccess, versions: list[CtrVersion]) -> CtrVersion | None:
    return next((version for version in versions if len(_refusals(access, [version])) < len(version.levels)), None)


def _refusals(access: CsrAccess, versions: list[CtrVersion]) -> dict[str, str]:
    """Return why each control register cannot be read, by its name; registers that can be read are not included."""
    found = {}
    for version in versions:
        for level in version.levels:
            why = refusal(access, level.control.csr)
            if why is not None:
                found[level.control.csr.name] = why
    return found


@contextmanager
def open_hart(access: CsrAccess, version: CtrVersion) -> Iterator[CtrHart]:
    """Give access to the registers of *version*: those of M mode where they are accessible, else those of S mode.

    Raises RegisterRefused, CtrForbidden, NotRestored, HartRuns.
    """
    hart = CtrHart(access, version)
    mode = hart.mode
    if mode is None or mode == M_MODE or (not mode & VIRTUALIZED and _closed(hart, version.machine) is None):
        _choose(hart)
        yield hart
        return
    with _raised(hart) as why:
        if why is not None and mode & VIRTUALIZED:
            raise CtrForbidden(hart.way, version.machine.indirect.select, mode, f"{mode_name(mode)} has its own; {why}")
        try:
            _choose(hart)
        except RegisterRefused as error:
            if why is None:
                raise
            raise CtrForbidden(hart.way, error.register, mode, why, _closed_by(hart)) from error
        yield hart


@contextmanager
def _raised(hart: CtrHart) -> Iterator[str | None]:
    """Set `priv` to M mode and restore it at the end. Yields why it could not be set, or None."""
    assert hart.mode is not None
    refused = hart.why_not("priv", M_MODE)
    now = hart.ask("priv")
    if refused is None and now != M_MODE:
        refused = f"it then reads {now}"
    if now == hart.mode:
        yield refused
        return
    with hart.keeping("priv", hart.mode):
        yield refused


def _choose(hart: CtrHart) -> None:
    """Select the registers of the highest level that is open. Raises RegisterRefused."""
    closed: list[RegisterRefused] = []
    for level in hart.version.levels:
        refused = _closed(hart, level)
        if refused is None:
            hart.level = level
            return
        closed.append(refused)
    # The level that got further than its control register is the one that is there.
    controls = [level.control.csr for level in hart.version.levels]
    raise next((error for error in closed if error.register not in controls), closed[0])


def _closed(hart: CtrHart, level: Level) -> RegisterRefused | None:
    """Return the refusal of the first register of a level that cannot be read; None if all can."""
    wanted: list[Csr] = [level.control.csr]
    if hart.access.xlen == RV32 and level.control.high is not None:
        wanted.append(level.control.high)
    wanted += [level.status, level.indirect.select]
    if hart.version.depth is not None:
        wanted.append(hart.version.depth)
    try:
        hart.run([(csr, None) for csr in wanted])
    except RegisterRefused as error:
        return error
    return None


def _closed_by(hart: CtrHart) -> tuple[str, ...]:
    """Return the names of the bits of mstateen0 that are 0 and close the registers; none if mstateen0 cannot be read.
    """
    bits = {hart.version.stateen_bit: "CTR", CSRIND_BIT: "CSRIND"}
    numbers = [MSTATEEN0] if hart.access.xlen >= XLEN_64 else [MSTATEEN0, MSTATEEN0H]
    answers = hart.access.run([(number, None) for number in numbers])
    values = [answer for answer in answers if isinstance(answer, int)]
    if len(values) < len(numbers):
        return ()
    value = sum(word << 32 * index for index, word in enumerate(values))
    return tuple(f"mstateen0.{name}, bit {bit}," for bit, name in bits.items() if not value >> bit & 1)


BATCH = 16  # entries read in one go


def read_entries(hart: CtrHart, depth: int, progress: Progress = silent) -> list[CtrEntry]:
    """Return the valid entries, youngest first. Reading ends at the first invalid entry, since all entries after it are
    invalid.

    Raises RegisterRefused, WriteIneffective, StaleEntries, NotRestored, Cancelled.
    """
    entries: list[CtrEntry] = []
    with hart.keeping(hart.indirect.select, hart.read(hart.indirect.select)):
        for first in range(0, depth, BATCH):
            progress("reading control transfer records (records)", first, depth)
            entries += [CtrEntry(*words) for words in _read_entries(hart, first, BATCH, *hart.indirect.entry)]
            if not all(entry.valid for entry in entries[first:]):
                break
        valid = next((n for n, entry in enumerate(entries) if not entry.valid), len(entries))
        _must_not_be_stale(hart, entries, depth)
    return entries[:valid]


def count_recorded(hart: CtrHart, depth: int) -> int:
    """Return how many entries are valid. These are the youngest, so a few reads find the last one."""
    low, high = 0, depth
    with hart.keeping(hart.indirect.select, hart.read(hart.indirect.select)):
        while low < high:
            middle = (low + high) // 2
            ((source,),) = _read_entries(hart, middle, 1, hart.indirect.source)
            if SOURCE.get(source, "V"):
                low = middle + 1
            else:
                high = middle
    return low


def clear_entries(hart: CtrHart, depth: int, progress: Progress = silent) -> None:
    """Write zeros to all entries. Raises the same errors as `read_entries`."""
    indirect = hart.indirect
    with hart.keeping(indirect.select, hart.read(indirect.select)):
        for first in range(0, depth, BATCH):
            progress("clearing control transfer records (records)", first, depth)
            found = enumerate(_read_entries(hart, first, BATCH, *indirect.entry), first)
            _zero(hart, [entry for entry, words in found if any(words)])


def _zero(hart: CtrHart, entries: list[int]) -> None:
    """Write zeros to these entries in one batch."""
    registers = hart.indirect.entry
    accesses: list[CtrAccess] = []
    for entry in entries:
        accesses += _selecting(hart, entry)
        for register in registers:
            accesses += [(register, 0), (register, None)]
    width = 2 + 2 * len(registers)
    answers = hart.run(accesses) if accesses else []
    for entry, at in zip(entries, range(0, len(answers), width), strict=True):
        _must_be_selected(hart, entry, answers[at + 1])
        for register, got in zip(registers, answers[at + 3 : at + width : 2], strict=True):
            if got:
                raise WriteIneffective(hart.way, register, 0, got, entry)


def _read_entries(hart: CtrHart, first: int, count: int, *registers: Csr) -> Iterator[list[int]]:
    """Read these registers of *count* entries in one batch."""
    accesses: list[CtrAccess] = []
    for entry in range(first, first + count):
        accesses += _selecting(hart, entry)
        accesses += [(register, None) for register in registers]
    width = 2 + len(registers)
    answers = hart.run(accesses)
    for entry, at in enumerate(range(0, len(answers), width), first):
        _must_be_selected(hart, entry, answers[at + 1])
        yield answers[at + 2 : at + width]


def _selecting(hart: CtrHart, entry: int) -> list[CtrAccess]:
    select = hart.indirect.select
    return [(select, ENTRY_SELECT + entry), (select, None)]


def _must_be_selected(hart: CtrHart, entry: int, got: int) -> None:
    if got != ENTRY_SELECT + entry:
        raise WriteIneffective(hart.way, hart.indirect.select, ENTRY_SELECT + entry, got)


def _must_not_be_stale(hart: CtrHart, entries: list[CtrEntry], depth: int) -> None:
    """Raise StaleEntries unless the first entry reads as before and entries beyond the depth read 0.

    The hart is halted, so entries do not change. The second check matters where all entries are equal, as in a loop: a
    cached value would be equal, too. At the greatest depth no entry is beyond it, so for 256 equal entries this cannot
    be checked.
    """
    indirect = hart.indirect
    again, *beyond = _read_entries(hart, 0, 1, *indirect.entry)
    if len(set(entries)) == 1 and entries[0].valid and depth < ENTRIES_MAX:
        beyond = list(_read_entries(hart, depth, 1, *indirect.entry))
    if tuple(again) != entries[0] or any(any(words) for words in beyond):
        raise StaleEntries(hart.way, indirect.source, indirect.select)
