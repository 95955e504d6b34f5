"""LLDB as a client: what it sends first makes answers that it understands. A raw client, and a few pcs.

What is expected comes from LLDB's documentation, "GDB Remote Protocol Extensions", and from LLDB 23.1: it takes the
digits "xx" for a value, and an error for <unavailable>.
"""

import threading
from collections.abc import Iterator

import pytest

from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from rvtrace_gdb.support.errors import Progress, RvtraceError
from tests.session.proxy.conftest import CODE, PCS, Between
from tests.session.proxy.fakes import Client, fake_stub
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


def test_threads_that_did_not_stop_have_no_reason_and_unknown_packets_are_answered(client: Client) -> None:
    assert client.ask(b"qThreadStopInfo2") == b"", "it is not gdb's"
    client.ask(b"qHostInfo")
    client.ask(b"bs")
    assert client.ask(b"qThreadStopInfo2") == b"T00thread:2;" and client.ask(b"qThreadStopInfo1") == b"T05thread:1;"
    assert client.ask(b"jThreadsInfo") == b""


def test_packets_that_openocd_does_not_answer_do_not_go_there() -> None:
    with fake_stub() as stub:
        proxy = Proxy(ProxySetup(ListedPast(lambda hart: PCS, CODE), threading.RLock(),
                                 StubAddress("127.0.0.1", stub.port)))  # fmt: skip
        proxy.start()
        client = Client(proxy.port)
        assert client.ask(b"jThreadsInfo") == b"" and b"jThreadsInfo" not in stub.got
        client.close()
        proxy.close()


@pytest.fixture
def clicked() -> Iterator[Client]:
    """A client of CodeLLDB's kind: a step backward by lines leads two instructions back."""

    def line_before(hart: int | None, position: int | None, breakpoints: frozenset[int], progress: Progress) -> int:
        assert position is not None
        if position < 2:
            raise RvtraceError("nothing is before this")
        return max(position - 2, *(place for place in range(position) if PCS[place] in breakpoints), 0)

    proxy = Proxy(
        ProxySetup(ListedPast(lambda hart: PCS, CODE, lines=("a gap",)), threading.RLock(), None,
                   tell=lambda line: None, line_before=line_before)
    )  # fmt: skip
    proxy.start()
    client = Client(proxy.port)
    client.ask(b"qHostInfo")
    client.ask(b"qXfer:features:read:target.xml:0,ffff")
    yield client
    client.close()
    proxy.close()


def test_buttons_of_codelldb_go_back_by_lines_and_where_a_run_ended(clicked: Client) -> None:
    end = _place(clicked.ask(b"?"))[0]
    assert _click(clicked, b"bs") == end - 2
    clicked.ask(b"Z0,%x,2" % PCS[end - 3])
    assert _click(clicked, b"bs") == end - 3, "a breakpoint is on the way"
    assert _click(clicked, b"bc") == 0, "nothing is before the beginning: the step forward is none"
    assert _click(clicked, b"bs") == 0 and b"a gap\n" in clicked.output


def test_packets_that_are_no_button_are_steps_of_one_instruction(clicked: Client) -> None:
    end = _place(clicked.ask(b"?"))[0]
    for packets, leads in (
        ([b"bs", b"bs", b"vCont;s:1"], -1), ([b"Hc1", b"bs", b"qC", b"bs", b"vCont;s:1"], -1), ([b"Hc1", b"bs"], -1)
    ):  # fmt: skip
        for packet in packets:
            reply = clicked.ask(packet)
        end += leads
        assert _place(reply)[0] == end


def _click(client: Client, packet: bytes) -> int:
    """The position to which CodeLLDB's button leads. No packet but the answers comes before LLDB's own step."""
    printed = len(client.output)
    for one in (b"Hc1", packet, b"bs"):
        client.ask(one)
    assert len(client.output) == printed
    return _place(client.ask(b"vCont;s:1"))[0]


def _place(reply: bytes) -> tuple[int, bool]:
    """The position in a stop reply, and whether a watchpoint is the reason."""
    fields = dict(part.split(b":", 1) for part in reply[3:].rstrip(b";").split(b";"))
    return int.from_bytes(bytes.fromhex(fields[b"4000"].decode()), "little") - 1, b"watch" in fields
