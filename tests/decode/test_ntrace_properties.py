"""What must hold for every program, every execution and every way to build an encoder."""

import random
from itertools import cycle

from hypothesis import given, settings
from hypothesis import strategies as st

from decode.history import EventKind, History
from decode.ntrace.decoder import Decoder, Options, decode
from decode.ntrace.encoder import Encoder, EncoderOptions, SyncMode
from decode.ntrace.layout import LAYOUTS, Evcode, Sync
from tests.decode.synthetic import Program, Run, execute

examples = settings(derandomize=True, max_examples=120, deadline=None)

encoder_options = st.builds(
    EncoderOptions,
    icnt_limit=st.sampled_from([8, 16, 64, 512, 1 << 16]),
    hist_limit=st.integers(3, 32),
    full_at_once=st.booleans(),
    icnt_full_sync=st.booleans(),
    sync_mode=st.sampled_from(SyncMode),
    sync_max=st.integers(0, 5),
    b_type_extended=st.booleans(),
    indirect_without_hist=st.booleans(),
    correlation_without_hist=st.booleans(),
)
sources = st.integers(0, 12).flatmap(lambda bits: st.tuples(st.just(bits), st.integers(0, (1 << bits) - 1)))


class Case:
    """A program, an execution and its trace."""

    def __init__(self, seed: int, options: EncoderOptions, *, steps: int = 400, trap_rate: float = 0.01) -> None:
        rng = random.Random(seed)
        self.program = Program(rng, rng.choice([32, 64]), rng.randint(8, 60))
        self.run: Run = execute(self.program, rng, steps, trap_rate)
        self.options = Options(src_bits=options.src_bits, src_id=options.src_id)
        self.messages: list[bytes] = []
        encoder = Encoder(options, self.messages.append)
        encoder.start(Sync.EXIT_FROM_DEBUG)
        next_pc = self.run.next_pc if rng.random() < 0.5 else None
        for first in range(0, len(self.run.items), 37):
            encoder.retire(self.run.items[first : first + 37])
        encoder.stop(Evcode.DEBUG_MODE, next_pc)
        self.trace = b"".join(self.messages)

    def decode(self, data: bytes, *, wrapped: bool = False) -> History:
        return decode(data, self.program.image(), self.options, wrapped=wrapped)


cases = st.builds(Case, st.integers(0, 1 << 32), encoder_options)


@examples
@given(st.integers(0, 1 << 32), encoder_options, sources, st.sampled_from([0, 0.005, 0.05, 0.4]))
def test_decoding_what_was_encoded_gives_the_execution(
    seed: int, options: EncoderOptions, source: tuple[int, int], trap_rate: float
) -> None:
    options = EncoderOptions(**{**vars(options), "src_bits": source[0], "src_id": source[1]})
    case = Case(seed, options, trap_rate=trap_rate)
    history = case.decode(case.trace)
    assert list(history.pcs()) == case.run.pcs
    assert history.gaps == 0
    assert history.accounting == (len(case.trace), len(case.trace), 0, 0)
    traps = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [(e.position, e.last_pc, e.next_pc) for e in traps] == [(p, t.epc, t.handler) for p, t in case.run.traps]
    if options.b_type_extended:
        assert [e.text for e in traps] == ["interrupt" if t.interrupt else "exception" for _, t in case.run.traps]


@examples
@given(cases)
def test_with_and_without_memory_of_steps(case: Case) -> None:
    """What is remembered, and forgetting it at any time, changes nothing."""
    for limit in (0, 1, 7):
        decoder = Decoder(case.program.image(), case.options, memo_limit=limit)
        decoder.feed(case.trace)
        assert list(decoder.finish().pcs()) == case.run.pcs


@examples
@given(
    cases,
    st.lists(st.sampled_from([1, 2, 3, 7, 300, 5000]), min_size=1),
    st.lists(st.integers(0, (1 << 32) - 1), max_size=6),
    st.booleans(),
)
def test_any_chunking_gives_the_same_history(
    case: Case, sizes: list[int], damages: list[int], wrapped: bool
) -> None:
    data = bytearray(case.trace)
    for damage in damages:
        data[damage % len(data)] = damage >> 24
    if len(damages) == 6:
        data[len(data) // 2 : len(data) // 2] = bytes(9000)  # a field that does not end
    whole = case.decode(bytes(data), wrapped=wrapped)
    decoder = Decoder(case.program.image(), case.options, wrapped=wrapped)
    start = 0
    for size in cycle([*sizes, 0]):
        decoder.feed(bytes(data[start : start + size]))
        start += size
        if start >= len(data):
            break
    assert_same(decoder.finish(), whole)


def assert_same(one: History, other: History) -> None:
    assert list(one.pcs()) == list(other.pcs())
    assert list(one.events) == list(other.events)
    assert one.accounting == other.accounting


@examples
@given(st.integers(0, 1 << 32), st.integers(0, 2), st.randoms(use_true_random=False))
def test_a_rotated_ring_is_the_linear_tail_after_its_first_sync(seed: int, period: int, rng: random.Random) -> None:
    case = Case(seed, EncoderOptions(sync_mode=SyncMode.MESSAGES, sync_max=period, hist_limit=5))
    sync_tcodes = {tcode for tcode, layout in LAYOUTS.items() if layout.fixed and layout.fixed[0].name == "sync"}
    starts, offset = [], 0
    for message in case.messages:
        if message[0] >> 2 in sync_tcodes:
            starts.append(offset)
        offset += len(message)
    for _ in range(8):
        size = rng.randrange(1, len(case.trace) + 1)  # the ring holds the last bytes, and starts somewhere
        ring, where = case.trace[-size:], rng.randrange(size)
        memory = ring[-where:] + ring[:-where] if where else ring
        oldest_first = memory[where:] + memory[:where]
        assert oldest_first == ring
        history = case.decode(ring, wrapped=True)
        cut = len(case.trace) - size
        boundary = next(i for i in range(cut, len(case.trace)) if case.trace[i] & 3 == 3) + 1
        first = next((start for start in starts if start >= boundary), None)
        expected = [] if first is None else list(case.decode(case.trace[first:]).pcs())
        assert list(history.pcs()) == expected
        assert case.run.pcs[len(case.run.pcs) - len(expected) :] == expected
        assert history.gaps == 0
        assert sum(history.accounting[1:]) == size


@examples
@given(st.binary(max_size=300), st.integers(0, 1 << 32), st.sampled_from([0, 3]), st.booleans(), st.booleans())
def test_no_bytes_raise_or_are_miscounted(noise: bytes, seed: int, src_bits: int, btm: bool, wrapped: bool) -> None:
    program = Program(random.Random(seed), 32, 20)
    start = bytes.fromhex("240d")  # a ProgTraceSync gets it going, wherever its address leads
    for data in (noise, start + noise, bytes(byte & 0xFC for byte in noise), noise * 20):
        history = decode(data, program.image(), Options(src_bits=src_bits, btm=btm), wrapped=wrapped)
        check_bookkeeping(history, data)


def check_bookkeeping(history: History, data: bytes) -> None:
    total, decoded, idle, skipped = history.accounting
    assert total == len(data) == decoded + idle + skipped
    assert min(decoded, idle, skipped) >= 0
    assert idle <= data.count(0xFF)
    positions = [event.position for event in history.events]
    assert positions == sorted(positions)
    assert all(0 <= event.offset <= len(data) for event in history.events)
    for i, pc in enumerate(history.pcs()):
        if pc < 0:
            cause = history.gap_at(i)
            assert cause.text
            assert cause.last_pc == history.pc(i - 1)
            assert i + 1 == len(history) or cause.next_pc is not None


@examples
@given(cases, st.randoms(use_true_random=False))
def test_a_flipped_bit_or_a_cut_loses_no_more_than_to_the_next_sync(case: Case, rng: random.Random) -> None:
    """Whatever it does, it is told, and instructions before the damage are all there."""
    for _ in range(4):
        data = bytearray(case.trace)
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
        if rng.random() < 0.3:
            del data[rng.randrange(at, len(data)) :]
        history = case.decode(bytes(data))
        check_bookkeeping(history, bytes(data))
        message_start = sum(map(len, case.messages[: whole_messages(case.messages, at)]))
        before = [pc for pc in case.decode(case.trace[:message_start]).pcs() if pc >= 0]
        assert list(history.pcs(0, len(before))) == before == case.run.pcs[: len(before)]


def whole_messages(messages: list[bytes], at: int) -> int:
    """How many messages end before byte *at*."""
    end = 0
    for count, message in enumerate(messages):
        end += len(message)
        if end > at:
            return count
    return len(messages)
