"""The console log: lines put together from writes, values, losses, no-load strings."""

from collections.abc import Iterable
from typing import Any

import pytest

from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.ntrace.options import SIFIVE
from rvtrace_gdb.session.queries.itc import ConsoleLog
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, image_of, message
from tests.helpers.event_traces import written

PROGRAM = image_of((0x1000, [asm.C_NOP]))


def events(*messages: bytes, **options: Any) -> Iterable[Event]:
    return decoded(PROGRAM, *messages, **{"dialect": SIFIVE, **options}).events


def log(*messages: bytes, channel: int | None = None) -> list[tuple[str, str]]:
    """The kind and the text of each row."""
    made = ConsoleLog(0, {}, channel)
    return [(row.kind, row.text) for row in (*made.rows(events(*messages)), *made.end())]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"Hello, World!\n", ["Hello, World!"]),
        (b"a\nbc\n", ["a", "bc"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"abc\0\0\0\0\0de\0", ["abc", "de"]),
        ("gr\u00f6\u00dfer\n".encode(), ["gr\u00f6\u00dfer"]),
        (b"\x1b[31mred\x1b[0m\n", ["\x1b[31mred\x1b[0m"]),
    ],
)
def test_lines_are_put_together(data: bytes, lines: list[str]) -> None:
    assert log(written(0, data)) == [("text", line) for line in lines]


def test_a_line_may_be_written_byte_by_byte() -> None:
    assert log(*(written(0, bytes([byte])) for byte in b"one by one\n")) == [("text", "one by one")]


def test_channels_do_not_mix() -> None:
    sent = written(0, b"ab"), written(5, b"xy"), written(0, b"c\n"), written(5, b"z\n")
    assert log(*sent) == [("text", "abc"), ("text", "xyz")]
    assert log(*sent, channel=5) == [("text", "xyz")]


def test_what_nothing_has_ended_is_said_to_be_open() -> None:
    made = ConsoleLog(0, {})
    assert not list(made.rows(events(written(0, b"no end"))))
    (row,) = made.end()
    assert (row.text, row.open) == ("no end", True)


def test_bytes_that_are_no_text_are_values() -> None:
    assert log(written(0, b"\x34\xf3\x63\x7f"), written(0, b"\x01")) == [("value", "0x7f63f334"), ("value", "0x01")]


def test_a_loss_is_where_it_is() -> None:
    """What was written before it is not joined with what comes after it."""
    rows = log(written(0, b"half "), message("Error", etype=0, ecode=0), written(0, b"line\n"))
    assert [kind for kind, _ in rows] == ["text", "loss", "text"]
    assert [rows[0][1], rows[2][1]] == ["half ", "line"]


def test_times_are_those_of_the_first_and_last_write() -> None:
    """The first time is that of the first message, the others are the XOR with the one before."""
    sent = written(0, b"ab", 0x10) + written(0, b"c\n", 0x30) + written(0, b"d\n", 1)
    start = message("ProgTraceSync", sync=5, icnt=0, faddr=0x800, tstamp=0x100)
    rows = list(ConsoleLog(0, {}).rows(events(start, sent, timestamps=True)))
    assert [(row.text, row.time, row.until) for row in rows] == [("abc", 0x110, 0x120), ("d", 0x121, 0x121)]


def test_an_endless_line_is_cut() -> None:
    rows = log(*[written(0, b"x" * 64)] * 200)
    assert max(len(text) for _, text in rows) == 4096
    assert "".join(text for _, text in rows) == "x" * 12_800


def test_no_load_strings_are_filled_in() -> None:
    made = ConsoleLog(0, {3: "int 8: %d %d %d %d\n"})
    rows = [*made.rows(events(written(0, b"first "), written(3, bytes((0x04, 0xFD, 0x02, 0xFF))))), *made.end()]
    assert [(row.channel, row.text) for row in rows] == [(3, "int 8: -1 2 -3 4"), (0, "first ")]
