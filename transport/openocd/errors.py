"""What goes wrong with OpenOCD, in lines that the user can act on."""

from typing import TYPE_CHECKING

from rvtrace_gdb.support.errors import RvtraceError

if TYPE_CHECKING:
    from rvtrace_gdb.transport.openocd.memory_ways import RefusedAccess  # loaded where an access is refused


class OpenOcdError(RvtraceError):
    """Root of the OpenOCD transport's errors. A long read that failed leaves the bytes it had read in *partial*."""

    partial: bytes = b""
    requested: int = 0

    def __str__(self) -> str:
        text = super().__str__()
        return (
            f"{text} ({len(self.partial)} of {self.requested} bytes were read and are kept)" if self.requested else text
        )


class OpenOcdAbsent(OpenOcdError):
    """Nothing listens at this host and port."""

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host, self.port, self.reason = host, port, reason
        super().__init__(
            f"no OpenOCD at {host}:{port} ({reason}): start OpenOCD, or set the port of its Tcl server "
            "(tcl_port in its configuration, 6666 unless changed)"
        )


class NotOpenOcd(OpenOcdError):
    """Another program listens there; *answer* is the beginning of its answer."""

    def __init__(self, host: str, port: int, answer: bytes) -> None:
        self.host, self.port, self.answer = host, port, answer
        said = f"answered {answer[:40].decode('latin1')!r}" if answer else "closed the connection"
        super().__init__(
            f"what listens at {host}:{port} is not OpenOCD's Tcl server (it {said}): set the port to OpenOCD's "
            "tcl_port (6666 unless changed; 3333 is for gdb, 4444 for telnet)"
        )


class NoSuchTarget(OpenOcdError):
    """OpenOCD has no target of this name; *targets* are those it has."""

    def __init__(self, target: str, targets: tuple[str, ...]) -> None:
        self.target, self.targets = target, targets
        super().__init__(
            f"OpenOCD has no target {target!r}, it has {', '.join(targets) or 'none'}: correct the target description"
        )


class OpenOcdTooOld(OpenOcdError):
    """This OpenOCD lacks commands that came with 0.12; *version*: as it calls itself."""

    def __init__(self, version: str) -> None:
        self.version = version
        name = version.replace("Open On-Chip Debugger", "OpenOCD").split("\n")[0].strip() or "this OpenOCD"
        super().__init__(f"{name} is too old, it has no read_memory: rvtrace needs OpenOCD 0.12 or newer")


class OpenOcdRefused(OpenOcdError):
    """OpenOCD answered with an error, *answer*. *address*: that of the memory access, None for other commands. *seen*:
    what was found out about it; *advice*: what to do then.
    """

    def __init__(
        self, command: str, answer: str, address: int | None = None, seen: "RefusedAccess | None" = None
    ) -> None:
        self.command, self.answer, self.address = command, answer, address
        self.advice = "" if seen is None else seen.advice
        what = f"cannot access address {address:#x}" if address is not None else f"refuses {command!r}"
        why = " ".join(answer.split()) or "no reason given"
        if seen is not None and seen.text:
            why = f"{why} ({seen.text})"
        super().__init__(f"OpenOCD {what}: {why}; its log may say more")


class OpenOcdLost(OpenOcdError):
    """OpenOCD has closed the connection."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        super().__init__(
            f"OpenOCD at {host}:{port} ended the connection: see its log, start it again and repeat the command"
        )


class OpenOcdTimeout(OpenOcdError):
    """OpenOCD did not answer in time."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self.host, self.port, self.seconds = host, port, seconds
        super().__init__(
            f"OpenOCD at {host}:{port} did not answer within {seconds:g} s: is it busy, or its adapter unplugged? "
            "see its log, then repeat the command"
        )
