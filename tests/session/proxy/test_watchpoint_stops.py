"""Watchpoints in the past: where the proxy stops for them, what it says of them. A fake stub, a raw client, a few pcs.

What is expected comes from gdb 13.1 and 16.3: they take it that RISC-V harts stop before an access (riscv-tdep.c,
have_nonsteppable_watchpoint), remove watchpoints, step once in the direction in which they go, and compare.
"""

from collections.abc import Callable

import pytest

from rvtrace_gdb.session.proxy import stepping
from tests.helpers.wait import PATIENCE, until
from tests.session.proxy.conftest import Between
from tests.session.proxy.fakes import Client
from tests.session.proxy.test_replay_target import BEGIN, END, at

STORE, LOAD, ATOMIC = 0x8000_0010, 0x8000_0020, 0x8000_0030
ACCESSES = [
    (1, "store", STORE), (3, "load", LOAD), (4, "store", STORE + 3), (5, "load", ATOMIC), (5, "store", ATOMIC),
]  # fmt: skip


def hit(position: int, kind: bytes, address: int) -> bytes:
    """The stop reply of a watchpoint at a position of PCS."""
    return at(position, at_end=b"%b:%x;" % (kind, address))


@pytest.fixture
def client(between: Between) -> Client:
    """In the past, at its last instruction."""
    between.past.accesses = ACCESSES
    client = between.client()
    client.ask(b"bs")
    return client


def test_at_the_end_the_hit_is_in_the_present(between: Between) -> None:
    """The last instruction that ran stored: behind it is the target."""
    between.past.accesses = [(END - 1, "store", STORE)]
    client = between.client()
    client.ask(b"Z2,80000010,4")
    reply = client.ask(b"bc")
    assert reply.startswith(b"T05watch:80000010;") and b"4000:ffffffffffffffff;" in reply
    client.ask(b"z2,80000010,4")
    assert client.ask(b"bs") == at(END - 1)
    client.ask(b"Z2,80000010,4")
    assert client.ask(b"c") == hit(END - 1, b"watch", STORE)


SEVERAL = b"watch:80000010;rwatch:80000020;"


def test_who_takes_several_in_one_stop_gets_them(between: Between) -> None:
    """GDB manual, "Stop Reply Packets": if gdb offered multi-wp-addr. What one client said is not said of the next."""
    between.past.accesses = [(1, "store", STORE), (1, "load", LOAD)]
    for feature, reasons in (
        (b"multi-wp-addr+", SEVERAL), (b"swbreak+", SEVERAL[:15]), (b"swbreak+;multi-wp-addr+;x=1", SEVERAL),
        (b"multi-wp-addr-", SEVERAL[:15]), (b"no-multi-wp-addr+", SEVERAL[:15]),
    ):  # fmt: skip
        client = between.client(feature=feature)
        client.ask(b"Z2,80000010,4")
        client.ask(b"Z3,80000020,4")
        assert client.ask(b"bc") == at(2, at_end=reasons), feature
        between.stub.answers[b"c"] = b"T05" + SEVERAL + b"thread:p01.01;"
        client.ask(b"z2,80000010,4")
        client.ask(b"z3,80000020,4")
        client.ask(b"c")
        assert client.ask(b"c").startswith(b"T05" + SEVERAL + b"thread:"), "the target's own reply is changed"
        client.close()
        until(lambda: not between.proxy.connected)


@pytest.mark.parametrize("packet", [b"Z2,x,4", b"Z2,80000010,x", b"Z2", b"Z5,1,1"])
def test_packets_that_are_none_go_to_the_stub(client: Client, between: Between, packet: bytes) -> None:
    client.ask(packet)
    assert between.stub.got[-1] == packet
    assert client.ask(b"bc") == at(0, at_end=BEGIN)


THREADS = b"qXfer:threads:read::0,1000"
SEES: list[Callable[[Client, Between], object]] = [
    lambda client, between: client.ask(b"qfThreadInfo"),
    lambda client, between: client.ask(THREADS),
    lambda client, between: between.proxy.shown(),
]


@pytest.mark.parametrize("sees", SEES, ids=["qfThreadInfo", "qXfer:threads:read", "shown"])
def test_many_steps_for_one_command_are_shown(
    between: Between, monkeypatch: pytest.MonkeyPatch, sees: Callable[[Client, Between], object]
) -> None:
    """gdb asks for threads at stops that it shows, in the way that the stub offers, and not between the steps of a
    watchpoint on a register. A stub that knows no threads is not asked again: then gdb's prompt says it.
    """
    between.stub.answers[THREADS] = b'l<threads><thread id="p1.1"/></threads>'
    client = between.client()
    monkeypatch.setattr(stepping, "FIRST_STEPPING_SECONDS", 0.0)
    monkeypatch.setattr(stepping, "NEXT_SECONDS", PATIENCE)
    for _ in range(3):
        client.ask(b"bs")
        sees(client, between)
    assert client.output == []
    for _ in range(3):
        client.ask(b"bs")
    assert b"".join(client.output) == b"stepping, at number 3 (Ctrl-C ends it)\n"
