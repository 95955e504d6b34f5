"""A gdb stub of two harts, each a thread, that are at a place in the past: nothing runs, and only pc is known.

The register trace_pos is what the proxy of `session.proxy` adds. Source: GDB manual, "GDB Remote Serial Protocol".
"""

import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

_NAMES = (
    *("zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", *(f"a{n}" for n in range(8))),
    *(*(f"s{n}" for n in range(2, 12)), *(f"t{n}" for n in range(3, 7)), "pc"),
)
_FLOATS = (
    *(*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8))),
    *(*(f"fs{n}" for n in range(2, 12)), *(f"ft{n}" for n in range(8, 12))),
)
_PC, _POSITION = 32, 65
_REGISTERS = "".join(f'<reg name="{name}" bitsize="64"/>' for name in _NAMES)
_FLOAT_REGISTERS = "".join(f'<reg name="{name}" bitsize="64" type="ieee_double"/>' for name in _FLOATS)
_TARGET = f"""l<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd">
<target><architecture>riscv:rv64</architecture>
<feature name="org.gnu.gdb.riscv.cpu">{_REGISTERS}</feature>
<feature name="org.gnu.gdb.riscv.fpu">{_FLOAT_REGISTERS}</feature>
<feature name="org.rvtrace.position"><reg name="trace_pos" bitsize="64" type="int64" group="rvtrace"/></feature>
</target>"""


class At(NamedTuple):
    """Where a hart is: the number of the place, -1 in the present, and its pc."""

    number: int
    pc: int


@contextmanager
def serving(harts: Sequence[At]) -> Iterator[int]:
    """Serves one gdb; gives the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, harts), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _serve(server: socket.socket, harts: Sequence[At]) -> None:
    try:
        connection, _ = server.accept()
    except OSError:
        return
    with connection:
        stub, received = _Stub(harts), b""
        while data := connection.recv(1 << 16):
            received += data
            while match := re.search(rb"\$([^#]*)#..", received):
                received = received[match.end() :]
                answer = stub.answer(match[1].decode()).encode()
                connection.sendall(b"+$" + answer + b"#%02x" % (sum(answer) % 256))


class _Stub:
    def __init__(self, harts: Sequence[At]) -> None:
        self._harts, self._thread = harts, 1

    def answer(self, packet: str) -> str:
        fixed = {
            "?": "T05thread:1;",
            "qC": "QC1",
            "qfThreadInfo": "m" + ",".join(str(number) for number in range(1, len(self._harts) + 1)),
            "qsThreadInfo": "l",
        }
        if packet in fixed:
            return fixed[packet]
        if packet.startswith("qSupported"):
            return "PacketSize=4000;qXfer:features:read+"
        if packet.startswith("qXfer:features:read:target.xml"):
            return _TARGET
        if packet.startswith("H"):
            self._thread = max(int(packet[2:], 16), 1) if packet[2:] != "-1" else 1
            return "OK"
        if packet.startswith("T"):
            return "OK"
        if packet == "g":
            return "".join(map(self._register, range(_POSITION + 1)))
        if packet.startswith("p"):
            return self._register(int(packet[1:], 16))
        return ""

    def _register(self, number: int) -> str:
        hart = self._harts[self._thread - 1]
        values = {_PC: hart.pc, _POSITION: hart.number}
        return (values[number] % (1 << 64)).to_bytes(8, "little").hex() if number in values else "x" * 16
