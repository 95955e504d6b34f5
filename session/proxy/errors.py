"""What can go wrong between gdb and the stub."""

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable


class StubAbsent(RvtraceError):
    """Nobody serves gdb there. *host*, *port*: where it was looked for."""

    def __init__(self, host: str, port: int, why: str) -> None:
        super().__init__(
            f"no OpenOCD and no other gdb stub at {printable(host)}:{port}: {why} (start it first; another place:"
            " `trace connect HOST:PORT`)"
        )
        self.host, self.port = host, port


class StubGone(RvtraceError):
    """The stub ended the connection, or does not answer any more."""

    def __init__(self, host: str, port: int, why: str = "closed the connection") -> None:
        place = f"{printable(host)}:{port}"
        super().__init__(f"OpenOCD ({place}) {why}; what was traced is kept: `trace history`, `trace save`")
        self.host, self.port = host, port


class ListenFailed(RvtraceError):
    """gdb cannot be waited for. *where*: "port N", or a path."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"cannot wait for gdb at {where}: {why}")
        self.where = where
