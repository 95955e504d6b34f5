"""The way to the target a session uses: OpenOCD, and which of its harts is meant."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from controlregs.target import Target
from session.description import Description, Encoder
from session.errors import HartUnreachable
from support.progress import Progress, silent
from transport.openocd import OpenOcd


class Link(Target, Protocol):
    """What a session needs of a transport; `transport.openocd.OpenOcd` has it."""

    target: str | None
    targets: tuple[str, ...]

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes: ...
    def state(self) -> str: ...
    def command(self, tcl: str) -> str: ...
    def xlen(self) -> int | None: ...
    def unpolled(self) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


Connect = Callable[[str, int], Link]
"""Makes the link to OpenOCD at a host and port; it may connect only when used."""


def open_link(description: Description, encoder: Encoder, connect: Connect = OpenOcd) -> Link:
    """A link to the hart that *encoder* traces, tried out. Raises HartUnreachable and the transport's errors."""
    link = connect(description.openocd.host, description.openocd.tcl_port)
    try:
        link.state()
        link.target = _name(link.targets, encoder.hart)
        state = link.state()
        if state == "unknown":
            raise HartUnreachable(
                encoder.hart,
                f"OpenOCD does not know the state of {link.target}; check power, reset and OpenOCD's log",
            )
    except BaseException:
        link.close()
        raise
    return link


def states(link: Link, harts: Iterable[int]) -> dict[int, str]:
    """The state of each of *harts*, as OpenOCD has it. Raises HartUnreachable and the transport's errors."""
    usual, found = link.target, {}
    with link.unpolled():
        try:
            for hart in harts:
                link.target = _name(link.targets, hart)
                found[hart] = link.state()
        finally:
            link.target = usual
    return found


def _name(targets: tuple[str, ...], hart: int) -> str:
    if hart < len(targets):
        return targets[hart]
    names = f"{len(targets)} ({', '.join(targets)})" if targets else "none"
    raise HartUnreachable(hart, f"OpenOCD counts {names}; correct `hart` in the target description")
