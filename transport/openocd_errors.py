"""What can go wrong on the way to a target behind OpenOCD, each a line the user can act on."""

from rvtrace_gdb.support.errors import RvtraceError


class OpenOcdError(RvtraceError):
    """Root of the OpenOCD transport's errors. A long read that failed leaves what it had in *partial*."""

    partial: bytes = b""
    wanted: int = 0

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} ({len(self.partial)} of {self.wanted} bytes were read and are kept)" if self.wanted else text


class OpenOcdAbsent(OpenOcdError):
    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host, self.port, self.reason = host, port, reason
        super().__init__(
            f"no OpenOCD at {host}:{port} ({reason}): start OpenOCD, or set the port of its Tcl server "
            "(tcl_port in its configuration, 6666 unless changed)"
        )


class NotOpenOcd(OpenOcdError):
    """Something else listens there; *answer* is the beginning of what it said."""

    def __init__(self, host: str, port: int, answer: bytes) -> None:
        self.host, self.port, self.answer = host, port, answer
        said = f"answered {answer[:40].decode('latin1')!r}" if answer else "closed the connection"
        super().__init__(
            f"what listens at {host}:{port} is not OpenOCD's Tcl server (it {said}): set the port to OpenOCD's "
            "tcl_port (6666 unless changed; 3333 is for gdb, 4444 for telnet)"
        )


class NoSuchTarget(OpenOcdError):
    def __init__(self, target: str, targets: tuple[str, ...]) -> None:
        self.target, self.targets = target, targets
        super().__init__(
            f"OpenOCD has no target {target!r}, it has {', '.join(targets) or 'none'}: correct the target description"
        )


class OpenOcdRefused(OpenOcdError):
    """OpenOCD answered with an error, *answer*. *address*: of the memory access, None for other commands."""

    def __init__(self, command: str, answer: str, address: int | None = None) -> None:
        self.command, self.answer, self.address = command, answer, address
        what = f"cannot access address {address:#x}" if address is not None else f"refuses {command!r}"
        super().__init__(f"OpenOCD {what}: {' '.join(answer.split()) or 'no reason given'}; its log may say more")


class OpenOcdLost(OpenOcdError):
    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        super().__init__(
            f"OpenOCD at {host}:{port} ended the connection: see its log, start it again and repeat the command"
        )


class OpenOcdTimeout(OpenOcdError):
    def __init__(self, host: str, port: int, seconds: float) -> None:
        self.host, self.port, self.seconds = host, port, seconds
        super().__init__(
            f"OpenOCD at {host}:{port} did not answer within {seconds:g} s: is it busy, or its adapter unplugged? "
            "see its log, then repeat the command"
        )
