"""Messages that were lost where nothing else tells: too few from one synchronization to the next."""

import random
from typing import Any

from rvtrace_gdb.decode.history.events import EventKind, LossCause
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder, decode
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.decode.ntrace.options import Options, SyncPlacement
from tests.decode import assembler as asm
from tests.decode.ntrace.encodings import periodic
from tests.decode.ntrace.messages import SYNCS, difference, image_of, located, message, of_kind, started, stopped
from tests.helpers.amounts import each_seed

# A loop of two instructions, one message for each round (BTM).
LOOP = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP]))
ROUND = message("DirectBranch", icnt=2)
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
