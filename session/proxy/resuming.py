"""What a packet that resumes says: forward or back, a step or a run, which thread.

Source: GDB manual, "Packets" (bc, bs, c, C, s, S, vCont).
"""

import re
from typing import NamedTuple

from rvtrace_gdb.session.proxy.threads import Threads, canonical

_ACTION = re.compile(rb"([cCsS][0-9a-fA-F]{0,2}|r[0-9a-fA-F]+,[0-9a-fA-F]+)(?::(.*))?$")
_PLAIN = re.compile(rb"([csCS])([0-9a-fA-F]{2})?$")


class Resume(NamedTuple):
    """*direction* 1 or -1. *addresses*: of a step that goes on within them. *thread*: which moves, None if any."""

    direction: int
    is_step: bool
    thread: str | None
    addresses: range | None = None


def resume_of(body: bytes, threads: Threads) -> Resume | None:
    """None: it is no packet that resumes, or it resumes somewhere else than where the target stands."""
    if body in (b"bs", b"bc"):
        return Resume(-1, body == b"bs", threads.resuming or threads.selected)
    if body.startswith(b"vCont;"):
        return _of_actions(body[len(b"vCont;") :], threads)
    match = _PLAIN.match(body)
    if match is None or (match[2] is not None) != (match[1] in b"CS"):
        return None
    return Resume(1, match[1] in b"sS", threads.resuming or threads.selected)


def _of_actions(text: bytes, threads: Threads) -> Resume | None:
    """A thread that steps is what gdb is about; else the one that it names."""
    actions = [match for action in text.split(b";") if (match := _ACTION.match(action))]
    if not actions:
        return None
    first = next((it for it in actions if it[1][:1] in b"sSr"), actions[0])
    thread = canonical(first[2] or b"") or threads.selected
    addresses = None
    if first[1][:1] == b"r":
        begin, end = (int(number, 16) for number in first[1][1:].split(b","))
        addresses = range(begin, end)
    return Resume(1, first[1][:1] in b"sSr", thread, addresses)
