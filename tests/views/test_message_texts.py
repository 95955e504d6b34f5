"""Texts of messages that are remembered (`views.dump.texts_of`) are those that are made for each item anew."""

import random
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.decode.ntrace import items as ntrace_items
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.session.formats import ntrace
from rvtrace_gdb.views import dump
from tests.decode.ntrace.messages import message

DATA = Path(__file__).resolve().parent.parent / "data"


def with_and_without(module: Any, options: Any, data: bytes, *, raw: bool, wrapped: bool) -> list[list[Any]]:
    """The lines as `rvtrace dump` makes them, in pieces, and those of the items."""
    pieces = [data[at : at + 777] for at in range(0, len(data), 777)]
    def new() -> Any:
        return module.itemizer(options, 64, wrapped=wrapped)

    quick = dump.texts_of(pieces, new(), module.wording(options), module.source_of, raw=raw)
    plain = dump.lines_of(pieces, new(), module.wording(options), raw=raw)
    return [
        [(*one[:3], dump.line(number, one[0], one[3])) for number, one in enumerate(quick, 1)],
        [(item.offset, item.end, module.source_of(item), line) for _, item, line in plain],
    ]


def ntrace_bytes(some: random.Random, src_bits: int, *, times: bool) -> bytes:
    """Few different messages in any order, of several sources, with what damages a trace."""
    made = bytearray()
    for _ in range(1500):
        source = (some.randrange(1 << src_bits), src_bits)
        kind, tstamp = some.random(), some.choice((None, 3, 5, 90)) if times else None
        if kind < 0.6:
            made += message("DirectBranch", source, tstamp, icnt=some.randrange(4))
        elif kind < 0.85:
            address = some.randrange(4)
            made += message("IndirectBranch", source, tstamp, b_type=some.randrange(4), icnt=1, uaddr=address)
        elif kind < 0.95:
            made += message("ProgTraceSync", source, tstamp, sync=3, icnt=0, faddr=some.randrange(2))
        else:
            error = message("Error", source, tstamp, etype=0, ecode=1)
            made += some.choice((b"\xff", b"\xff\xff\x03", error, some.randbytes(3)))
    return bytes(made)


@pytest.mark.parametrize("limit", [3, 1 << 15])
@pytest.mark.parametrize("times", [False, True])
@pytest.mark.parametrize("src_bits", [0, 2])
def test_n_trace(limit: int, times: bool, src_bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntrace_items, "MOST_TEXTS", limit)
    data = ntrace_bytes(random.Random(limit + src_bits), src_bits, times=times)
    for timestamps in (times, not times):
        options = Options(src_bits=src_bits, timestamps=timestamps, timestamp_bits=7 if times else 0)
        quick, plain = with_and_without(ntrace, options, data, raw=timestamps, wrapped=times)
        assert quick == plain
        assert len({line.partition(" ")[2] for *_, line in plain}) < len(plain)


def test_n_trace_of_the_reference_encoder() -> None:
    for name in ("qsort.0.nex", "dhrystone.4.nex"):
        data = (DATA / "ntrace-reference" / name).read_bytes()
        quick, plain = with_and_without(ntrace, Options(), data, raw=False, wrapped=False)
        assert quick == plain
