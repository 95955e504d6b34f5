"""Framing: what is sent is what is taken apart, however it is cut; escapes and repeats as gdb's manual has them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvtrace_gdb.session.proxy.protocol.wire import (
    LONGEST,
    GdbPacket,
    GdbPacketKind,
    GdbPacketStream,
    TooLong,
    checksum,
    escape,
    escaped_within,
    frame,
    unescape,
)

BYTES = st.binary(max_size=600)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted(place % (len(data) + 1) for place in places)
    return [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True)]


@given(st.binary(max_size=5000))
def test_the_checksum_is_the_sum(data: bytes) -> None:
    assert checksum(data) == sum(data) % 256
    assert frame(data) == b"$" + data + b"#" + f"{sum(data) % 256:02x}".encode()


def test_the_checksum_of_the_largest_bytes() -> None:
    for size in (255, 256, 257, 4096):
        assert checksum(b"\xff" * size) == 255 * size % 256


def test_a_packet_of_the_manual() -> None:
    """GDB manual, "Packet Acknowledgment" and elsewhere: `$OK#9a`; `$vCont?#49` is what gdb asks."""
    assert frame(b"OK") == b"$OK#9a"
    assert frame(b"vCont?") == b"$vCont?#49"


@given(BYTES)
def test_escapes_come_back(data: bytes) -> None:
    escaped = escape(data)
    assert unescape(escaped) == data
    assert not re.search(rb"[#$*]", escaped)


def test_repeats_of_the_manual() -> None:
    """GDB manual, "Overview": "0* " is 0000; the repeat count is the character less 29."""
    assert unescape(b"0* ") == b"0000"
    assert unescape(b'x0*"00') == b"x" + b"0" * 8
    assert unescape(b"}\x03}\x04}]}\x0a") == b"#$}*"


@pytest.mark.parametrize("body", [b"}", b"*!", b"a*", b"a*\x10"])
def test_a_body_that_breaks_off(body: bytes) -> None:
    with pytest.raises(ValueError, match="escape"):
        unescape(body)


@given(BYTES, st.integers(2, 700))
def test_as_much_as_fits(data: bytes, room: int) -> None:
    escaped, size = escaped_within(data, room)
    assert len(escaped) <= room
    assert unescape(escaped) == data[:size]
    assert size == len(data) or size >= min(len(data), room // 2)


SENT = st.one_of(
    st.binary(max_size=40).map(lambda data: GdbPacket(GdbPacketKind.PACKET, frame(escape(data)), escape(data))),
    st.binary(max_size=40).map(
        lambda data: GdbPacket(GdbPacketKind.NOTIFICATION, b"%" + frame(escape(data))[1:], escape(data))
    ),
    st.just(GdbPacket(GdbPacketKind.ACK, b"+")),
    st.just(GdbPacket(GdbPacketKind.NAK, b"-")),
    st.just(GdbPacket(GdbPacketKind.INTERRUPT, b"\x03")),
)


@given(st.lists(SENT), st.lists(st.integers(0, 2000)))
def test_a_stream_is_taken_apart_however_it_is_cut(sent: list[GdbPacket], places: list[int]) -> None:
    stream = GdbPacketStream()
    found = [item for piece in cut(b"".join(it.raw for it in sent), places) for item in stream.feed(piece)]
    assert found == sent
    assert all(item.is_intact() for item in found if item.body)


@given(st.lists(st.binary(max_size=60)), st.lists(st.integers(0, 2000)))
def test_any_bytes_and_then_a_packet(junk: list[bytes], places: list[int]) -> None:
    """Whatever came before: a packet behind the next "#xx" is found, whole."""
    data = b"".join(junk) + b"#00#00" + frame(b"g")
    stream = GdbPacketStream()
    found = [item for piece in cut(data, places) for item in stream.feed(piece)]
    assert found[-1] == GdbPacket(GdbPacketKind.PACKET, frame(b"g"), b"g")


def test_a_packet_that_is_begun_again() -> None:
    """gdb's remote.c, read_frame: a "$" in a packet begins another one."""
    assert GdbPacketStream().feed(b"$m8000$g#67") == [GdbPacket(GdbPacketKind.PACKET, b"$g#67", b"g")]


def test_bad_checksums() -> None:
    for raw in (b"$g#66", b"$g#zz", b"$g#6"):
        for item in GdbPacketStream().feed(raw):
            assert not item.is_intact()


def test_no_end_of_a_packet() -> None:
    stream = GdbPacketStream()
    stream.feed(b"$")
    with pytest.raises(TooLong):
        for _ in range(LONGEST // (1 << 20) + 1):
            stream.feed(b"a" * (1 << 20))
