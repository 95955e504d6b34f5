"""What can be wrong with the way to a hart's CSRs, each a line that says what to do."""

from rvtrace_gdb.support.errors import RvtraceError


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
