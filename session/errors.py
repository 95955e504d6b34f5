"""What can be wrong with a request to the session, or with the way to a hart's CSRs.

Each error is one line that says what to do.
"""

from collections.abc import Sequence

from rvtrace_gdb.support.errors import RvtraceError


class NoElf(RvtraceError):
    """No program is known, and without one nothing can be decoded."""


class NoTrace(RvtraceError):
    """There is nothing to show, or to save."""


class BadOption(RvtraceError):
    """An option of `trace start` that does not exist or has no usable value."""


class Unsupported(RvtraceError):
    """The trace is of a kind that rvtrace does not know yet."""


class HartUnreachable(RvtraceError):
    """What leads to the target is there, the hart is not. *hart*: its number in the target description."""

    def __init__(self, hart: int, why: str) -> None:
        super().__init__(f"hart {hart} cannot be reached: {why}")
        self.hart = hart


class Busy(RvtraceError):
    """Something must be ended first."""


class InThePast(Busy):
    """A debugger is."""


class NotResumed(RvtraceError):
    """The trace was read out and is whole so far, but it does not go on. *cause*: why."""

    def __init__(self, cause: RvtraceError) -> None:
        super().__init__(
            f"tracing could not go on after this was read, and waits for the next `trace history`: {cause}"
        )
        self.cause = cause


class SetUpLost(RvtraceError):
    """A component is no longer set up as it was when tracing began: it was reset, or somebody else uses it."""

    def __init__(self, name: str, register: str) -> None:
        super().__init__(
            f"{name} was reset or set up by somebody else while tracing ({register} has changed): what ran then is"
            " not in the trace, `trace start` begins anew"
        )
        self.name, self.register = name, register


class Several(RvtraceError):
    """Things that went wrong at once, each an error of its own."""

    def __init__(self, errors: Sequence[RvtraceError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = tuple(errors)


def joined(errors: Sequence[RvtraceError]) -> RvtraceError:
    """One error that stands for all of *errors*, of which there is at least one."""
    return errors[0] if len(errors) == 1 else Several(errors)


class WrongXlen(RvtraceError):
    """Program and trace have different register widths. *whose*: what the other width is of."""

    def __init__(self, elf: str, elf_xlen: int, whose: str, xlen: int) -> None:
        super().__init__(f"{elf} is an RV{elf_xlen} program, but {whose} is RV{xlen}: load the ELF that ran there")
        self.elf, self.elf_xlen, self.whose, self.xlen = elf, elf_xlen, whose, xlen


class NoWay(RvtraceError):
    """There is no way to the CSRs of a hart."""


class CsrsNotExposed(NoWay):
    """OpenOCD gives no access to CSRs it has no register for. *line*: what its configuration lacks."""

    def __init__(self, where: str, line: str) -> None:
        super().__init__(
            f"{where} has no registers for Control Transfer Records: put the line `{line}` into its configuration,"
            " before `init`, and start it again"
        )
        self.line = line


class NoUsbTable(NoWay):
    """*file*: the target description."""

    def __init__(self, file: str) -> None:
        self.file = file
        super().__init__(
            f"{file} has no table [usb], so no USB adapter leads to the CSRs: add it, or `set trace ctr-access auto`"
        )


class ErrorsHidden(NoWay):
    """OpenOCD tells gdb an old value where a register cannot be read."""

    def __init__(self) -> None:
        super().__init__(
            "OpenOCD hides from gdb that a register cannot be accessed, so nothing it says can be believed: put"
            " `gdb_report_register_access_error enable` into its configuration, or `set trace ctr-access openocd`"
        )


class NoNumbers(NoWay):
    """The stub's description of its target does not say which numbers its CSRs have."""

    def __init__(self) -> None:
        super().__init__(
            "the gdb stub does not describe its CSRs (no feature org.gnu.gdb.riscv.csr), so their numbers are not"
            " known: `set trace ctr-access openocd` if OpenOCD is behind it"
        )
