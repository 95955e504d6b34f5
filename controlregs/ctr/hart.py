"""One hart's CTR registers: accesses that are told apart by name when they fail, and writes that are read back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rvtrace_gdb.controlregs.csr_access import CsrAccess
from rvtrace_gdb.controlregs.ctr.errors import NotRestored, RegisterRefused, ReservedDepth, WriteIneffective
from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.controlregs.ctr.versions import RV32, Control, CtrVersion, Indirect, Level
from rvtrace_gdb.controlregs.fields import Csr
from rvtrace_gdb.support.errors import RvtraceError

Access = tuple[Csr | str, int | None]
"""(register, value to write), or (register, None) to read it."""
LOW = (1 << 32) - 1
MISA = 0x301


class Hart:
    """*level*: whose registers are used. *mode*: `priv` as it was found, None where there is none; *pc* the same."""

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
        """How much of a control register can be reached."""
        return 64 if self.access.xlen > RV32 or self.level.control.high else 32

    def why_not(self, register: Csr | str, value: int | None = None) -> str | None:
        """Why it cannot be read, or written this value; None if it can."""
        return refusal(self.access, register, value)

    def ask(self, register: Csr | str | int) -> int | None:
        """Its value, None when that is refused."""
        answer = self.access.run([(_number(register), None)])
        return answer[0] if answer and isinstance(answer[0], int) else None

    def run(self, accesses: Sequence[Access]) -> list[int]:
        """All answers. Raises RegisterRefused."""
        answers = self.access.run([(_number(register), value) for register, value in accesses])
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
        """Write it, return what it reads then. Raises WriteIneffective, where that differs in the bits of *mask*."""
        got = self.run([(register, value), (register, None)])[1]
        if (got ^ value) & mask:
            raise WriteIneffective(self.way, register, value, got)
        return got

    def read_control(self, control: Control) -> int:
        """Its 64 bits; those that cannot be reached are 0, and what acts when it is written."""
        clear = self.version.clear
        lasting = ~control.csr.mask(*([clear] if clear else []))
        if self.access.xlen > RV32:
            return self.read(control.csr) & lasting
        if control.high is None:
            return self.read(control.csr) & LOW & lasting
        low, high = self.run([(control.csr, None), (control.high, None)])
        return (high << 32 | low & LOW) & lasting

    def write_control(self, control: Control, value: int, checked: Sequence[str] | None = None) -> int:
        """Write it, return what it reads then. *checked*: the fields that must take their value; None: all named ones.

        Raises WriteIneffective. Bits that cannot be reached are left out.
        """
        if self.access.xlen > RV32:
            self.run([(control.csr, value)])
        elif control.high is None:
            self.run([(control.csr, value & LOW)])
        else:  # what enables is in the low half
            self.run([(control.high, value >> 32), (control.csr, value & LOW)])
        got = self.read_control(control)
        mask = control.csr.mask(*(control.csr.by_name if checked is None else checked)) & (1 << self.control_bits) - 1
        if (got ^ value) & mask:
            raise WriteIneffective(self.way, control.csr, value, got)
        return got

    def depth_register(self) -> Csr:
        return self.version.depth or self.level.control.csr

    def depth(self) -> int:
        """Entries there are now. Raises ReservedDepth."""
        register = self.depth_register()
        code = register.get(self.read(register), "DEPTH")
        entries = self.version.entries(code)
        if entries is None:
            raise ReservedDepth(register, code)
        return entries

    def virtual(self) -> int | None:
        """What controls VS and VU mode, None without the H extension."""
        return None if self.ask(self.version.virtual.csr) is None else self.read_control(self.version.virtual)

    def in_force(self, name: str) -> CtrInForce:
        """How transfers are recorded, as read now."""
        return CtrInForce(
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
    def keeping(self, register: Csr | str, found: int) -> Iterator[None]:
        """Put the register back to *found* in the end, whatever happens meanwhile. Raises NotRestored."""
        first: BaseException | None = None
        try:
            yield
        except BaseException as error:
            first = error
            raise
        finally:
            try:
                self.write(register, found)
            except RvtraceError as error:
                raise NotRestored(register, found, error, first) from first


def _number(register: Csr | str | int) -> int | str:
    return register.number if isinstance(register, Csr) else register


def refusal(access: CsrAccess, register: Csr | str, value: int | None = None) -> str | None:
    """Why it cannot be read, or written this value; None if it can."""
    answer = access.run([(_number(register), value)])
    return (answer[0] if isinstance(answer[0], str) else None) if answer else "no answer"
