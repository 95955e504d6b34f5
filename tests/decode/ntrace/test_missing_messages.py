"""Messages that were lost where nothing else tells: too few from one synchronization to the next."""

import random
from typing import Any

import pytest

from rvtrace_gdb.decode.history.events import EventKind, LossCause
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder, decode, decode_streams
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import Options, SyncPlacement
from tests.decode import assembler as asm
from tests.decode.ntrace.encodings import periodic
from tests.decode.ntrace.messages import SYNCS, difference, image_of, located, message, of_kind, started, stopped
from tests.helpers.amounts import each_seed

# A loop of two instructions, one message for each round (BTM).
LOOP = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP]))
ROUND = message("DirectBranch", icnt=2)
OTHER = message("Ownership", process=0)
PERIOD = 16


def again(sync: int = Sync.PERIODIC, icnt: int = 0) -> bytes:
    return message("ProgTraceSync", sync=sync, icnt=icnt, faddr=0x100 >> 1)


def rounds(*counts: int, closing: int = Sync.PERIODIC, filling: bytes = b"") -> bytes:
    """From sync to sync so many messages."""
    return started() + b"".join((ROUND + filling) * count + again(closing) for count in counts) + stopped(1, None)


def lost(stream: bytes, **options: Any) -> list[Event]:
    history = decode(stream, LOOP, Options(**{"btm": True, "sync_period": PERIOD, **options}))
    assert history.gaps == 0
    found = of_kind(history, EventKind.LOSS)
    assert all(event.fact.cause is LossCause.MESSAGES_MISSING for event in found)  # type: ignore[union-attr]
    return found


def test_a_stretch_with_too_few_messages_is_reported_with_its_bytes() -> None:
    """Trace Control Interface 1.0: a synchronization when the count reaches 2^(trTeInstSyncMax+4)."""
    stream = rounds(16, 16, 9, 16)
    syncs = [offset for offset, raw in located(stream) if raw[0] >> 2 in SYNCS]
    (event,) = lost(stream)
    assert (event.offset, event.end) == (syncs[2], syncs[3])
    assert event.position == 2 * (16 + 16 + 9)
    assert "9 from one synchronization to the next instead of 16 or more" in event.text
    history = decode(stream, LOOP, Options(btm=True, sync_period=PERIOD))
    assert history.instructions == len(history) == 2 * (16 + 16 + 9 + 16) + 1  # no row is invented


@pytest.mark.parametrize(
    "stream",
    [
        rounds(16, 16, 16, 16, 16),
        rounds(16, 17, 18, 16, 17, 16, 18),  # it was due, and sent the messages that were on their way
        started() + ROUND * 16 + OTHER * 30 + again() + stopped(1, None),  # it waited for a branch
        rounds(40, 16, 40, 40),  # most of them: it does not do what its register says
        rounds(15, 15, 15, 15, 15),  # an encoder that counts the synchronizing message, too
        rounds(16, 15, 16, 15),  # not enough to tell
        rounds(5, 5, 5, 5),  # its register says something else than it does
        rounds(16, 3, 4, closing=Sync.EXTERNAL_TRIGGER),
        rounds(16, 16, filling=b"\xff"),
        rounds(8, 8, filling=b"\xff")[:-2] + ROUND,
    ],
)
def test_what_may_be_whole_is_not_reported(stream: bytes) -> None:
    assert lost(stream) == []


def test_one_message_fewer_is_too_few_where_the_encoder_has_shown_how_it_counts() -> None:
    assert len(lost(rounds(16, 16, 16, 16, 15, 16))) == 1
    assert len(lost(rounds(16, 16, 16, 15, 16, 16))) == 0


def test_a_stretch_with_too_many_messages_is_reported_with_its_bytes() -> None:
    """They came twice, or a synchronization between them was lost. That the trace ends does not matter."""
    stream = rounds(16, 16, 20, 16)
    syncs = [offset for offset, raw in located(stream) if raw[0] >> 2 in SYNCS]
    (event,) = excess(stream)
    assert (event.offset, event.end) == (syncs[2], syncs[3])
    assert event.position == 2 * (16 + 16 + 20)
    assert event.text.startswith("20 messages from one synchronization to the next instead of 16: some came twice, or")
    history = decode(stream, LOOP, Options(btm=True, sync_period=PERIOD))
    assert history.instructions == len(history) == 2 * (16 + 16 + 20 + 16) + 1  # no row is taken away
    at_end = started() + (ROUND * 16 + again()) * 2 + ROUND * 20
    (last,) = excess(at_end)
    assert (last.offset, last.end) == (len(at_end) - 20 * len(ROUND) - len(again()), len(at_end))
    for size in (1, 7):
        decoder = StreamDecoder(LOOP, Options(btm=True, sync_period=PERIOD), split=False)
        for start in range(0, len(stream), size):
            decoder.feed(stream[start : start + size])
        assert events(decoder.finish_one()) == events(history)


def excess(stream: bytes) -> list[Event]:
    history = decode(stream, LOOP, Options(btm=True, sync_period=PERIOD))
    found = of_kind(history, EventKind.LOSS)
    assert history.gaps == 0
    assert all(event.fact.cause is LossCause.MESSAGES_TOO_MANY for event in found)  # type: ignore[union-attr]
    return found


def test_a_synchronization_that_was_lost() -> None:
    """The stretch has twice as many messages, and its closing synchronization is another than a periodic one."""
    stream = started() + (ROUND * 16 + again()) * 2 + ROUND * 32 + again(Sync.EXTERNAL_TRIGGER) + stopped(1, None)
    assert len(excess(stream)) == 1


def test_without_a_known_period_nothing_is_reported() -> None:
    assert lost(rounds(16, 16, 3, 16), sync_period=None) == []


def test_what_is_told_already_is_not_told_again() -> None:
    """An Error, a contradiction, bytes that are none: the gap says that something is missing."""
    for damage in (message("Error", etype=0, ecode=0), message("DirectBranch", icnt=3), b"\x06\x03"):
        stream = started() + (ROUND * 16 + again()) * 2 + ROUND * 4 + damage + ROUND * 4 + again() + stopped(1, None)
        history = decode(stream, LOOP, Options(btm=True, sync_period=PERIOD))
        causes = [event.fact.cause for event in of_kind(history, EventKind.LOSS)]  # type: ignore[union-attr]
        assert LossCause.MESSAGES_MISSING not in causes
        assert history.gaps == 1


def test_decoding_stops_there_when_asked_to_stop_at_a_loss() -> None:
    history = decode(rounds(16, 9, 16), LOOP, Options(btm=True, sync_period=PERIOD, stop_at_error=True))
    assert len(history) == 2 * (16 + 9)
    assert [event.kind for event in history.events[-2:]] == [EventKind.LOSS, EventKind.NOTE]
    assert sum(history.accounting[1:]) == history.accounting.total == len(rounds(16, 9, 16))


def events(history: History) -> list[tuple[Any, ...]]:
    return [(event.position, event.kind, event.offset, event.end, event.fact) for event in history.events]


def test_the_pieces_a_trace_comes_in_make_no_difference() -> None:
    stream = rounds(16, 16, 9, 16, 16, 15, 4, 16)
    options = Options(btm=True, sync_period=PERIOD)
    whole = decode(stream, LOOP, options)
    assert len(of_kind(whole, EventKind.LOSS)) == 3
    for size in (1, 7, 40):
        decoder = StreamDecoder(LOOP, options, split=False)
        for start in range(0, len(stream), size):
            decoder.feed(stream[start : start + size])
        history = decoder.finish_one()
        assert (events(history), list(history.pcs())) == (events(whole), list(whole.pcs()))


def test_each_hart_has_a_period_of_its_own() -> None:
    """Messages of another hart do not count."""
    one, other = (2, 1), (2, 2)

    def loop(source: tuple[int, int], count: int) -> list[bytes]:
        sync = message("ProgTraceSync", source, sync=2, icnt=0, faddr=0x80)
        return [message("DirectBranch", source, icnt=2)] * count + [sync]

    queues = [[loop(one, 0)[0], *loop(one, 16), *loop(one, 16), *loop(one, 16)], loop(other, 0) + loop(other, 16)]
    queues[1] += loop(other, 7) + loop(other, 16)
    rng, stream = random.Random(1), b""
    while any(queues):
        stream += rng.choice([queue for queue in queues if queue]).pop(0)
    streams = decode_streams(stream, LOOP, Options(btm=True, src_bits=2, sync_period=PERIOD))
    found = {src: len(of_kind(history, EventKind.LOSS)) for src, history in streams.histories.items()}
    assert found == {1: 0, 2: 1}


def test_two_synchronizations_in_a_row_are_no_periodic_ones() -> None:
    """A trap right after a trap return has them ("Corner Cases"), with SYNC 2."""
    twice = started() + (ROUND * 16 + again()) * 2 + ROUND * 3 + again() + again() + ROUND * 16 + again()
    for stream in (twice, twice[: -len(again()) - 16 * len(ROUND)]):
        assert lost(stream + stopped(1, None)) == []


@each_seed(range(60))
def test_no_undamaged_trace_is_reported(seed: int) -> None:
    """Random programs, and encoders with all options: a synchronization after every 16, 32 or 64 messages."""
    rng = random.Random(seed)
    fields = {
        "btm": rng.random() < 0.5,
        "sync_placement": rng.choice(list(SyncPlacement)),
        "context": rng.random() < 0.5,
    }
    fields |= {"trap_return_sync": rng.random() < 0.5, "icnt_limit": rng.choice([8, 64, 1 << 16])}
    fields |= {name: rng.random() < 0.5 for name in ("repeated_history", "repeat_branch", "idle_bytes", "timestamps")}
    exponent = rng.randrange(3)
    case = periodic(seed, fields, exponent, steps=3000, trap_rate=rng.choice([0, 0.01, 0.1]))
    assert case.options.sync_period == 1 << exponent + 4
    history = case.decode(case.trace)
    assert of_kind(history, EventKind.LOSS) == []
    assert not difference(history.pcs(), case.run.pcs)
