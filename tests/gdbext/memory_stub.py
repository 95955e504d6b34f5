"""A gdb stub that has memory and a stopped hart, and nothing else: for what gdb only reads.

Source: GDB manual, "GDB Remote Serial Protocol".
"""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_RV32 = b"""l<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd">
<target><architecture>riscv:rv32</architecture></target>"""
_MAP = b"""l<?xml version="1.0"?><memory-map><memory type="ram" start="0x%x" length="0x%x"/></memory-map>"""
_REGISTERS = b"00000000" * 33


@contextmanager
def serving(memory: Mapping[int, bytes], ram: range = range(1 << 32)) -> Iterator[int]:
    """Serves one gdb with *memory*, content by address; gives the port. *ram*: all that its memory map has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, memory, ram), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _serve(server: socket.socket, memory: Mapping[int, bytes], ram: range) -> None:
    try:
        connection, _ = server.accept()
    except OSError:
        return
    with connection:
        received = b""
        while data := connection.recv(1 << 16):
            received += data
            while (end := received.find(b"#")) >= 0 and len(received) >= end + 3:
                packet = received[received.index(b"$") + 1 : end]
                received = received[end + 3 :]
                answer = _answer(packet, memory, ram)
                connection.sendall(b"+$" + answer + b"#%02x" % (sum(answer) % 256))


def _answer(packet: bytes, memory: Mapping[int, bytes], ram: range) -> bytes:
    if packet.startswith(b"qSupported"):
        return b"PacketSize=4000;qXfer:features:read+;qXfer:memory-map:read+"
    if packet.startswith(b"qXfer:features:read:target.xml"):
        return _RV32
    if packet.startswith(b"qXfer:memory-map:read"):
        return _MAP % (ram.start, len(ram))
    if packet == b"?":
        return b"S05"
    if packet == b"g":
        return _REGISTERS
    if packet.startswith(b"m"):
        address, size = (int(number, 16) for number in packet[1:].split(b","))
        return _content(memory, address, size)
    return b""


def _content(memory: Mapping[int, bytes], address: int, size: int) -> bytes:
    for start, data in memory.items():
        if start <= address < start + len(data):
            return data[address - start : address - start + size].hex().encode()
    return b"E14"
