"""How fast gdb's memory reads and downloads are through the proxy, compared with a direct connection: one ratio each.

    python benchmarks/gdb/proxy.py [qemu] [openocd]

Direct and proxied runs alternate in one process's time, so that a busy machine slows both. A raw client sends the
packets gdb sends ("m" of the size gdb asks for, "X" with binary data); gdb itself does `dump binary memory` and
`restore`. The medians of the runs are compared.
"""

import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.proxy.protocol.wire import GdbPacketKind, GdbPacketStream, StubAddress, escape, frame
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from tests.helpers import qemu
from tests.helpers.cross_compiler import demo
from tests.session.proxy.listed_past import ListedPast

RAM = 0x80000000
ROUNDS = 5
SETTLE_SECONDS = 1.0  # OpenOCD refuses a gdb until it has noticed that the one before is gone


class Raw:
    """A client of a stub that does nothing but wait for the answer."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = GdbPacketStream()
        self._acknowledges = True
        self._socket.sendall(b"+")
        features = self.ask(b"qSupported:multiprocess+;xmlRegisters=riscv")
        self.packet_size = next(
            int(word.partition(b"=")[2], 16) for word in features.split(b";") if word.startswith(b"PacketSize=")
        )
        if b"QStartNoAckMode+" in features:  # QEMU 7.2 has it not
            self._acknowledges = self.ask(b"QStartNoAckMode") != b"OK"
        self.ask(b"?")

    def ask(self, body: bytes) -> bytes:
        self._socket.sendall(frame(body))
        while True:
            for item in self._stream.feed(self._socket.recv(1 << 16)):
                if item.kind is GdbPacketKind.PACKET:
                    if self._acknowledges:
                        self._socket.sendall(b"+")
                    return item.body

    def close(self) -> None:
        self._socket.close()


def read_memory(port: int, size: int) -> float:
    """Seconds for *size* bytes in the pieces gdb reads."""
    client = Raw(port)
    piece = client.packet_size // 2
    begin = time.perf_counter()
    for offset in range(0, size, piece):
        answer = client.ask(b"m%x,%x" % (RAM + offset, piece))
        assert len(answer) == 2 * piece, answer[:40]
    seconds = time.perf_counter() - begin
    client.close()
    return seconds


def download(port: int, size: int) -> float:
    """Seconds for *size* bytes in the packets gdb would use: X, or M where the stub has no X (QEMU 7.2)."""
    client = Raw(port)
    binary = client.ask(b"X%x,0:" % RAM) == b"OK"
    piece = client.packet_size // 4 // 256 * 256
    data = bytes(range(256)) * (piece // 256)
    content = escape(data) if binary else data.hex().encode()
    begin = time.perf_counter()
    for offset in range(0, size, piece):
        assert client.ask(b"%b%x,%x:%b" % (b"X" if binary else b"M", RAM + offset, piece, content)) == b"OK"
    seconds = time.perf_counter() - begin
    client.close()
    return seconds


def in_gdb(command: str) -> Callable[[int, int], float]:
    """A gdb command's seconds, as gdb's Python measures them."""

    def run(port: int, size: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "data").write_bytes(bytes(range(256)) * (size // 256))
            text = command.format(file=Path(folder) / "data", begin=RAM, end=RAM + size)
            python = f"import time; t=time.perf_counter(); gdb.execute('{text}'); print('T', time.perf_counter()-t)"
            words = ["gdb-multiarch", "-q", "-nx", "-batch", "-ex", "set arch riscv:rv64"]
            words += ["-ex", f"target extended-remote 127.0.0.1:{port}", "-ex", f"python {python}"]
            done = subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
            return float(done.stdout.rpartition("T ")[2].split()[0])

    return run


WORK: dict[str, Callable[[int, int], float]] = {
    "raw m": read_memory,
    "raw X": download,
    "gdb dump": in_gdb("dump binary memory {file} {begin} {end}"),
    "gdb restore": in_gdb("restore {file} binary {begin}"),
}


def through_proxy(port: int, size: int, work: Callable[[int, int], float]) -> float:
    """As *work* at the stub's *port*. QEMU serves one connection at a time, so the proxy is there for this run only."""
    proxy = Proxy(ProxySetup(ListedPast(lambda hart: [0]), threading.RLock(), StubAddress("127.0.0.1", port)))
    proxy.start()
    try:
        return work(proxy.port, size)
    finally:
        proxy.close()


def compare(name: str, port: int, size: int) -> None:
    for label, work in WORK.items():
        direct: list[float] = []
        proxied: list[float] = []
        for turn in range(2 * ROUNDS):
            time.sleep(SETTLE_SECONDS)
            if (turn + turn // 2) % 2:
                proxied.append(through_proxy(port, size, work))
            else:
                direct.append(work(port, size))
        rates = [size / statistics.median(seconds) / 1e6 for seconds in (direct, proxied)]
        best = 100 * min(direct) / min(proxied)
        print(
            f"{name:8} {label:12} direct {rates[0]:7.2f} MB/s, through the proxy {rates[1]:7.2f} MB/s:"
            f" {100 * rates[1] / rates[0]:5.1f} % (best runs {best:5.1f} %)",
            flush=True,
        )


@contextmanager
def stub(name: str, folder: Path) -> Iterator[int]:
    elf = demo(folder)
    if name == "qemu":
        with qemu.running(elf, folder, logged=False) as machine:
            yield machine.port
    else:
        with Rig(elf, folder / "rig") as rig:
            yield rig.gdb_port


def main() -> None:
    for name in sys.argv[1:] or ("qemu", "openocd"):
        with tempfile.TemporaryDirectory() as folder, stub(name, Path(folder)) as port:
            compare(name, port, (1 << 20) if name == "qemu" else (1 << 14))


if __name__ == "__main__":
    main()
