"""What the check finds in damaged traces. What is right follows from the damage: which packets were changed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rvtrace_gdb.decode.check.ntrace import StreamChecker
from rvtrace_gdb.decode.check.verdict import Differing, Verdict
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as EtraceEncoding
from rvtrace_gdb.decode.etrace.encoder.options import ResyncMode as EtraceSync
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.options import Options as EtraceOptions
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, InstSyncMode, Options
from rvtrace_gdb.decode.program.image import Image
from tests.decode.check.test_sound_traces import of_etrace, of_ntrace
from tests.decode.etrace.encoder.test_vectors import encoded
from tests.decode.etrace.vectors import framed
from tests.decode.ntrace.test_reference import executed, image

_PERIOD = 16


@pytest.fixture(scope="module")
def towers() -> tuple[Image, list[Block | IngressTrap]]:
    return image("towers"), executed("towers")


def ntrace(items: Sequence[Block | IngressTrap], *, btm: bool = False) -> list[bytes]:
    messages: list[bytes] = []
    encoder = Encoder(EncoderOptions(btm=btm, sync_mode=InstSyncMode.MESSAGES), messages.append)
    encoder.start(Sync.EXIT_FROM_DEBUG)
    encoder.retire(items)
    encoder.stop(Evcode.DEBUG_MODE)
    return messages


def checked(messages: Sequence[bytes], program: Image, *, btm: bool = False, period: int | None = _PERIOD) -> Verdict:
    (verdict,) = of_ntrace(b"".join(messages), program, Options(btm=btm, sync_period=period))
    return verdict


def only(verdict: Verdict) -> Differing:
    (found,) = verdict.damaged
    return found


def offset(packets: Sequence[bytes], index: int) -> int:
    return sum(map(len, packets[:index]))


def within(found: Differing, packets: Sequence[bytes], index: int) -> bool:
    """Whether a packet is among the bytes that are damaged."""
    return found.start <= offset(packets, index) <= found.end


@pytest.mark.parametrize("kind", ["lost", "doubled"])
def test_a_direct_branch_in_a_loop_of_btm(towers: tuple[Image, list[Block | IngressTrap]], kind: str) -> None:
    """A round too few or too many: nothing else in the trace tells."""
    program, items = towers
    messages = ntrace(items, btm=True)
    at = next(i for i in range(100, len(messages)) if messages[i] == messages[i + 1] == messages[i + 2])
    damaged = [*messages[:at], *messages[at + 1 :]] if kind == "lost" else [*messages[: at + 1], *messages[at:]]
    verdict = checked(damaged, program, btm=True)
    found = only(verdict)
    assert within(found, damaged, at)
    assert found.difference.timing
    assert verdict.tells_time
    assert verdict.content == 0


def test_an_etrace_packet_that_comes_twice() -> None:
    """What the decoder does not notice is one packet too many for the period: the interval is named."""
    program, items = image("qsort"), executed("qsort")[:6000]
    encoding = EtraceEncoding(Parameters(iaddress_width=64), Modes(), sync_mode=EtraceSync.PACKETS)
    packets = encoded(encoding, items)
    options = replace(encoding.decoder, sync_packets=encoding.period)
    told = 0
    for at in range(60, 84, 2):
        damaged = [*packets[: at + 1], *packets[at:]]
        verdict = of_etrace(framed(damaged), program, options)
        told += len(verdict.damaged)
        assert all(within(one, [bytes([len(packet)]) + packet for packet in damaged], at) for one in verdict.damaged)
    assert told


def test_the_beginning_is_missing(towers: tuple[Image, list[Block | IngressTrap]]) -> None:
    """Without its first message a trace begins at a periodic one; a buffer that wrapped may do so."""
    program, items = towers
    messages = ntrace(items)
    verdict = checked(messages[1:], program)
    found = only(verdict)
    assert (found.start, found.position, found.difference.encoded) == (0, 0, "ProgTraceSync")
    assert found is verdict.beginning


def test_an_encoder_that_is_built_otherwise(towers: tuple[Image, list[Block | IngressTrap]]) -> None:
    """One that synchronizes after 5 messages, and whose register says 16: that is not damage."""
    program, items = towers
    messages: list[bytes] = []
    encoder = Encoder(EncoderOptions(), messages.append)
    encoder.start(Sync.EXIT_FROM_DEBUG)
    for number, block in enumerate(list(items)):
        if number % 40 == 39:
            encoder.mark(Sync.PERIODIC)
        encoder.retire([block])
    encoder.stop(Evcode.DEBUG_MODE)
    verdict = checked(messages, program)
    assert not verdict.damaged
    assert verdict.tells and not verdict.tells_time


def test_an_empty_trace_has_nothing_to_check() -> None:
    (verdict,) = of_ntrace(b"", Image(64), Options())
    assert (verdict.agreed, verdict.damaged, verdict.is_unsure) == (0, (), False)


def test_the_pieces_in_which_it_comes_do_not_matter(towers: tuple[Image, list[Block | IngressTrap]]) -> None:
    """The same trace in pieces of any size gives the same verdict."""
    program, items = towers
    data = b"".join(ntrace(items))
    whole = checked([data], program)
    for size in (1, 7, 1000):
        checker = StreamChecker(program, Options(sync_period=_PERIOD))
        for at in range(0, len(data), size):
            checker.feed(data[at : at + size])
        assert checker.verdicts()[0] == whole


def etrace(count: int) -> tuple[list[bytes], Image, EtraceOptions]:
    """A trace that is so short that it has one interval or two."""
    program, items = image("qsort"), executed("qsort")[:count]
    encoding = EtraceEncoding(Parameters(iaddress_width=64), Modes(), sync_mode=EtraceSync.PACKETS)
    return encoded(encoding, items), program, replace(encoding.decoder, sync_packets=encoding.period)


def test_a_trace_of_one_interval() -> None:
    """One place that differs, among packets that agree, is damage, not an encoder that is built otherwise."""
    packets, program, options = etrace(400)
    assert len(packets) < 20
    told = 0
    for at in range(2, len(packets) - 2):
        verdict = of_etrace(framed([*packets[:at], packets[at + 1], packets[at], *packets[at + 2 :]]), program, options)
        assert not verdict.is_unsure
        told += bool(verdict.damaged or verdict.lost)
    assert told > 5


def test_a_synchronization_where_no_encoder_sends_one() -> None:
    """The first of two intervals ends after 10 packets: no way to count a period of 16 leads there."""
    packets, program, options = etrace(700)
    first, second = [i for i, packet in enumerate(packets) if packet[0] & 15 == 3]
    verdict = of_etrace(framed([*packets[: first + 11], *packets[second:]]), program, options)
    assert options.sync_packets == 16
    assert (len(verdict.damaged), verdict.is_unsure) == (1, False)
