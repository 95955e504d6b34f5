"""Bytes of the Debug Adapter Protocol are cut into messages, however they arrive, and nothing is lost."""

import random
from typing import Any

import pytest

from rvtrace_gdb.console.commands.lldb_dap.messages import MessageStream, framed, message_fields

BODIES: list[dict[str, Any]] = [
    {"seq": 1, "type": "request", "command": "next"}, {}, {"text": "\r\n\r\nContent-Length: 3\r\n\r\n", "ü": "é"},
]  # fmt: skip
WHOLE = [framed(it) for it in BODIES]
OTHER_HEADER = b"Content-Type: application/json\r\ncontent-length:2\r\n\r\n{}"


def cut(data: bytes, chance: random.Random) -> tuple[list[bytes], bytes]:
    """The messages, and the rest, of bytes in random chunks."""
    stream, found, at = MessageStream(), list[bytes](), 0
    while at < len(data):
        size = chance.randrange(1, 40)
        found += stream.fed(data[at : at + size])
        at += size
    return found, stream.rest()


@pytest.mark.parametrize("seed", range(8))
def test_messages_are_whole_in_chunks_of_any_size(seed: int) -> None:
    sent = [*WHOLE, OTHER_HEADER, *WHOLE]
    assert cut(b"".join(sent), random.Random(seed)) == (sent, b"")
    assert [message_fields(it) for it in WHOLE] == BODIES


@pytest.mark.parametrize("data", [
    b"OVERVIEW: LLDB DAP\n\nUSAGE: lldb-dap\r\n\r\nmore", b"\x00\xff garbage", b"Content-Length: x\r\n\r\n{}", b"{}\n",
    b"Content-Length: 9\r\n\r\n{}", b"Content-", b"X: y\r\n" * 2000, b"Content-Length: -1\r\n\r\n{}",
])  # fmt: skip
def test_what_is_no_message_comes_out_as_it_came_in(data: bytes) -> None:
    for seed in range(4):
        found, rest = cut(WHOLE[0] + data, random.Random(seed))
        assert found[0] == WHOLE[0]
        assert b"".join(found[1:]) + rest == data


@pytest.mark.parametrize("body", [b"[1]", b"{", b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_has_no_fields(body: bytes) -> None:
    assert message_fields(b"Content-Length: %d\r\n\r\n%s" % (len(body), body)) == {}
