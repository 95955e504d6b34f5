"""LLDB as a client: how it is recognised, and what it reads in answers that gdb reads otherwise, or has no packets for.

It asks for what gdb never asks. An unknown register must be an error: LLDB takes the digits "xx" for values.

LLDB reads memory by lines of its cache, and what it reads of a line that is partly known is an error. What is known of
such lines goes with the stop reply, into another part of the cache, where it looks first.

Sources: LLDB's documentation, "GDB Remote Protocol Extensions" (qHostInfo, QThreadSuffixSupported, "memory" of stop
replies), and what LLDB 23 sends.
"""

from collections.abc import Iterable

from rvtrace_gdb.session.proxy.backend import MemoryPart
from rvtrace_gdb.session.proxy.protocol.packets import canonical

_ASKS = (b"QThreadSuffixSupported", b"QListThreadsInStopReply", b"qHostInfo", b"qProcessInfo", b"jThreadsInfo")
_SECONDS = 60  # for an answer, as for gdb where `set remotetimeout 60` is; LLDB waits 5
_THREAD_STOP = b"qThreadStopInfo"
_UNKNOWN = b"x"
REFUSED = b"E01"
JUMPED = f"reason:exception;description:{b'the same address again'.hex()};".encode()
"""The end of the stop reply of a jump to the same address, where LLDB otherwise steps once more: it believes that
nothing has moved. No other reason ends that step.
"""


def is_from_lldb(packet: bytes) -> bool:
    """Return whether LLDB alone sends such a packet."""
    return packet.startswith(_ASKS)


def host_info(xlen: int) -> bytes:
    """Return the answer to qHostInfo, for a trace without a target.

    A watchpoint is reported when the access has been made. Else LLDB steps over it, which it does forward only.
    """
    triple = f"riscv{xlen}-unknown-unknown-elf".encode().hex()
    fields = {
        "triple": triple, "endian": "little", "ptrsize": xlen // 8, "default_packet_timeout": _SECONDS,
        "watchpoint_exceptions_received": "after",
    }  # fmt: skip
    return "".join(f"{name}:{value};" for name, value in fields.items()).encode()


def thread_stop(packet: bytes, stopped: str | None) -> bytes | None:
    """Return the answer to qThreadStopInfo, with which it asks for the other threads after a stop of one; None for
    other packets. *stopped*: the thread that stopped. The others stand, for no reason.
    """
    thread = canonical(packet.removeprefix(_THREAD_STOP)) if packet.startswith(_THREAD_STOP) else None
    return None if thread is None else f"T{'05' if thread == stopped else '00'}thread:{thread};".encode()


def as_known(digits: bytes) -> bytes:
    """Return the answer to p or g for these digits: an error where some are unknown."""
    return REFUSED if _UNKNOWN in digits else digits


def with_stop(memory: Iterable[MemoryPart]) -> list[bytes]:
    """Return what a stop reply says of memory."""
    return [f"memory:{address:#x}={data.hex()};".encode() for address, data in memory]
