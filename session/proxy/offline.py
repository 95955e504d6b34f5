"""A target that is only a trace, or is gone: what a stub answers besides registers, memory and steps.

A stub that is gone is remembered: gdb takes it ill when a packet is answered differently all at once.

Source: GDB manual, "Packets", "General Query Packets".
"""

from typing import TYPE_CHECKING

from rvtrace_gdb.session.proxy.present import own_features
from rvtrace_gdb.session.proxy.walk import SIGTRAP, stop_reply

if TYPE_CHECKING:
    from rvtrace_gdb.session.proxy.conversation import Conversation

_FEATURES = (b"PacketSize=4000", b"QStartNoAckMode+", b"vContSupported+", b"qXfer:features:read+")
_FIXED = {
    b"QStartNoAckMode": b"OK",
    b"!": b"OK",
    b"qAttached": b"1",
    b"qsThreadInfo": b"l",
    b"vCont?": b"vCont;c;C;s;S",
    b"D": b"OK",
    b"qOffsets": b"",
}


def answer(it: "Conversation", body: bytes) -> None:
    """Answers any packet; one that is not known with nothing, as the protocol has it."""
    if body[:1] == b"k":
        it.end()
    it.send(_answer(it, body))
    if body == b"QStartNoAckMode":
        it.gdb.acknowledges = False


def _answer(it: "Conversation", body: bytes) -> bytes:
    earlier = it.answered(body)
    if earlier is not None:
        return earlier
    first = body.partition(b":")[0]
    if first in _FIXED:
        return _FIXED[first]
    if first == b"qSupported":
        return b";".join([*_FEATURES, *own_features(it)])
    if body == b"?":
        return stop_reply(it, it.threads.selected, SIGTRAP, "")
    if body == b"qC":
        return b"QC" + (it.threads.current or "").encode() if it.threads.current else b""
    if body == b"qfThreadInfo":
        known = it.threads.in_order()
        return b"m" + ",".join(known).encode() if known else b"l"
    if body[:1] == b"H":
        it.threads.set(body[1:2], body[2:])
        return b"OK"
    if body[:1] in (b"T", b"D"):
        return b"OK"
    if body.startswith(b"qRcmd,"):
        it.send(b"O" + b"there is no target, only its trace\n".hex().encode())
        return b"OK"
    # Where a stub answered such a packet before, it must not become one that nobody knows.
    return b"E01" if it.shared.where and body.startswith(b"qXfer:") else b""
