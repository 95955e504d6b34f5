"""Watchpoints in the past: where the proxy stops for them, what it says of them. A fake stub, a raw client, a few pcs.

What is expected comes from gdb 13.1 and 16.3: they take it that RISC-V harts stop before an access (riscv-tdep.c,
have_nonsteppable_watchpoint), remove watchpoints, step once in the direction in which they go, and compare.
"""

from collections.abc import Callable

import pytest

from rvtrace_gdb.session.replay import stepping
from tests.helpers.wait import PATIENCE
from tests.session.replay.conftest import PCS, Between
from tests.session.replay.fakes import Client
from tests.session.replay.test_replay_target import BEGIN, END, PRESENT, at

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


def test_backward_a_hit_is_behind_the_access_and_forward_before_it(client: Client) -> None:
    assert client.ask(b"Z2,80000010,4") == b"OK"
    assert client.ask(b"bc") == hit(5, b"watch", STORE + 3)
    assert client.ask(b"bc") == hit(5, b"watch", STORE + 3)  # as long as the watchpoint is inserted
    assert client.ask(b"z2,80000010,4") == b"OK"
    assert client.ask(b"bs") == at(4)
    assert client.ask(b"Z2,80000010,4") == b"OK"
    assert client.ask(b"bc") == hit(2, b"watch", STORE)
    client.ask(b"z2,80000010,4")
    assert client.ask(b"bs") == at(1)
    client.ask(b"Z2,80000010,4")
    assert client.ask(b"bc") == at(0, at_end=BEGIN)
    assert client.ask(b"vCont;c") == hit(1, b"watch", STORE)
    client.ask(b"z2,80000010,4")
    assert client.ask(b"s") == at(2)
    client.ask(b"Z2,80000010,4")
    assert client.ask(b"vCont;c:p1.-1") == hit(4, b"watch", STORE + 3)


@pytest.mark.parametrize("packet", [b"s", b"vCont;s:p1.1", b"vCont;r1000,1003:p1.1"])
def test_a_step_is_not_made_over_a_hit(client: Client, packet: bytes) -> None:
    client.ask(b"bc")
    client.ask(b"Z4,80000012,1")
    assert client.ask(b"s") == at(1)
    client.ask(b"Z2,80000010,1")
    assert client.ask(packet) == hit(1, b"watch", STORE)
    client.ask(b"z2,80000010,1")
    assert client.ask(b"s") == at(2)
    client.ask(b"Z2,80000010,1")
    assert client.ask(b"bs") == hit(2, b"watch", STORE)


def test_a_step_in_a_range_goes_on_to_a_hit(client: Client) -> None:
    client.ask(b"bc")
    client.ask(b"Z2,80000010,1")
    assert client.ask(b"vCont;r1000,1003:p1.1") == hit(1, b"watch", STORE)


def test_kinds_of_accesses(client: Client) -> None:
    client.ask(b"Z3,80000030,1")
    assert client.ask(b"bc") == hit(6, b"rwatch", ATOMIC)
    client.ask(b"z3,80000030,1")
    client.ask(b"bs")
    for packet in (b"Z3,80000010,8", b"Z2,80000020,8"):
        assert client.ask(packet) == b"OK"
    assert client.ask(b"bc") == at(0, at_end=BEGIN)
    client.ask(b"Z4,8000001c,8")
    assert client.ask(b"c") == hit(3, b"awatch", LOAD)


def test_breakpoints_and_watchpoints_together(client: Client) -> None:
    """At the same place the breakpoint comes first: gdb leaves the place that a watchpoint reports at once."""
    client.ask(b"Z2,80000010,4")
    client.ask(b"Z0,%x,2" % PCS[5])
    assert client.ask(b"bc") == at(5)
    assert client.ask(b"bc") == hit(5, b"watch", STORE + 3)
    client.ask(b"bc")
    client.ask(b"z2,80000010,4")
    client.ask(b"z0,%x,2" % PCS[5])
    client.ask(b"bc")
    client.ask(b"Z0,%x,2" % PCS[4])
    client.ask(b"Z2,80000010,4")
    assert client.ask(b"c") == hit(1, b"watch", STORE)
    client.ask(b"z2,80000010,4")
    client.ask(b"s")
    client.ask(b"Z2,80000010,4")
    assert client.ask(b"c") == at(4)
    assert client.ask(b"c") == hit(4, b"watch", STORE + 3)


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


def test_set_in_the_past_and_live_again(between: Between) -> None:
    """The stub gets them before the target runs, and may refuse some; those set live trigger in the past."""
    between.past.accesses = ACCESSES
    between.stub.answers[b"Z4,80000020,4"] = b"E0e"
    client = between.client()
    client.ask(b"Z2,80000010,4")
    assert client.ask(b"bc") == hit(5, b"watch", STORE + 3)
    client.ask(b"Z4,80000020,4")
    client.ask(b"z2,80000010,4")
    assert client.ask(b"c") == PRESENT
    client.ask(b"Z2,80000010,4")
    assert client.ask(b"c").startswith(b"T05thread")
    assert between.stub.got[-1] == b"c" and between.stub.got.count(b"Z2,80000010,4") == 2
    assert between.proxy.take_lines() == ["warning: the watchpoint at 0x80000020 was refused by the target"]


def test_without_accesses_in_the_trace_they_are_said_to_be_of_no_use(between: Between) -> None:
    client = between.client()
    client.ask(b"Z2,80000010,4")
    assert client.ask(b"bc") == at(0, at_end=BEGIN)
    assert client.ask(b"c") == PRESENT
    assert b"".join(client.output).count(b"watchpoints cannot trigger in the past") == 1


@pytest.mark.parametrize("packet", [b"Z2,80000010", b"Z2,80000010,0", b"Z2,80000010,1;X1,0"])
def test_odd_packets(client: Client, packet: bytes) -> None:
    """A size that is left out, or none, is a byte."""
    assert client.ask(packet) == b"OK"
    assert client.ask(b"bc") == hit(2, b"watch", STORE)


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


def test_the_present_in_between_ends_a_command_too(between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    client = between.client()
    monkeypatch.setattr(stepping, "FIRST_STEPPING_SECONDS", 0.0)
    for _ in range(3):
        client.ask(b"bs")
        assert client.ask(b"c") == PRESENT
        client.ask(b"qfThreadInfo")
    assert client.output == []
