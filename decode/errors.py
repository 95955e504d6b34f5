"""What decoding can tell the user in one line. Bad trace bytes are no errors: they are events and gaps in a history."""

from rvtrace_gdb.support.errors import RvtraceError


class UndecodableInstruction(RvtraceError):
    """The halfword starts an encoding of 192 bits or more, which the ISA manual reserves: its length is not known."""

    def __init__(self, halfword: int) -> None:
        self.halfword = halfword
        super().__init__(f"0x{halfword:04x} does not start a RISC-V instruction (reserved for 192 bits and more)")


class CodeMissing(RvtraceError):
    """Neither the ELF nor the target has the code at *addr*. *what* should be there, if that is known."""

    def __init__(self, addr: int, what: str = "") -> None:
        self.addr, self.what = addr, what
        known = f"{what} is there and was not supplied" if what else ""
        why = known or "it is not in the ELF and was not read from the target"
        super().__init__(f"no code known at 0x{addr:x}: {why}")


class BadElf(RvtraceError):
    """The file cannot serve as the program of a trace."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{path}: {why}")


class BadMaps(RvtraceError):
    """A file is no list of mappings as Linux writes them. *line* counts from 1; 0: the file as a whole."""

    def __init__(self, path: str, line: int, why: str) -> None:
        self.path, self.line = path, line
        super().__init__(f"{path}:{line}: {why}" if line else f"{path}: {why}")


class BadMemory(RvtraceError):
    """A file or a folder that cannot serve as the content of memory."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{path}: {why}")
