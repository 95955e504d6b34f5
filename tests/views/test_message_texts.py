"""Texts of messages that are remembered (`views.dump.texts_of`) are those that are made for each item anew."""

import random
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.decode.etrace import items as etrace_items
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.options import Options as EtraceOptions
from rvtrace_gdb.decode.etrace.packet import build, support_fields
from rvtrace_gdb.decode.ntrace import items as ntrace_items
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.formats import etrace, ntrace
from rvtrace_gdb.views import dump
from tests.decode.ntrace.messages import message

ENCAP = Encapsulation("encap", src_bits=2, timestamp_bytes=2)
RV32 = EtraceOptions(Parameters(iaddress_width=32, iaddress_lsb=1, ecause_width=5))
PLAIN = Modes()
DATA = Path(__file__).resolve().parent.parent / "data"


def with_and_without(module: Any, options: Any, data: bytes, *, raw: bool, wrapped: bool) -> list[list[Any]]:
    """The lines as `rvtrace dump` makes them, in pieces, and those of the items."""
    pieces = [data[at : at + 777] for at in range(0, len(data), 777)]
    def new() -> Any:
        return module.itemizer(options, 64, wrapped=wrapped)

    quick = dump.texts_of(pieces, new(), module.wording(options), module.source_of, raw=raw)
    plain = dump.lines_of(pieces, new(), module.wording(options), raw=raw)
    return [
        [(*one[:3], dump.item_line(number, one[0], one[3])) for number, one in enumerate(quick, 1)],
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
    for timestamps, bits in ((times, 7 if times else 0), (times, 0), (not times, 7 if times else 0)):
        options = Options(src_bits=src_bits, timestamps=timestamps, timestamp_bits=bits)
        quick, plain = with_and_without(ntrace, options, data, raw=timestamps, wrapped=times)
        assert quick == plain
        assert len({line.partition(" ")[2] for *_, line in plain}) < len(plain)


def test_n_trace_of_the_reference_encoder() -> None:
    for name in ("qsort.0.nex", "dhrystone.4.nex"):
        data = (DATA / "ntrace-reference" / name).read_bytes()
        quick, plain = with_and_without(ntrace, Options(), data, raw=False, wrapped=False)
        assert quick == plain


def etrace_bytes(some: random.Random) -> bytes:
    """Few different packets in any order, of two sources, some with times; modes change, bytes are damaged."""
    packet = ENCAP.framer().packet
    payloads = [build(2, None, {"address": address}, RV32, PLAIN) for address in (0, 2, 4, 64)]
    payloads += [build(1, None, {"branches": 1, "branch_map": taken, "address": 8}, RV32, PLAIN) for taken in (0, 1)]
    payloads += [build(3, 0, {"branch": 1, "privilege": 3, "address": at}, RV32, PLAIN) for at in (0x80, 0x100)]
    rare = [
        build(3, 3, support_fields(RV32.support, RV32.parameters, modes), RV32, PLAIN)
        for modes in (PLAIN, Modes(full_address=True))
    ]
    made = bytearray()
    for _ in range(3000):
        payload = some.choice(rare if some.random() < 0.01 else payloads)
        made += packet(payload, source=some.randrange(2), time=some.choice((None, None, 5, 9)))
        if some.random() < 0.01:
            made += some.choice((b"\0\0", b"\x40", some.randbytes(3)))
    return bytes(made)


@pytest.mark.parametrize("limit", [3, 1 << 15])
@pytest.mark.parametrize("raw", [False, True])
def test_e_trace(limit: int, raw: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etrace_items, "MOST_TEXTS", limit)
    options = EtraceTraceOptions(RV32, ENCAP)
    quick, plain = with_and_without(etrace, options, etrace_bytes(random.Random(limit)), raw=raw, wrapped=raw)
    assert quick == plain
    assert len({line.partition(" ")[2] for *_, line in plain}) < len(plain)
