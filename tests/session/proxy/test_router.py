"""What is not a stub, a second gdb, Ctrl-C between two ways, a present that cannot be read: a fake stub, a raw
client.
"""

import contextlib
import socket
import threading

import pytest

from rvtrace_gdb.session.proxy import router
from rvtrace_gdb.session.proxy.backend import ExtensionContext
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup, TargetState
from tests.helpers.wait import until
from tests.session.proxy.conftest import PCS, Between
from tests.session.proxy.fakes import packet
from tests.session.proxy.listed_past import ListedPast

END = len(PCS) - 1


def test_a_second_gdb_is_refused(between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "_SECOND_CLIENT_SECONDS", 0.1)
    client = between.client()
    with socket.create_connection(("127.0.0.1", between.proxy.port), 60) as other:
        other.sendall(b"+" + packet(b"qSupported"))
        with contextlib.suppress(ConnectionResetError):  # it had sent something
            assert other.recv(1) == b""
    assert between.proxy.take_lines() == ["another gdb was refused: this one is connected"]
    assert client.ask(b"bs").startswith(b"T05")


def test_what_says_nothing_is_no_stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "_SILENT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = int(mute.getsockname()[1])
        proxy = Proxy(ProxySetup(ListedPast(lambda hart: PCS), threading.RLock(), StubAddress("127.0.0.1", port)))
        proxy.start()
        with socket.create_connection(("127.0.0.1", proxy.port), 60) as client:
            client.sendall(b"+" + packet(b"qSupported"))
            assert b"$" not in client.recv(100) + client.recv(100)
        (line,) = proxy.take_lines()
        proxy.close()
    assert line.startswith(f"no OpenOCD and no other gdb stub at 127.0.0.1:{port}: what is there does not speak")


def test_an_interrupt_between_two_ways_stops_the_next(between: Between) -> None:
    """So that gdb is not deaf while it goes from one breakpoint to the next whose condition is false."""
    client = between.client()
    client.ask(b"bs")
    client.socket.sendall(b"\x03")
    assert client.ask(b"bc").startswith(b"T02")
    assert between.past.position(0) == END - 1  # it has not moved
    client.socket.sendall(b"\x03")
    assert client.ask(b"p4000") == b"%02x00000000000000" % END
    between.proxy.shown()  # gdb has stopped by itself meanwhile
    assert client.ask(b"bc").startswith(b"T05replaylog:begin;")


def test_a_present_that_cannot_be_read_is_not_entered(between: Between) -> None:
    client = between.client()
    client.ask(b"bs")
    between.stub.answers[b"g"] = b"E0E"
    assert client.ask(b"vCont;c").startswith(b"T05replaylog:end;")
    assert between.past.position(0) == END - 1
    between.proxy.jump(0, None)
    assert client.ask(b"s").startswith(b"T05")
    assert between.past.position(0) == END - 1
    assert b"the target does not report its registers" in client.output[-1]
    del between.stub.answers[b"g"]
    between.proxy.jump(0, None)
    client.ask(b"s")
    assert not between.past.away()


def test_packets_that_break_off_inside_an_escape(between: Between) -> None:
    """Found by `make fuzz`: of the stub, the registers; of gdb, what an extension would have answered."""
    between.proxy = Proxy(between.setup(extensions=[Qx()]))
    client = between.client()
    between.stub.answers[b"g"] = b"0011}"
    assert client.ask(b"g") == b"0011}"
    assert client.ask(b"qx") == b"it"
    assert client.ask(b"qx}") == b""
    between.stub.answers[b"g"] = b"*"
    client.ask(b"bs")
    assert client.ask(b"qx") == b"it"
    assert not any("internal" in line for line in between.proxy.take_lines())


class Qx:
    """An extension with one packet."""

    prefixes = (b"qx",)

    def features(self) -> str:
        return "qx+"

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        return b"it"


def test_a_stub_that_is_lost_while_gdb_looks_around(between: Between) -> None:
    """Only what gdb reads to find frames is answered: it crashes when the connection ends meanwhile."""
    client = between.client()
    between.stub.hang_up()
    until(lambda: between.proxy.target is TargetState.LOST)
    assert [client.ask(body) for body in (b"m1000,4", b"x1000,4", b"p8")] == [b"E01"] * 3
    client.socket.sendall(packet(b"qC"))
    assert client.is_closed()
