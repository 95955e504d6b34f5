"""Packets that were lost where nothing else tells: too few from one synchronization to the next."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rvtrace_gdb.decode.etrace.decoder import StreamDecoder, decode, decode_streams
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, ResyncMode
from rvtrace_gdb.decode.etrace.loss_detection import period_checker
from rvtrace_gdb.decode.etrace.options import Dialect, Options, Parameters
from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause
from rvtrace_gdb.decode.history.history import Event, History
from tests.decode import assembler as asm
from tests.decode.etrace.packets import write
from tests.decode.etrace.random_programs import MODES, Case, legal
from tests.decode.etrace.vectors import framed
from tests.decode.etrace.worked_examples import TRACE_LOST, Fields, branches, start, support, trap
from tests.decode.ntrace.messages import difference, image_of
from tests.helpers.amounts import each_seed

# A loop of two instructions; each packet is 31 rounds of it. Its first instruction does not follow a CSR instruction.
LOOP = image_of((0xF8, [asm.C_NOP] * 5 + [asm.c_beqz(-2), asm.C_NOP]))
ROUNDS = branches(*[0] * 31)
PERIOD = 16
PARAMETERS = Parameters(iaddress_width=LOOP.xlen, context_width=8)
OPTIONS = Options(PARAMETERS, pinned=True, sync_packets=PERIOD)


def again(context: int = 5, **more: int) -> Fields:
    return start(0x100, context=context, **more)


def stretches(*counts: int) -> list[Fields]:
    """From synchronization to synchronization so many packets."""
    return [again(), *(packet for count in counts for packet in [ROUNDS] * count + [again()])]


def bytes_of(packets: Sequence[Fields], options: Options = OPTIONS) -> bytes:
    return framed([write(packet, options.parameters, options.modes) for packet in packets])


def missing(history: History) -> list[Event]:
    return [event for event in history.events if is_missing(event)]


def is_missing(event: Event) -> bool:
    return isinstance(event.fact, Loss) and event.fact.cause is LossCause.MESSAGES_MISSING


def lost(packets: Sequence[Fields], options: Options = OPTIONS) -> list[Event]:
    history = decode(bytes_of(packets, options), LOOP, options, Encapsulation())
    assert history.gaps == 0
    found = [event for event in history.events if event.kind is EventKind.LOSS]
    assert found == missing(history)
    return found


def test_a_stretch_with_too_few_packets_is_reported_with_its_bytes() -> None:
    """ "Resynchronisation": once the counter has exceeded the period, so one packet more than that."""
    packets = stretches(17, 17, 9, 17)
    (event,) = lost(packets)
    second, third = (len(bytes_of(stretches(*counts))) for counts in ([17, 17], [17, 17, 9]))
    size = len(bytes_of([again()]))
    assert (event.offset, event.end) == (second - size, third - size)
    assert event.position == 62 * (17 + 17 + 9) + 1
    assert "9 from one synchronization to the next instead of 16 or more" in event.text
    history = decode(bytes_of(packets), LOOP, OPTIONS, Encapsulation())
    assert history.instructions == len(history) == 62 * (17 + 17 + 9 + 17) + 1  # no row is invented


@pytest.mark.parametrize(
    "packets",
    [
        stretches(17, 17, 17, 17, 17, 17),
        stretches(17, 18, 19, 17, 18),  # it waited
        stretches(40, 17, 40, 40),  # most of them: it does not do what its register says
        stretches(16, 16, 16, 16, 16),  # an encoder that synchronizes when the period is reached
        stretches(15, 15, 15, 15, 15),  # and counts the synchronization
        stretches(17, 16, 17, 16, 15),  # not enough to tell
        stretches(5, 5, 5, 5),  # its register says something else than it does
        [*stretches(17, 17), *[ROUNDS] * 3, again(privilege=0)],  # another privilege mode
        [*stretches(17, 17), *[ROUNDS] * 3, again(context=6)],  # another context
        [*stretches(17, 17), *[ROUNDS] * 3, {"format": 3, "subformat": 2, "privilege": 3, "context": 6}, again(6)],
        [*stretches(17, 17), *[ROUNDS] * 3, trap(0x100, 1, 7, context=5), *[ROUNDS] * 17, again()],
        [*stretches(17, 17), trap(0x100, 0, 7, context=5), again(), *[ROUNDS] * 17, again()],  # a trap at its target
        [*stretches(17, 17), *[ROUNDS] * 3],  # it ends
    ],
)
def test_what_may_be_whole_is_not_reported(packets: list[Fields]) -> None:
    assert lost(packets) == []


def test_a_few_packets_fewer_are_too_few_where_the_encoder_has_shown_how_it_counts() -> None:
    for few in (16, 15):
        assert len(lost(stretches(17, 17, 17, 17, few, 17))) == 1
        assert len(lost(stretches(17, 17, 17, few, 17, 17))) == 0


def test_a_stretch_with_too_many_packets_is_reported_with_its_bytes() -> None:
    """They came twice, or a synchronization between them was lost: before a trap, and at the end, too."""
    size = len(bytes_of([again()]))
    for few in ([17, 17, 20], [17, 17, 17, 17, 18]):
        for closing in ([again(), *[ROUNDS] * 17, again()], [trap(0x100, 1, 7, context=5)], []):
            before, whole = stretches(*few[:-1]), [*stretches(*few)[:-1], *closing]
            history = decode(bytes_of(whole), LOOP, OPTIONS, Encapsulation())
            (event,) = [event for event in history.events if event.kind is EventKind.LOSS]
            assert isinstance(event.fact, Loss) and event.fact.cause is LossCause.MESSAGES_TOO_MANY
            assert event.fact.detail == (few[-1], PERIOD)
            begin = len(bytes_of(before)) - size
            assert (event.offset, event.end) == (begin, len(bytes_of(stretches(*few))) - size)
            assert history.gaps == 0


def test_packets_without_an_address_count() -> None:
    """Format 3.2, here one that says the same context again."""
    same = {"format": 3, "subformat": 2, "privilege": 3, "context": 5}
    before = stretches(17, 17, 17, 17)
    assert len(lost([*before, *[ROUNDS] * 10, same, *[ROUNDS] * 5, again()])) == 1
    assert len(lost([*before, *[ROUNDS] * 10, same, *[ROUNDS] * 6, again()])) == 0


def test_without_a_known_period_nothing_is_reported() -> None:
    packets = stretches(17, 17, 3, 17)
    assert lost(packets)
    assert not lost(packets, replace(OPTIONS, sync_packets=0))
    for dialect in Dialect:
        assert (period_checker(replace(OPTIONS, dialect=dialect)) is None) == (dialect is not Dialect.STANDARD)


def test_without_contexts_a_synchronization_right_after_a_csr_may_be_for_a_new_one() -> None:
    options = replace(OPTIONS, parameters=replace(PARAMETERS, context_width=0))
    satp = (0x18029073).to_bytes(4, "little")  # csrw satp, t0
    for before, told in (([asm.C_NOP] * 4, 1), ([asm.C_NOP] * 2 + [satp], 0), ([], 0)):
        code = [*before, asm.C_NOP, asm.c_beqz(-2), asm.C_NOP]
        loop = image_of((0x100 - (8 if before else 0), code))
        history = decode(bytes_of(stretches(17, 17, 5, 17), options), loop, options, Encapsulation())
        assert (len(missing(history)), history.gaps) == (told, 0)


def test_what_is_told_already_is_not_told_again() -> None:
    """Packets the encoder lost, tracing that was off, a contradiction, bytes that are none."""
    first, after = [*stretches(17, 17), *[ROUNDS] * 4], [*[ROUNDS] * 4, again(), *[ROUNDS] * 17, again()]
    said = bytes_of([*first, support(OPTIONS.modes, TRACE_LOST), again(), *[ROUNDS] * 17, again()])
    contradiction = bytes_of([*first, {"format": 2, "address": 0x300}, *after])
    noise = bytes_of(first) + b"\x00" + b"\x02\xff\x7f" + bytes_of(after)
    for data in (said, contradiction, noise):
        history = decode(data, LOOP, OPTIONS, Encapsulation())
        assert history.gaps >= 1
        assert missing(history) == []


def test_decoding_stops_there_when_asked_to_stop_at_a_loss() -> None:
    data = bytes_of(stretches(17, 9, 17))
    history = decode(data, LOOP, replace(OPTIONS, stop_at_error=True), Encapsulation())
    assert len(history) == 62 * (17 + 9) + 1
    assert [event.kind for event in history.events[-2:]] == [EventKind.LOSS, EventKind.NOTE]
    assert history.accounting.total == len(data)
    assert history.accounting.skipped == len(bytes_of([ROUNDS])) * 17 + len(bytes_of([again()]))


def test_the_pieces_a_trace_comes_in_make_no_difference() -> None:
    data = bytes_of(stretches(17, 17, 9, 17, 17, 16, 4, 17))
    whole = decode(data, LOOP, OPTIONS, Encapsulation())
    assert len(missing(whole)) == 3
    for size in (1, 7, 40):
        decoder = StreamDecoder(LOOP, OPTIONS, Encapsulation(), split=False)
        for at in range(0, len(data), size):
            decoder.feed(data[at : at + size])
        history = decoder.finish_one()
        assert (history.events, list(history.pcs())) == (whole.events, list(whole.pcs()))
        assert history.accounting == whole.accounting


def test_each_hart_has_a_period_of_its_own() -> None:
    """Packets of another hart do not count."""
    encapsulation = Encapsulation(src_bits=3)
    framer, rng, data = encapsulation.framer(), random.Random(1), b""
    queues = [stretches(17, 17, 17), stretches(17, 7, 17)]
    while any(queues):
        source = rng.choice([i for i in (0, 1) if queues[i]])
        data += framer.packet(write(queues[source].pop(0), PARAMETERS, OPTIONS.modes), source=source)
    streams = decode_streams(data, LOOP, OPTIONS, encapsulation)
    assert {source: len(missing(history)) for source, history in streams.histories.items()} == {0: 0, 1: 1}


def drawn(rng: random.Random) -> dict[str, Any]:
    """An encoder that counts packets; one whose packets have no context is told none."""
    width = rng.choice([0, 11, 32])
    fields = {
        "iaddress_lsb": rng.choice([0, 1]), "privilege_width": rng.choice([2, 3]), "ecause_width": rng.choice([4, 6]),
        "context_width": width, "time_width": rng.choice([0, 16]), "bpred_size": rng.choice([1, 3, 7]),
        "cache_size": rng.choice([1, 4]), "return_stack_size": rng.choice([0, 2, 5]),
        "call_counter_size": rng.choice([0, 1, 8]), "f0s_width": rng.choice([None, 1, 2]),
        "ecall_retires": rng.random() < 0.5, "sync_mode": ResyncMode.PACKETS, "sync_max": rng.randrange(3),
        "context": rng.choice(list(ContextType)) if width else ContextType.UNREPORTED,
        "compress": rng.random() < 0.5, "epc_after_inferred": rng.random() < 0.5,
    }  # fmt: skip
    return legal(fields | {mode: mode != "resync_disabled" and rng.random() < 0.5 for mode in MODES})


@each_seed(range(60))
def test_no_undamaged_trace_is_reported(seed: int) -> None:
    """Random programs, and encoders with all options: a synchronization after more than 16, 32 or 64 packets."""
    rng = random.Random(seed)
    fields = drawn(rng)
    case = Case(seed, fields, steps=3000, trap_rate=rng.choice([0, 0.01, 0.1]), breaks=rng.choice([0, 0.01]))
    case.options = replace(case.options, sync_packets=case.encoder_options.period)
    history = case.decode(case.trace)
    assert missing(history) == []
    assert history.gaps or not difference(history.pcs(), case.pcs)
