"""LLDB as a client: what it sends first makes answers that it understands. A raw client, and a few pcs.

What is expected comes from LLDB's documentation, "GDB Remote Protocol Extensions", and from LLDB 23.1: it takes the
digits "xx" for a value, and an error for <unavailable>.
"""

import threading
from collections.abc import Iterator

import pytest

from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from tests.session.proxy.conftest import CODE, PCS, Between
from tests.session.proxy.fakes import Client
from tests.session.proxy.listed_past import ListedPast

STORE = 0x8000_0010
MADE_AT = 2


@pytest.fixture
def client() -> Iterator[Client]:
    past = ListedPast(lambda hart: PCS, CODE)
    past.accesses = [(MADE_AT, "store", STORE)]
    proxy = Proxy(ProxySetup(past, threading.RLock(), None))
    proxy.start()
    client = Client(proxy.port)
    yield client
    client.close()
    proxy.close()


@pytest.mark.parametrize("packet", [b"QThreadSuffixSupported", b"qHostInfo", b"qProcessInfo", b"jThreadsInfo"])
def test_unknown_registers_are_errors_for_lldb_and_unknown_digits_for_gdb(client: Client, packet: bytes) -> None:
    assert client.ask(b"p2") == b"xx" * 8 and b"xx" in client.ask(b"g")
    client.ask(packet)
    assert client.ask(b"p2") == client.ask(b"g") == b"E01"
    assert client.ask(b"p0") == b"00" * 8, "x0 is known"
    assert len(client.ask(b"p20")) == 16


def test_what_the_stub_answers_to_a_monitor_command_is_text_for_lldb(between: Between) -> None:
    """It shows the digits of an answer, and the text of output."""
    client, text, answers = between.client(), b"pc: 0x10\n", between.stub.answers
    answers.update({b"qRcmd,70": text.hex().encode(), b"qRcmd,71": b"E01", b"qRcmd,72": b"OK", b"qRcmd,73": b""})
    assert client.ask(b"qRcmd,70") == text.hex().encode() and not client.output
    client.ask(b"QThreadSuffixSupported")
    assert client.ask(b"qRcmd,70") == b"OK" and client.output == [text]
    assert [client.ask(b"qRcmd,7%d" % number) for number in (1, 2, 3)] == [b"E01", b"OK", b""]


def test_partly_known_memory_goes_with_each_stop(client: Client) -> None:
    assert b"memory:" not in client.ask(b"bs")
    client.ask(b"qHostInfo")
    address, data = next(iter(CODE.items()))
    reply = client.ask(b"bs")
    assert f"memory:{address:#x}={data.hex()};".encode() in reply
    assert reply.count(b"memory:") == len(CODE)


def test_a_hit_is_reported_when_the_access_is_made_as_qhostinfo_says(client: Client) -> None:
    said = dict(part.split(b":") for part in client.ask(b"qHostInfo").rstrip(b";").split(b";"))
    assert said[b"watchpoint_exceptions_received"] == b"after" and said[b"endian"] == b"little"
    assert bytes.fromhex(said[b"triple"].decode()).startswith(b"riscv64-")
    client.ask(b"qXfer:features:read:target.xml:0,ffff")  # then stop replies have the position
    client.ask(b"Z2,80000010,4")
    assert _place(client.ask(b"bc")) == (MADE_AT, True), "backward: before the store"
    assert _place(client.ask(b"bc")) == (0, False)
    assert _place(client.ask(b"vCont;c")) == (MADE_AT + 1, True), "forward: behind it"


def _place(reply: bytes) -> tuple[int, bool]:
    """The position in a stop reply, and whether a watchpoint is the reason."""
    fields = dict(part.split(b":", 1) for part in reply[3:].rstrip(b";").split(b";"))
    return int.from_bytes(bytes.fromhex(fields[b"4000"].decode()), "little") - 1, b"watch" in fields
