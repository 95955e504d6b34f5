"""A long trace that repeats is checked in bounded memory."""

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import pytest

from rvtrace_gdb.decode.check.etrace import StreamChecker as EtraceChecker
from rvtrace_gdb.decode.check.ntrace import StreamChecker as NtraceChecker
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder as EtraceEncoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as EtraceOptions
from rvtrace_gdb.decode.etrace.encoder.options import ResyncMode as EtraceSync
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap, blocks_from_pcs
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder as NtraceEncoder
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions as NtraceOptions
from rvtrace_gdb.decode.ntrace.options import InstSyncMode as NtraceSync
from rvtrace_gdb.decode.program.image import Image
from tests.helpers.amounts import LONG

_START = 0x80000000
_NOP = 0x13
_AT_ONCE = 2000  # blocks between two pieces of the trace
_SLACK = 200_000  # bytes: what is kept of the last messages takes the place of what was kept before

Checker = NtraceChecker | EtraceChecker


def branch(offset: int) -> int:
    """`bne ra, sp` to *offset* bytes from here (The RISC-V Instruction Set Manual, B-type)."""
    bits = offset & 0x1FFF
    return (
        (bits >> 12 & 1) << 31 | (bits >> 5 & 63) << 25 | 2 << 20 | 1 << 15 | 1 << 12 | (bits >> 1 & 15) << 8
        | (bits >> 11 & 1) << 7 | 0x63
    )  # fmt: skip


_CODE = (_NOP, _NOP, _NOP, _NOP, _NOP, branch(-12), _NOP, branch(-28))


def program() -> Image:
    """Two loops, one in the other."""
    image = Image(64)
    image.add_code(_START, struct.pack("<8I", *_CODE))
    return image


@cache  # an encoder remembers blocks: new ones each time would be what grows
def rounds(image: Image) -> list[Block | IngressTrap]:
    """Some rounds of the outer loop, with 1 to 9 rounds of the inner one each."""
    words = [(0, 1, *(2, 3, 4, 5) * times, 6, 7) for times in (1, 5, 2, 7, 3, 9, 4, 4, 8, 6)]
    pcs = [_START + 4 * word for one in words for word in one]
    return list(blocks_from_pcs([*pcs, _START], image))[:-1]


def ntrace(image: Image, *, btm: bool, sync_max: int | None) -> tuple[Checker, Iterator[bytes]]:
    """A checker, and a trace without an end, in pieces. *sync_max*: None for no periodic synchronization."""
    mode = NtraceSync.OFF if sync_max is None else NtraceSync.MESSAGES
    options, sent = NtraceOptions(btm=btm, sync_mode=mode, sync_max=sync_max or 0), list[bytes]()
    encoder = NtraceEncoder(options, sent.append)

    def pieces() -> Iterator[bytes]:
        encoder.start(Sync.TRACE_ENABLE)
        while True:
            yield retired(encoder.retire, image, sent)

    return NtraceChecker(image, options.of_decoder), pieces()


def etrace(image: Image, *, sync_max: int) -> tuple[Checker, Iterator[bytes]]:
    options, sent = (
        EtraceOptions(Parameters(iaddress_width=64), Modes(), sync_mode=EtraceSync.PACKETS, sync_max=sync_max),
        list[bytes](),
    )
    encoder = EtraceEncoder(options, sent.append)

    def pieces() -> Iterator[bytes]:
        encoder.start()
        while True:
            yield retired(encoder.retire, image, sent, lambda packet: bytes((len(packet),)) + packet)

    decoder = replace(options.decoder, sync_packets=options.period)
    return EtraceChecker(image, decoder, Encapsulation(), split=False), pieces()


def retired(
    retire: Callable[[list[Block | IngressTrap]], None], image: Image, sent: list[bytes],
    framed: Callable[[bytes], bytes] = bytes,
) -> bytes:  # fmt: skip
    """The next piece of a trace."""
    items = rounds(image)
    for _ in range(_AT_ONCE // len(items)):
        retire(items)
    data = b"".join(map(framed, sent))
    sent.clear()
    return data


def grown(checker: Checker, pieces: Iterator[bytes], first: int, more: int) -> int:
    """How many bytes of memory *more* pieces take after the *first* ones, and as many again."""
    for _ in range(first):
        checker.feed(next(pieces))
    tracemalloc.start()  # what was allocated before is not seen to be freed
    try:
        before = 0
        for _ in range(2):
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(more):
                checker.feed(next(pieces))
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["htm", "btm", "etrace"])
def test_memory_does_not_grow(kind: str) -> None:
    image = program()
    checker, pieces = etrace(image, sync_max=0) if kind == "etrace" else ntrace(image, btm=kind == "btm", sync_max=0)
    first, more = (100, 2500) if LONG else (2, 1) if kind == "btm" else (18, 4)
    assert grown(checker, pieces, first, more) < _SLACK
    (verdict,) = checker.verdicts().values()
    assert (verdict.damaged, verdict.is_unsure) == ((), False)
    assert verdict.agreed > 64


if LONG:

    def test_an_interval_without_an_end() -> None:
        """Without synchronizations the parts of an interval are not kept for ever."""
        image = program()
        checker, pieces = ntrace(image, btm=False, sync_max=None)
        assert grown(checker, pieces, 100, 1000) < _SLACK
