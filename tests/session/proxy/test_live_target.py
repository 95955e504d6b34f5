"""In the present: what passes untouched, what is changed, and what is noted. A fake stub and a raw client."""

import re
import resource
import socket

import pytest

from rvtrace_gdb.session.proxy.connection import StubConnection
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from tests.session.proxy.conftest import Between
from tests.session.proxy.fakes import STOP, packet

LIVE = b"4000:ffffffffffffffff;"


def test_a_stop_has_our_register_once_gdb_knows_of_it(between: Between) -> None:
    client = between.client(reads_target=False)
    assert client.ask(b"vCont;c") == STOP
    client.read_target()
    assert client.ask(b"vCont;c") == STOP + LIVE
    assert client.ask(b"?") == STOP + LIVE
    assert client.ask(b"p4000") == b"ff" * 8
    assert client.ask(b"P4000=ffffffffffffffff") == b"OK"
    assert client.ask(b"P4000=0100000000000000")[:1] == b"E"
    assert not any(body.startswith((b"p4000", b"P4000")) for body in between.stub.got)


def test_an_interrupt_reaches_a_target_that_runs(between: Between) -> None:
    client = between.client()
    between.stub.answers[b"vCont;c"] = [b"O" + b"busy".hex().encode()]
    between.stub.answers[b"\x03"] = b"T02thread:p01.01;"
    client.socket.sendall(packet(b"vCont;c"))
    between.stub.wait_for(b"vCont;c")
    client.socket.sendall(b"\x03")
    assert client.answer() == b"T02thread:p01.01;" + LIVE
    assert client.output == [b"busy"]


def test_notifications_pass(between: Between) -> None:
    client = between.client()
    between.stub.send(b"%Stop:T05thread:p1.1;#55")
    assert client.packet() == b"Stop:T05thread:p1.1;"
    assert client.ask(b"m0,1") == b"11"


def test_a_damaged_packet_is_asked_for_again(between: Between) -> None:
    client = between.client(acknowledges=True)
    client.socket.sendall(b"$m0,2#00")
    assert client.socket.recv(10).endswith(b"-")
    assert client.ask(b"m0,3") == b"111111"
    assert b"m0,2" not in between.stub.got


def test_gdb_gets_again_what_it_did_not_get(between: Between) -> None:
    client = between.client(acknowledges=True)
    assert client.ask(b"m0,1") == b"11"
    client.socket.sendall(b"-")
    assert client.packet() == b"11"


def test_one_gdb_after_the_other(between: Between) -> None:
    client = between.client()
    assert between.proxy.connected
    client.ask(b"Z0,1000,2")
    client.close()
    between.stub.wait_for(b"z0,1000,2")
    again = between.client()
    assert again.ask(b"m0,1") == b"11"
    assert between.proxy.connected


def test_large_packets_are_cut_for_a_stub_of_small_ones(between: Between) -> None:
    """What QEMU 7.2 offers. The answers are those to the pieces, put together."""
    between.stub.answers[b"qSupported:multiprocess+;swbreak+"] = b"PacketSize=1000;qXfer:features:read+"
    client = between.client(acknowledges=True)
    assert b"PacketSize=10000" in client.features.split(b";")
    assert client.ask(b"m1000,2804") == b"11" * 0x2804
    assert between.stub.got[-6:] == [b"m%x,%x" % it for it in ((0x1000 + 0x800 * n, 0x800) for n in range(5))] + [
        b"m3800,4"
    ]
    data = bytes(range(1, 256)) * 40
    assert client.ask(b"M1000,%x:%b" % (len(data), data.hex().encode())) == b"OK"
    assert client.ask(b"X1000,%x:%b" % (len(data), re.sub(rb"[#$}*]", _escaped, data))) == b"OK"
    for letter in (b"M", b"X"):
        memory = bytearray(len(data))
        for body in between.stub.got:
            if body[:1] == letter:
                head, _, content = body.partition(b":")
                address, size = (int(it, 16) for it in head[1:].split(b","))
                plain = bytes.fromhex(content.decode()) if letter == b"M" else _unescaped(content)
                assert len(plain) == size and len(body) <= 0x1000 - 4
                memory[address - 0x1000 : address - 0x1000 + size] = plain
        assert memory == data


def _escaped(match: "re.Match[bytes]") -> bytes:
    return b"}" + bytes([match[0][0] ^ 0x20])


def _unescaped(content: bytes) -> bytes:
    return re.sub(rb"\}(.)", lambda match: bytes([match[1][0] ^ 0x20]), content, flags=re.S)


def test_a_large_read_that_fails_in_the_middle(between: Between) -> None:
    between.stub.answers[b"qSupported:multiprocess+;swbreak+"] = b"PacketSize=1000;qXfer:features:read+"
    between.stub.answers[b"m1800,800"] = b"E14"
    client = between.client(acknowledges=True)
    assert client.ask(b"m1000,2000") == b"11" * 0x800
    between.stub.answers[b"m1000,800"] = b"E14"
    assert client.ask(b"m1000,2000") == b"E14"
    assert client.ask(b"m3000,10") == b"11" * 0x10


def test_who_is_no_gdb(between: Between) -> None:
    """Junk, half a packet, far too much of one: the next gdb is served all the same."""
    between.start()
    for junk in (b"GET / HTTP/1.1\r\n\r\n", b"$m0", b"$#00", b"\x00" * 1000, b"$" * 100000, b"%#zz$q#"):
        with socket.create_connection(("127.0.0.1", between.proxy.port)) as client:
            client.sendall(junk)
    assert between.client().ask(b"m0,1") == b"11"


def test_a_limit_of_this_process_is_not_taken_for_an_absent_stub(between: Between) -> None:
    between.start()
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            StubConnection.connect(between.proxy._state.shutdown, StubAddress("127.0.0.1", between.proxy.port))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    ("offered", "announced", "sent"),
    [
        (b"vCont;c;C;s;S", b"vCont;c;C;s;S;r", b"vCont;s:p1.1;c"),
        (b"vCont;c;s;r", b"vCont;c;s;r", b"vCont;r1000,1008:p1.1;c"),
        (b"vCont;c", b"vCont;c", b"vCont;r1000,1008:p1.1;c"),
        (b"", b"", b"vCont;r1000,1008:p1.1;c"),
    ],
)
def test_gdb_steps_within_ranges_in_the_past_at_least(
    between: Between, offered: bytes, announced: bytes, sent: bytes
) -> None:
    """In the present a stub that cannot gets one step of them, which gdb goes on from."""
    between.stub.answers |= {b"vCont?": offered, sent: STOP}
    client = between.client()
    assert client.ask(b"vCont?") == announced
    client.ask(b"vCont;r1000,1008:p1.1;c")
    assert sent in between.stub.got


def test_the_answer_to_a_monitor_command_that_gdb_gave_up_is_dropped(between: Between) -> None:
    """After Ctrl-C in it gdb sends its next packet, and takes what comes then for the answer to that."""
    client, stub = between.client(), between.stub
    stub.answers[b"qRcmd,70"] = stub.answers[b"m1000,2"] = None
    client.socket.sendall(packet(b"qRcmd,70"))
    stub.wait_for(b"qRcmd,70")
    stub.send(packet(b"O41"))
    assert client.packet() == b"O41"
    client.socket.sendall(packet(b"m1000,2"))
    stub.wait_for(b"m1000,2")
    stub.send(packet(b"O42") + packet(b"OK") + packet(b"1234"))
    assert client.answer() == b"1234" and not client.output


def test_a_late_answer_comes_once_however_often_gdb_asks_for_it(between: Between) -> None:
    """Where it acknowledges, gdb sends a NAK when it has waited for two seconds (remote.c: getpkt), and a packet again
    that was not acknowledged by then (putpkt_binary).
    """
    client, stub = between.client(acknowledges=True), between.stub
    assert client.ask(b"m1000,1") == b"11"
    stub.answers[b"m1000,2"] = None
    client.socket.sendall(packet(b"m1000,2") * 2 + b"--")
    stub.wait_for(b"m1000,2")
    stub.send(packet(b"1234"))
    assert client.answer() == b"1234"
    assert client.ask(b"m1000,1") == b"11" and stub.got.count(b"m1000,2") == 1
