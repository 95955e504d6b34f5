"""A packet of rvtrace's own that carries many of gdb's for registers: they go to the stub without waiting in between.

    qRvtrace.registers:P1b6=...;p1b7;p1b8;|P3b4=...@0        the answer: =OK;01..;02..;OK

"|" before a packet: it is sent only when all before it were answered well. The replies end with the first that is not.
"=" tells the answer from what a program prints (O...). Behind "@" is the hart it is for; nothing: the one of gdb's
current thread.
"""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.session.proxy.extension import Asking
from rvtrace_gdb.support.text import is_number

_PREFIX = "qRvtrace.registers:"
NEXT, BARRIER, HART = ";", "|", "@"
RUNS = b"E.the hart runs"


def refuses(reply: str) -> bool:
    """Whether a reply to p or P is an error, or that there is no such packet: values are pairs of digits."""
    return not reply or (reply[0] == "E" and (len(reply) == 3 or reply[1] == "."))


def batch(packets: Sequence[str]) -> str:
    """One packet of many."""
    return _PREFIX + NEXT.join(packets)


class Csrs:
    """An `Extension` of the proxy."""

    prefixes = (_PREFIX.encode(),)

    def features(self) -> str:
        return ""

    def answer(self, packet: bytes, asking: Asking) -> bytes | None:
        if not asking.live():
            return RUNS
        content, _, number = packet.decode("latin-1").removeprefix(_PREFIX).rpartition(HART)
        hart = int(number) if is_number(number) else None
        replies: list[str] = []
        for group in _groups(content.split(NEXT)):
            for reply in asking.transact_all([part.encode("latin-1") for part in group], hart):
                replies.append(reply.decode("latin-1"))
                if refuses(replies[-1]):
                    return _answer(replies)
        return _answer(replies)


def replies(answer: str) -> list[str]:
    """The replies in an answer."""
    return answer.removeprefix("=").split(NEXT)


def _answer(replies: Sequence[str]) -> bytes:
    return f"={NEXT.join(replies)}".encode("latin-1")


def _groups(packets: Sequence[str]) -> Iterator[list[str]]:
    """What is sent at once."""
    group: list[str] = []
    for packet in packets:
        if packet.startswith(BARRIER) and group:
            yield group
            group = []
        group.append(packet.removeprefix(BARRIER))
    if group:
        yield group
