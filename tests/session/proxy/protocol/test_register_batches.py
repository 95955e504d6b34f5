"""One packet of ours that carries many for registers: what reaches the stub, and when. A fake stub, a raw client."""

import pytest

from rvtrace_gdb.session.proxy.backend import RUNS, RegisterBatches, batch, replies
from rvtrace_gdb.session.proxy.proxy import Proxy
from tests.session.proxy.conftest import Between
from tests.session.proxy.fakes import Client
from tests.session.replay.naive_btrace import Code, Target


@pytest.fixture
def client(between: Between) -> Client:
    between.proxy = Proxy(between.setup(extensions=(RegisterBatches(),)))
    return between.client()


def ask(client: Client, *packets: str, hart: str = "") -> list[str]:
    return replies(client.ask(f"{batch(packets)}@{hart}".encode()).decode())


def test_what_waits_is_sent_only_when_all_before_it_went_well(between: Between, client: Client) -> None:
    between.stub.answers |= {b"p1": b"E14", b"p2": b"22", b"p3": b"33"}
    assert ask(client, "p1", "p2", "|P5=00", "p3") == ["E14"]
    assert b"p2" in between.stub.got and b"P5=00" not in between.stub.got
    assert ask(client, "p2", "|P5=00", "p3", "|P6=00") == ["22", "OK", "33", "OK"]


def test_for_a_hart_the_stub_is_told_its_thread_and_gdbs_own_again_afterwards(
    between: Between, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.ask(b"qfThreadInfo")
    client.ask(b"Hgp1.1")
    between.stub.answers[b"p1"] = b"11"
    before = len(between.stub.got)
    assert ask(client, "p1", hart="1") == ["11"]
    client.ask(b"p20")
    assert between.stub.got[before:] == [b"Hgp1.2", b"p1", b"Hgp1.1", b"p20"]
    assert not caplog.records
    between.stub.answers[b"Hgp1.2"] = b"E01"
    ask(client, "p1", hart="1")
    assert [it.getMessage() for it in caplog.records] == ["the stub knows no thread p1.2: b'E01'"]


def test_a_running_target_is_left_alone() -> None:
    target = Target(Code(b"\x13\x00\x00\x00"), [], 0)
    target.live = lambda: False  # type: ignore[method-assign]
    assert RegisterBatches().answer(f"{batch(['p1'])}@".encode(), target) == RUNS
