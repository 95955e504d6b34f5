"""A target that returns its registers no more, while its stub goes on: what the past still has of it."""

import pytest

from rvtrace_gdb.session.proxy.proxy_state import TargetState
from rvtrace_gdb.support.errors import silent
from tests.session.proxy.conftest import PCS, Between
from tests.session.proxy.fakes import Client
from tests.session.proxy.listed_past import HERE
from tests.session.proxy.test_replay_target import at, hexed

END = len(PCS) - 1
SAID = (
    "the target no longer reports its registers: going back works within the trace, which `trace save FILE`"
    " keeps"
)
NUMBER = b"p4000"


def at_the_end(between: Between) -> None:
    """As `trace enter` does it, while gdb waits. The trace does not say where the target would go on."""
    between.histories[0] = (*PCS[:-1], HERE)
    with between.lock:
        between.past.enter(0, silent)


def lost(between: Between, *asked: bytes) -> Client:
    """At the end of the past, the target lost after these packets."""
    client = between.client()
    client.ask(b"g")
    for body in asked:
        client.ask(body)
    at_the_end(between)
    between.stub.answers[b"g"] = b"E0E"
    return client


@pytest.mark.parametrize("asked", [b"vCont;s", b"P5=0700000000000000", b"G00"])
@pytest.mark.parametrize("first", [b"g", NUMBER])
def test_where_it_is_not_known_the_last_instruction_is_the_end(between: Between, asked: bytes, first: bytes) -> None:
    """It ran since, or what it said was changed. Whatever gdb asks first, the answers fit each other."""
    client = lost(between, asked)
    client.ask(first)
    assert client.ask(NUMBER) == hexed(END) and client.ask(b"g").endswith(hexed(PCS[END - 1]))
    assert client.ask(b"bs") == at(END - 2)
    assert between.proxy.take_lines() == [SAID]


def test_it_is_there_again(between: Between) -> None:
    client = lost(between)
    client.ask(b"g")
    del between.stub.answers[b"g"]
    between.stub.pc = 0x1044
    assert client.ask(b"g").endswith(hexed(0x1044)) and between.proxy.target is TargetState.HALTED
    assert client.ask(b"m1000,4") == b"11111111"
    between.stub.answers[b"g"] = b"E0E"
    client.ask(b"g")
    assert client.ask(b"bs") == at(END - 1) and between.proxy.take_lines() == [SAID]
    del between.stub.answers[b"g"]
    assert client.ask(b"vCont;c").startswith(b"T05replaylog:end;") and not between.past.away()
