"""The errors of requests to the session, and of the access to a hart's CSRs.

Each error is one line that says what to do.
"""

from collections.abc import Sequence

from rvtrace_gdb.support.errors import RvtraceError


class NoElf(RvtraceError):
    """No program is known, and without one nothing can be decoded."""


class NoTrace(RvtraceError):
    """There is nothing to show, or to save."""


class NoFlow(NoTrace):
    """The trace has events of its hart, such as PC samples, and no instructions."""


class BadOption(RvtraceError):
    """An option of `trace start` that does not exist or has no usable value."""


class Unsupported(RvtraceError):
    """The trace is of a kind that rvtrace does not support."""


class HartUnreachable(RvtraceError):
    """The link to the target works, but the hart does not answer. *hart*: its number in the target description."""

    def __init__(self, hart: int, why: str) -> None:
        super().__init__(f"hart {hart} cannot be reached: {why}")
        self.hart = hart


class OtherOpenOcd(RvtraceError):
    """The debugger is connected to another OpenOCD than the one at *host*, *port*, and so to another chip."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(
            f"gdb is connected to another OpenOCD than the one whose Tcl port is {host}:{port}, which may have another"
            " chip: nothing was done there. `set trace openocd-port PORT` names that of gdb's, which OpenOCD prints"
            " when it starts (\"Listening on port ... for tcl connections\")"
        )
        self.host, self.port = host, port


class OtherTarget(RvtraceError):
    """The trace that is made is not of the target that the debugger is connected to."""

    def __init__(self) -> None:
        super().__init__(
            "gdb is connected to another OpenOCD than the one of this trace: there is no way from its present into this"
            " past; connect gdb to the one of the trace (`trace connect`)"
        )


class Busy(RvtraceError):
    """Something else must be ended first."""


class InThePast(Busy):
    """The debugger is in the past, and must leave it first."""


class NotResumed(RvtraceError):
    """The trace was read out completely, but tracing could not be resumed. *cause*: the reason."""

    def __init__(self, cause: RvtraceError) -> None:
        super().__init__(
            "tracing could not continue after the trace was read, and is paused until the next `trace history`:"
            f" {cause}"
        )
        self.cause = cause


class NotStopped(RvtraceError):
    """Encoders could not be stopped, so that the trace goes on. *cause*: the reason."""

    def __init__(self, cause: RvtraceError) -> None:
        super().__init__(f"not stopped, tracing goes on: {cause}")
        self.cause = cause


class SetUpLost(RvtraceError):
    """A component's registers have changed since tracing began: it was reset, or another program uses it."""

    def __init__(self, name: str, register: str) -> None:
        super().__init__(
            f"{name} was reset or set up by other software while tracing ({register} has changed): what ran then is"
            " not in the trace, `trace start` starts again"
        )
        self.name, self.register = name, register


class Several(RvtraceError):
    """Several errors that happened at once."""

    def __init__(self, errors: Sequence[RvtraceError]) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors = tuple(errors)


def joined(errors: Sequence[RvtraceError]) -> RvtraceError:
    """Return one error for all of *errors*, of which there is at least one."""
    return errors[0] if len(errors) == 1 else Several(errors)


class WrongXlen(RvtraceError):
    """Program and trace have different register widths. *whose*: what has the other width."""

    def __init__(self, elf: str, elf_xlen: int, whose: str, xlen: int) -> None:
        super().__init__(f"{elf} is an RV{elf_xlen} program, but {whose} is RV{xlen}: load the ELF that ran there")
        self.elf, self.elf_xlen, self.whose, self.xlen = elf, elf_xlen, whose, xlen


class NoWay(RvtraceError):
    """The CSRs of a hart cannot be accessed."""


class CsrsNotExposed(NoWay):
    """OpenOCD gives no access to CSRs for which it has no register. *line*: the missing line of its configuration."""

    def __init__(self, where: str, line: str) -> None:
        super().__init__(
            f"{where} has no registers for Control Transfer Records: put the line `{line}` into its configuration,"
            " before `init`, and start it again"
        )
        self.line = line


class NoUsbTable(NoWay):
    """The target description, *file*, has no table [usb]."""

    def __init__(self, file: str) -> None:
        self.file = file
        super().__init__(
            f"{file} has no table [usb], so no USB adapter leads to the CSRs: add it, or `set trace ctr-access auto`"
        )


class ErrorsHidden(NoWay):
    """OpenOCD returns an old value to gdb when a register cannot be read."""

    def __init__(self) -> None:
        super().__init__(
            "OpenOCD hides from gdb that a register cannot be accessed, so its answers cannot be trusted: put"
            " `gdb_report_register_access_error enable` into its configuration, or `set trace ctr-access openocd`"
        )


class NoNumbers(NoWay):
    """The stub's target description has no numbers of CSRs."""

    def __init__(self) -> None:
        super().__init__(
            "the gdb stub does not describe its CSRs (no feature org.gnu.gdb.riscv.csr), so their numbers are not"
            " known; if the stub is OpenOCD: `set trace ctr-access openocd`"
        )
