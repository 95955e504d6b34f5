"""Long output of a monitor command: Ctrl-C in the real gdb, and clients that do not read it."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from rvtrace_gdb.session.proxy.backend import Extension, ExtensionContext
from rvtrace_gdb.session.proxy.connection import Connection
from rvtrace_gdb.session.proxy.protocol.wire import MUCH, Wire, WireGone
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from tests.gdbext.gdb_process import some_gdbs
from tests.gdbext.test_interrupt import Gdb
from tests.helpers.wait import until
from tests.session.proxy.conftest import CODE, PCS, Between
from tests.session.proxy.fakes import Client, packet
from tests.session.proxy.listed_past import ListedPast

LINE = "x" * 1000


class Talker(Extension):
    """`monitor talk` prints until nobody hears it, at most so many lines. *ended*: it has stopped."""

    def __init__(self, lines: int) -> None:
        self._lines = lines
        self.unsent = 0
        """The greatest number of bytes that have waited for the client."""
        self.ended = threading.Event()

    @property
    def prefixes(self) -> tuple[bytes, ...]:
        return (b"qRcmd,",)

    def features(self) -> str:
        return ""

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        assert isinstance(connection, Connection)
        try:
            for _ in range(self._lines):
                if connection.is_unheard():
                    break
                connection.print(LINE)
                self.unsent = max(self.unsent, connection.wire.unsent)
        except WireGone:
            self.unsent = max(self.unsent, connection.wire.unsent)
            raise
        finally:
            self.ended.set()
        return b"OK"


@contextmanager
def talking(lines: int) -> Iterator[tuple[Proxy, Talker]]:
    talker = Talker(lines)
    past = ListedPast(lambda hart: PCS, CODE)
    proxy = Proxy(ProxySetup(past, threading.RLock(), None, extensions=(talker,), keeps_acknowledgments=True))
    proxy.start()
    try:
        yield proxy, talker
    finally:
        proxy.close()


@some_gdbs
def test_gdb_goes_on_after_ctrl_c(gdb: str) -> None:
    """gdb reads no more of the answer then; without acknowledgments it takes the rest for answers to other packets."""
    with talking(1 << 30) as (proxy, talker):
        typed = Gdb(None, gdb)
        try:
            typed.run(f"target remote :{proxy.port}")
            typed.type("monitor talk")
            typed.until(LINE)
            typed.interrupt()
            assert "x\nQuit\n" in typed.answer()
            memory, _, code = (typed.run(command) for command in ("x/4xb 0x1004", "reverse-stepi", "x/i $pc"))
        finally:
            typed.process.kill()
            typed.process.communicate()
        assert talker.ended.is_set()
    assert memory.split(":")[1].split()[:4] == ["0x04", "0x05", "0x06", "0x07"]
    assert f"{PCS[-2]:#x}" in code


def test_a_packet_ends_the_command_before_it_and_is_answered_after_it() -> None:
    """What remote.c does: until the packet is acknowledged, it skips what comes."""
    with talking(1 << 30) as (proxy, talker):
        client = Client(proxy.port)
        client.socket.sendall(packet(b"qRcmd,74"))
        assert client.packet().startswith(b"O")
        client.socket.sendall(packet(b"m1000,4"))
        assert talker.ended.wait(60)
        skipped = client.packet()
        while skipped != b"OK":
            assert skipped.startswith(b"O")
            skipped = client.packet()
        assert client.answer() == b"00010203"
        client.close()


def test_a_packet_that_arrives_while_it_is_looked_for_is_acknowledged_after_the_end_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else gdb takes that end for the answer. The first look that finds nothing is when it comes."""
    talks, peek, choose = threading.Event(), Wire.to_come, select.select
    with talking(1 << 30) as (proxy, _):
        client = Client(proxy.port)

        def comes(wire: Wire) -> None:
            if talks.is_set():
                talks.clear()
                client.socket.sendall(packet(b"m1000,4"))
                until(lambda: b"#" in peek(wire), "the packet")

        def to_come(wire: Wire) -> bytes:
            found = peek(wire)
            if not found:
                comes(wire)
            return found

        def selected(*of: Any) -> tuple[list[Any], list[Any], list[Any]]:
            found = choose(*of)
            if not found[0] and of[-1] == 0:
                comes(of[0][0])
            return found

        monkeypatch.setattr(Wire, "to_come", to_come)
        monkeypatch.setattr("rvtrace_gdb.session.proxy.connection.select", SimpleNamespace(select=selected))
        client.socket.sendall(packet(b"qRcmd,74"))
        assert client.packet().startswith(b"O")
        talks.set()
        said, answer = b"", packet(b"00010203")
        while not said.endswith(answer):
            said = said[-100:] + client.socket.recv(1 << 16)
        assert said.endswith(packet(b"OK") + b"+" + answer)
        client.close()


def test_ctrl_c_from_before_the_command_does_not_end_it() -> None:
    """Neither of this client, nor of another one."""
    with talking(2) as (proxy, _):
        for _ in range(2):
            client = Client(proxy.port)
            client.socket.sendall(b"\x03" + packet(b"qRcmd,74"))
            assert client.answer() == b"OK" and len(client.output) == 2
            client.socket.sendall(b"\x03")
            assert client.ask(b"m1000,2") == b"0001"
            client.close()


def test_gdb_is_not_offered_to_leave_acknowledgments_out_and_may_do_so_elsewhere(between: Between) -> None:
    with talking(1) as (proxy, _):
        client = Client(proxy.port)
        assert b"QStartNoAckMode" not in client.features
        client.close()
    assert b"QStartNoAckMode+" in between.client().features


def test_output_waits_for_a_client_that_does_not_read_it() -> None:
    with talking(16 * MUCH // len(LINE)) as (proxy, talker):
        slow = Client(proxy.port)
        slow.socket.sendall(packet(b"qRcmd,74"))
        until(lambda: talker.unsent > MUCH // 2, "output that waits for the client")
        assert not talker.ended.wait(0.3), "it waits"
        slow.close()
        assert talker.ended.wait(60), "the client has gone"
        assert talker.unsent < MUCH + 4 * len(LINE)
        other = Client(proxy.port)
        assert other.ask(b"m1000,2") == b"0001"
        other.close()


def test_the_proxy_ends_while_output_waits() -> None:
    with talking(16 * MUCH // len(LINE)) as (proxy, talker):
        slow = Client(proxy.port)
        slow.socket.sendall(packet(b"qRcmd,74"))
        assert not talker.ended.wait(0.3)
        proxy.close()
        assert talker.ended.is_set() and not proxy.is_running
        slow.close()


def test_a_debugger_that_finds_no_target_any_more_finds_what_was_recorded(between: Between) -> None:
    between.proxy = Proxy(between.setup()._replace(kept_xlen=lambda: 32))
    between.client().close()
    between.stub.close()
    client = Client(between.proxy.port)
    assert b"riscv:rv32" in client.read_target()
    assert client.ask(b"?").startswith(b"T05") and client.ask(b"bs").startswith(b"T05")
    (line,) = [line for line in between.proxy.take_lines() if "no OpenOCD" in line]
    assert line.endswith("what was recorded is shown")
    client.close()


def test_without_a_trace_its_connection_ends(between: Between) -> None:
    between.client().close()
    between.stub.close()
    with socket.create_connection(("127.0.0.1", between.proxy.port), timeout=60) as client:
        assert client.recv(1) == b""
