"""In the past: where steps and runs lead, what is answered, what is refused. A fake stub, a raw client, a few pcs."""

import resource
import socket
import threading
import time

import pytest

from rvtrace_gdb.session.proxy import proxy as proxies
from rvtrace_gdb.session.proxy import stepping
from rvtrace_gdb.session.proxy.connection import StubConnection
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup, TargetState
from tests.helpers.wait import until
from tests.session.proxy.conftest import CODE, PCS, Between
from tests.session.proxy.fakes import REGISTERS, Client
from tests.session.proxy.listed_past import ListedPast, NoPast

LIVE = b"4000:ffffffffffffffff;"
END = len(PCS) - 1


def hexed(value: int, size: int = 8) -> bytes:
    return value.to_bytes(size, "little").hex().encode()


def at(position: int, reason: bytes = b"05", at_end: bytes = b"") -> bytes:
    """The stop reply at a position of PCS."""
    return b"T%b%b20:%b;4000:%b;thread:p1.1;" % (reason, at_end, hexed(PCS[position]), hexed(position + 1))


BEGIN, PRESENT = b"replaylog:begin;", b"T05replaylog:end;" + LIVE + b"thread:p1.1;"


def test_the_stub_has_gdbs_breakpoints_when_the_target_runs(between: Between) -> None:
    """Inserted in the present, removed in the past; inserted in the past, there when the target runs."""
    client = between.client()
    got = between.stub.got
    assert client.ask(b"Z0,1004,2") == b"OK" and got[-1] == b"Z0,1004,2"
    client.ask(b"bc")
    assert client.ask(b"z0,1004,2") == b"OK" and got[-1] == b"z0,1004,2"
    assert client.ask(b"Z0,2000,2") == b"OK" and b"Z0,2000,2" not in got
    client.ask(b"Z1,9000,4")
    assert client.ask(b"vCont;c") == PRESENT
    assert client.ask(b"vCont;c").startswith(b"T05")
    assert got[-3:] == [b"Z0,2000,2", b"Z1,9000,4", b"vCont;c"]
    assert client.ask(b"z0,2000,2") == b"OK" and got[-1] == b"z0,2000,2"
    client.ask(b"vCont;c")
    assert got[-2:] == [b"z0,2000,2", b"vCont;c"]


def test_removed_in_the_present_what_only_the_past_had(between: Between) -> None:
    client = between.client()
    client.ask(b"bs")
    client.ask(b"Z0,2000,2")
    assert client.ask(b"s") == PRESENT
    assert client.ask(b"z0,2000,2") == b"OK"
    assert b"z0,2000,2" not in between.stub.got


def test_a_breakpoint_that_the_stub_refuses_is_said(between: Between) -> None:
    between.stub.answers[b"Z1,9000,4"] = b"E0e"
    client = between.client()
    client.ask(b"bs")
    client.ask(b"Z1,9000,4")
    client.ask(b"vCont;c")
    client.ask(b"vCont;c")
    assert between.proxy.take_lines() == ["warning: the breakpoint at 0x9000 was refused by the target"]


def test_a_breakpoint_of_an_unknown_kind_is_the_stubs(between: Between) -> None:
    client = between.client()
    client.ask(b"bs")
    assert client.ask(b"Z9,1004,2") == b"OK" and between.stub.got[-1] == b"Z9,1004,2"


def test_watchpoints_are_accepted_and_said_to_be_of_no_use(between: Between) -> None:
    client = between.client()
    client.ask(b"bs")
    for kind in (b"2", b"3", b"4"):
        assert client.ask(b"Z%b,80000000,4" % kind) == b"OK"
    client.ask(b"bs")
    client.ask(b"bs")
    said = b"".join(client.output)
    assert said.count(b"\n") == 1 and b"watchpoints cannot trigger in the past" in said


def test_registers_are_those_known(between: Between) -> None:
    client = between.client()
    client.ask(b"bs")
    size = len(REGISTERS)
    assert client.ask(b"g") == b"00" * 8 + b"xx" * 8 * 31 + hexed(PCS[END - 1])
    assert len(client.ask(b"g")) == size
    assert client.ask(b"p20") == hexed(PCS[END - 1])
    assert client.ask(b"p0") == b"00" * 8
    assert client.ask(b"p2") == b"xx" * 8
    assert client.ask(b"p50") == b"xx" * 4
    assert client.ask(b"p4000") == hexed(END)
    assert client.ask(b"p51") == b"E01"
    assert client.ask(b"p") == b"E01"


def test_g_is_as_long_as_in_the_present(between: Between) -> None:
    """A stub that sends more than the integer registers: gdb holds it to that."""
    between.stub.answers[b"g"] = REGISTERS + b"11223344"
    client = between.client()
    assert client.ask(b"g") == REGISTERS + b"11223344"
    client.ask(b"bs")
    assert client.ask(b"g") == b"00" * 8 + b"xx" * 8 * 31 + hexed(PCS[END - 1]) + b"xx" * 4


def test_memory_is_what_is_known(between: Between) -> None:
    client = between.client()
    client.ask(b"bs")
    sent = len(between.stub.got)
    assert client.ask(b"m1004,4") == b"04050607"
    assert client.ask(b"m103e,8") == b"3e3f"
    assert client.ask(b"m80000000,4") == b"E01"
    assert client.ask(b"m,4") == b"E01"
    assert client.ask(b"x1004,2") == b"b\x04\x05"
    assert client.ask(b"x1023,1") == b"b}\x03"  # "#" is escaped
    assert between.stub.got[sent:] == []
    client.ask(b"s")
    assert client.ask(b"m1004,4") == b"11111111"


@pytest.mark.parametrize(
    ("body", "answer", "what"),
    [
        (b"P2=0000000000000000", b"E.", "register x2"),
        (b"P20=0000000000000000", b"E.", "register pc"),
        (b"G" + REGISTERS, b"E.", "the registers were"),
        (b"M80000000,1:00", b"E01", "memory at 0x80000000"),
        (b"X80000000,1:a", b"E01", "memory at 0x80000000"),
        (b"vFlashErase:0,1000", b"E01", "flash"),
        (b"vFlashWrite:0:a", b"E01", "flash"),
    ],
)
def test_the_past_cannot_be_changed(between: Between, body: bytes, answer: bytes, what: str) -> None:
    client = between.client()
    client.ask(b"bs")
    sent = len(between.stub.got)
    assert client.ask(body).startswith(answer)
    (line,) = between.proxy.take_lines()
    assert what in line and f"number {END} of the history" in line and "`trace live`" in line
    assert between.proxy.take_lines() == []
    assert client.ask(b"X80000000,0:") == b"OK", "gdb tests whether the packet is known"
    assert between.stub.got[sent:] == []
    assert client.ask(b"s") == PRESENT
    between.stub.answers[body] = b"OK"
    assert client.ask(body) == b"OK"
    assert between.proxy.take_lines() == []


def test_a_range_is_stepped_through(between: Between) -> None:
    client = between.client()
    client.ask(b"bc")
    assert client.ask(b"vCont;r1000,1008:p1.1;c:p1.-1") == at(3)
    client.ask(b"bc")
    client.ask(b"Z0,1002,2")
    assert client.ask(b"vCont;r1000,1008:p1.1;c:p1.-1") == at(1)


def test_interrupts_end_long_work(between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the trace is decoded, and while it is searched. Output tells how far it is."""
    monkeypatch.setattr(stepping, "FIRST_SECONDS", 0.1)
    between.past.slow = 0.05  # fifty seconds, if it is not ended
    client = between.client()
    begin = time.monotonic()
    client.socket.sendall(b"$bc#c5")
    said = client.packet()
    assert said[:1] == b"O" and bytes.fromhex(said[1:].decode()).startswith(b"decoding: ")
    client.socket.sendall(b"\x03")
    assert client.answer() == b"T024000:%b;thread:p1.1;" % hexed(END + 1)
    took = time.monotonic() - begin
    assert took >= 0.1 and len(client.output) <= took / stepping.NEXT_SECONDS
    between.past.slow = 0
    assert client.ask(b"bs") == at(END - 1)
    between.past.slow = 0.05
    between.past.working.clear()
    client.socket.sendall(b"$bc#c5")
    assert between.past.working.wait(60)
    client.socket.sendall(b"\x03")
    assert client.answer() == at(END - 1, b"02")
    between.past.slow = 0
    assert client.ask(b"vCont;c") == PRESENT


def test_what_is_wrong_with_the_trace_is_said(between: Between) -> None:
    """And gdb stands where it stood."""

    def fails(hart: int | None) -> list[int]:
        raise NoPast("nothing was traced: `trace start` begins")

    between.past = ListedPast(fails)
    between.proxy = Proxy(between.setup())
    client = between.client()
    assert client.ask(b"bs") == b"T05replaylog:begin;" + LIVE + b"thread:p1.1;"
    assert client.output == [b"nothing was traced: `trace start` begins\n"]
    assert client.ask(b"g") == between.stub._answer(b"g")


def test_lines_of_a_walk_come_before_its_stop(between: Between) -> None:
    between.past = ListedPast(lambda hart: PCS, CODE, lines=("gap: 7 bytes were lost",))
    between.proxy = Proxy(between.setup())
    client = between.client()
    assert client.ask(b"bs") == at(END - 1)
    assert client.output == [b"gap: 7 bytes were lost\n"]


def test_jumps(between: Between) -> None:
    """Wherever gdb thinks that it goes, it goes where it was told."""
    client = between.client()
    client.ask(b"bs")
    for packet in (b"vCont;s:p1.1;c:p1.-1", b"bs", b"bc", b"c", b"s"):
        between.proxy.jump(0, 2)
        assert client.ask(packet) == at(2)
        assert client.ask(b"bs") == at(1)
    between.proxy.jump(0, None)
    resumed = between.proxy.resumes
    assert client.ask(b"vCont;s:p1.1") == b"T05" + LIVE + b"thread:p1.1;"
    assert between.proxy.resumes == resumed
    between.proxy.jump(0, 3)
    assert client.ask(b"vCont;s:p1.1") == at(3)
    between.proxy.jump(0, 99)
    assert client.ask(b"vCont;s:p1.1") == at(3)
    assert client.output == [b"no position 99\n"]


def test_nothing_runs_before_the_present_was_shown(between: Between) -> None:
    between.proxy = Proxy(between.setup(hold_at_present=True))
    client = between.client()
    client.ask(b"bs")
    sent = len(between.stub.got)
    assert client.ask(b"vCont;s:p1.1;c:p1.-1") == PRESENT.replace(b"replaylog:end;", b"")
    assert [client.ask(b"vCont;s:p1.1;c:p1.-1") for _ in range(2)] == [
        PRESENT.replace(b"T05replaylog:end;", b"T00")
    ] * 2
    assert client.ask(b"c") == PRESENT
    assert b"vCont;s:p1.1;c:p1.-1" not in between.stub.got[sent:]
    assert client.ask(b"bs") == at(END - 1)
    assert client.ask(b"s") == PRESENT.replace(b"replaylog:end;", b"")
    assert between.proxy.take_lines() == ["This is the end of the trace."]
    between.proxy.shown()
    assert client.ask(b"vCont;s:p1.1;c:p1.-1").startswith(b"T05thread:p01.01;")


def test_each_hart_has_its_place(between: Between) -> None:
    """The live target runs only when all harts are in the present."""
    client = between.client()
    assert client.ask(b"bs") == at(END - 1)
    assert client.ask(b"Tp1.2") == b"OK"
    assert client.ask(b"Hgp1.2") == b"OK"
    assert client.ask(b"p4000") == b"ff" * 8
    assert client.ask(b"g")[:16] == REGISTERS[:16]
    assert client.ask(b"bs") == b"T0520:%b;4000:%b;thread:p1.2;" % (hexed(0x3004), hexed(2))
    assert client.ask(b"Hgp1.1") == b"OK"
    assert client.ask(b"p20") == hexed(PCS[END - 1])
    resumed = between.proxy.resumes
    assert client.ask(b"vCont;c:p1.-1").startswith(b"T05replaylog:end;")
    assert client.ask(b"vCont;c:p1.-1") == PRESENT
    assert not between.past.away()
    assert between.proxy.resumes == resumed
    client.ask(b"vCont;c:p1.-1")
    assert between.proxy.resumes == resumed + 1


def test_gdb_goes_while_it_is_in_the_past(between: Between) -> None:
    client = between.client()
    client.ask(b"Z0,1000,2")
    client.ask(b"bs")
    client.close()
    between.stub.wait_for(b"z0,1000,2")
    until(lambda: not between.past.away())
    again = between.client()
    assert again.ask(b"p4000") == b"ff" * 8


def test_the_stub_dies_in_the_past(between: Between) -> None:
    """The trace answers all that it did, and what only the stub knew is not there."""
    client = between.client()
    client.ask(b"qfThreadInfo")
    client.ask(b"bs")
    between.stub.hang_up()
    until(lambda: between.proxy.target is TargetState.LOST)
    assert client.ask(b"bs") == at(END - 2)
    assert client.ask(b"g").endswith(hexed(PCS[END - 2]))
    assert client.ask(b"m1004,4") == b"04050607"
    assert client.ask(b"qfThreadInfo") == b"mp01.01,p01.02"
    assert [client.ask(body) for body in (b"Hgp1.1", b"Tp1.1", b"qC", b"?")] == [b"OK", b"OK", b"QCp1.1", at(END - 2)]
    assert client.ask(b"vCont;c").startswith(b"T05replaylog:end;")
    assert client.ask(b"bs").startswith(b"T05")
    assert client.read_target().count(b"trace_pos") == 1
    assert len(between.proxy.take_lines()) == 1


def test_the_stub_dies_while_it_is_asked(between: Between) -> None:
    client = between.client()
    client.ask(b"bs")
    between.stub.answers[b"qRcmd,61"] = []
    client.socket.sendall(b"$qRcmd,61#f5")
    between.stub.wait_for(b"qRcmd,61")
    between.stub.hang_up()
    assert client.answer() == b"E01"
    assert client.ask(b"bs") == at(END - 2)


def test_a_stub_that_takes_the_connection_but_is_not_ready_yet(between: Between) -> None:
    """OpenOCD, as long as it has not noticed that the gdb before is gone."""
    between.start()
    until(lambda: between.stub.raw == b"+")
    between.stub.hang_up()
    assert between.client().ask(b"m0,1") == b"11"
    assert between.proxy.take_lines() == []


def test_a_stub_that_is_not_ready_several_times(between: Between, monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends each connection before the first packet is sent, which is noticed when that is sent."""
    really, ended = StubConnection.ask, list[StubConnection]()

    def ask(self: StubConnection, body: bytes, raw: bytes | None = None) -> None:
        if len(ended) < 3:
            ended.append(self)
            raise self.gone(None)
        really(self, body, raw)

    monkeypatch.setattr(StubConnection, "ask", ask)
    assert between.client().ask(b"m0,1") == b"11"
    assert len(set(ended)) == 3 and between.proxy.take_lines() == []


def test_non_stop_has_no_past(between: Between) -> None:
    client = between.client()
    assert client.ask(b"QNonStop:1") == b"OK"
    assert client.ask(b"bs").startswith(b"E.going back is not possible while gdb is in non-stop mode")
    assert len(between.proxy.take_lines()) == 1
    assert client.ask(b"QNonStop:0") == b"OK"
    client.ask(b"bs")
    assert client.ask(b"QNonStop:1") == b"E01"


def test_a_capture_alone() -> None:
    """No stub: it begins at the end of the past, and there is nothing behind it."""
    past = ListedPast(lambda hart: PCS, CODE)
    proxy = Proxy(ProxySetup(past, threading.RLock(), None))
    proxy.start()
    client = Client(proxy.port, acknowledges=False)
    try:
        document = client.read_target()
        own, integers, floats = 1, 33, 35  # gdb wants floating point of a target whose program has it in its ABI
        assert document.count(b"<reg ") == own + integers + floats and b"riscv:rv64" in document
        assert client.ask(b"?").endswith(b"thread:1;")
        assert client.ask(b"qfThreadInfo") == b"m1"
        assert client.ask(b"bs") == b"T0520:%b;4000:%b;thread:1;" % (hexed(PCS[END - 1]), hexed(END))
        assert client.ask(b"g") == b"00" * 8 + b"xx" * 8 * 31 + hexed(PCS[END - 1])
        assert client.ask(b"vCont;c").startswith(b"T05replaylog:end;")
        assert client.ask(b"vCont;c").startswith(b"T05replaylog:end;")
        assert client.ask(b"P2=00")[:1] == b"E" and client.ask(b"M0,1:00")[:1] == b"E"
        assert client.ask(b"qRcmd,61") == b"OK"
        assert client.ask(b"vMustReplyEmpty") == b""
        assert client.ask(b"D") == b"OK"
    finally:
        client.close()
        proxy.close()


def test_an_error_of_ours_is_told_and_the_next_gdb_served(
    between: Between, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = between.client()
    monkeypatch.setattr(between.past, "enter", lambda hart, progress: 1 // 0)
    client.socket.sendall(b"$bs#d5")
    assert client.is_closed()
    until(lambda: not between.proxy.connected)
    (line,) = between.proxy.take_lines()
    assert "internal error" in line and "ZeroDivisionError" in line
    assert "Traceback" in caplog.text
    assert between.client().ask(b"m0,1") == b"11"


def heard(proxy: Proxy) -> list[str]:
    """The lines for the user, as soon as there are any."""
    lines: list[str] = []

    def come() -> bool:
        lines.extend(proxy.take_lines())
        return bool(lines)

    until(come)
    return lines


def test_gdb_is_served_as_soon_as_there_is_a_descriptor_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxies, "_MOMENT", 0.1)
    proxy = Proxy(ProxySetup(ListedPast(lambda hart: PCS, CODE), threading.RLock(), None))
    proxy.start()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as gdb:
        gdb.settimeout(60)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
        try:
            gdb.connect(("127.0.0.1", proxy.port))
            said = heard(proxy)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        ulimit = "`ulimit -n` says how many one process may have open"
        assert said == [f"gdb's connection cannot be taken: Too many open files; {ulimit}"]
        gdb.sendall(b"+$?#3f")
        assert gdb.recv(1) == b"+"
    proxy.close()


def test_ctrl_c_that_crosses_a_stop_ends_nothing_once_that_stop_was_shown(between: Between) -> None:
    """gdb has sent it while it waited, and shows another reason to stop: what the user types then is not interrupted.

    The session's thread may report what the user sees before the proxy's thread reads what gdb has sent.
    """
    client = between.client()
    assert client.ask(b"bs") == at(END - 1)
    between.proxy.shown()
    client.socket.sendall(b"\x03")
    assert client.ask(b"bs") == at(END - 2)
    client.socket.sendall(b"\x03")  # gdb goes on by itself, as at a breakpoint whose condition is false
    assert client.ask(b"bs") == at(END - 2, b"02")
    client.socket.sendall(b"\x03")
    assert client.ask(b"qTStatus") == b""  # it was read
    between.proxy.shown()
    assert client.ask(b"bs") == at(END - 3)
