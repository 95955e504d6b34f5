"""Damaged traces, any bytes, any chunks: nothing fails, all bytes are accounted for, losses are where they are."""

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.events import GAP_KINDS, EventKind, Start, StartReason
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.group_grammar import MOST_ELEMENTS, MOST_NODES, MOST_SHAPES
from rvtrace_gdb.decode.tandem.protocol import Instr, TandemParameters
from rvtrace_gdb.decode.tandem.trace import CUT_OFF, NO_BEGIN, TraceGroups
from tests.decode.tandem.corpus import decoded, parameters_of, program_of, trace_bytes
from tests.decode.tandem.groups import INIT, NOP, RV32, RV64, Line, csr, group, pc, x
from tests.helpers.amounts import each_seed, some_of

SMALL = "flute_rv64-irq"
ALL_PARAMETERS = [RV64, RV32, TandemParameters(32, 64, 34), TandemParameters(32, 32, 34, 32)]


def check_account(found: DecodedTandem, total: int) -> None:
    """Bytes, gaps and positions, whatever was decoded."""
    history, trace = found.history, found.trace
    account = history.accounting
    assert account.total == total and account.decoded + account.idle + account.skipped == total
    assert account.skipped == sum(loss.length for loss in trace.losses)
    assert sum(one.size for one in trace.groups()) == account.decoded
    ends = [(one.offset, one.offset + one.size) for one in trace.groups()]
    lost = [(loss.offset, loss.offset + loss.length) for loss in trace.losses]
    covered = sorted(ends + lost)
    assert all(first[1] == second[0] for first, second in pairwise(covered))
    causes = {event.position for event in history.events if event.kind in GAP_KINDS}
    assert set(history.gap_positions) <= causes
    step = max(len(history) // 10, 1)
    for position in range(0, len(history), step):
        number = found.group_of(position)
        state = found.before(position)
        if history.pc(position) != GAP:
            assert found.index.origin(number) == history.pc(position) == state.pc
        state.xs(), state.csrs(), state.memory(0, 4)


def in_chunks(data: bytes, sizes: list[int], parameters: TandemParameters) -> TraceGroups:
    trace, at = TraceGroups(parameters), 0
    for size in sizes:
        trace.feed(data[at : at + size])
        at += size
    trace.feed(data[at:])
    trace.finish()
    return trace


def same(one: TraceGroups, other: TraceGroups) -> bool:
    groups = list(one.groups()) == list(other.groups())
    return groups and one.losses == other.losses and one.data == other.data


ELEMENTS = [
    b"\x01", b"\x02", b"\x03", b"\x0a", b"\x0b", b"\x10\x01\x00", b"\x11\x13\0\0\0", b"\x07\x01\x03",
    b"\x05\x05\x10\x01", b"\x06\x03\x00\x01", b"\x04\x05\x10" + bytes(8), b"\x04\x00\x03" + bytes(8),
    b"\x07\x0a" + bytes(8), b"\x08" + bytes(8) + b"\x20", b"\x08" + bytes(8) + b"\x21" + bytes(4),
    b"\x09\x02\0\0\0\0", b"\x09\x02",
]  # fmt: skip
elements = st.sampled_from(ELEMENTS)
nearly = st.lists(st.one_of(elements, elements, elements, elements, st.binary(max_size=3)), max_size=60).map(b"".join)
anything = st.one_of(st.binary(max_size=300), nearly)


@given(anything, st.sampled_from(ALL_PARAMETERS), st.lists(st.integers(0, 40), max_size=12))
@settings(max_examples=some_of(120))
def test_any_bytes_in_any_chunks(data: bytes, parameters: TandemParameters, sizes: list[int]) -> None:
    trace = TraceGroups(parameters)
    at = 0
    for size in sizes:
        trace.feed(data[at : at + size])
        at += size
    trace.feed(data[at:])
    trace.finish()
    found = DecodedTandem(trace, Image(parameters.xlen))
    check_account(found, len(data))
    assert same(found.trace, TraceGroups.from_bytes(data, parameters))
    list(found.trace.flaws())


@given(anything, st.sampled_from(ALL_PARAMETERS))
@settings(max_examples=some_of(80))
def test_what_was_read_encodes_to_the_same_bytes(data: bytes, parameters: TandemParameters) -> None:
    trace = TraceGroups.from_bytes(data, parameters)
    for one in trace.groups():
        raw = data[one.offset : one.offset + one.size]
        follows = len(one.elements) == 1 and type(one.elements[0]).__name__ == "MemoryResponse"
        if not follows:  # an answer outside of a group: its form depends on the request before it
            ended = encode([one, *([group(NOP)] if one.ending.value.startswith("implied") else [])], parameters)
            assert ended[: len(raw)] == raw


def test_byte_by_byte() -> None:
    data, parameters = trace_bytes(SMALL), parameters_of(SMALL)
    assert same(in_chunks(data, [1] * len(data), parameters), TraceGroups.from_bytes(data, parameters))


@each_seed(range(15))
def test_one_damaged_byte_costs_a_few_groups(seed: int) -> None:
    """After a damaged opcode, groups are found again; those behind are as they were."""
    rng = random.Random(seed)
    intact = decoded(SMALL)
    data = bytearray(trace_bytes(SMALL))
    number = rng.randrange(5, len(intact.trace) - 10)
    data[intact.trace.group(number).offset + 1] = rng.choice([0, 12, 15, 18, 77, 0xFF])  # its first element
    found = decode(bytes(data), program_of(SMALL), parameters_of(SMALL))
    check_account(found, len(data))
    assert len(found.trace.losses) == 1
    loss = found.trace.losses[0]
    assert loss.group == number and loss.offset == intact.trace.offsets[number]
    assert "is not an opcode (at 0x" in loss.why
    missing = len(intact.trace) - len(found.trace)
    assert 1 <= missing <= 2
    assert list(found.trace.groups(number)) == list(intact.trace.groups(number + missing))
    gap = next(event for event in found.history.events if event.kind is EventKind.LOSS)
    assert gap.text == loss.why and gap.offset == loss.offset
    before = [pc for pc in found.history.pcs(0, gap.position) if pc != GAP]
    assert gap.last_pc == before[-1]
    assert gap.next_pc is None or gap.next_pc in set(intact.history.pcs())


@each_seed(range(15))
def test_a_dropped_group_is_named(seed: int) -> None:
    """The pc goes where the instruction before cannot: unless what follows is a jump that may go anywhere."""
    rng = random.Random(seed)
    intact = decoded(SMALL)
    trace = intact.trace
    plain = [
        number
        for number in range(10, len(trace) - 2)
        if intact.index.retired[number] and intact.index.retired[number + 1] and number + 1 not in intact.index.origins
    ]
    number = rng.choice(plain)
    dropped = trace.group(number)
    data = trace_bytes(SMALL)
    found = decode(
        data[: dropped.offset] + data[dropped.offset + dropped.size :], program_of(SMALL), parameters_of(SMALL)
    )  # fmt: skip
    following = trace.group(number + 1).instr
    assert following is not None
    loops = intact.index.pcs[number] == intact.index.pcs[number - 1]
    if following.word & 0x7F == 0x67 or following.word in (0x30200073,) or loops:
        return
    (missing,) = found.index.breaks
    assert missing.group == number and missing.offset == dropped.offset and not missing.loss
    assert missing.why.startswith("groups are missing: the pc was 0x")
    gap = next(event for event in found.history.events if event.kind is EventKind.LOSS)
    assert gap.last_pc == list(intact.history.pcs())[intact.position_of(number) - 1]


@pytest.mark.parametrize("name", [SMALL, "piccolo_rv32mi-p-scall"])
def test_a_trace_cut_off_anywhere(name: str) -> None:
    intact, data = decoded(name), trace_bytes(name)
    rng = random.Random(1)
    for cut in rng.sample(range(len(data)), 20):
        found = decode(data[:cut], program_of(name), parameters_of(name))
        whole = sum(one.offset + one.size <= cut for one in intact.trace.groups())
        assert list(found.trace.groups()) == list(intact.trace.groups(0, whole))
        assert [loss.cause for loss in found.trace.losses] in ([], [CUT_OFF])
        assert list(found.history.pcs()) == list(intact.history.pcs(0, len(found.history)))


def test_a_trace_that_begins_anywhere() -> None:
    """As from a ring buffer: the tail from the first group on; nothing before it is taken for a state change."""
    intact, data = decoded(SMALL), trace_bytes(SMALL)
    rng = random.Random(2)
    for start in rng.sample(range(1, len(data) - 400), 40):
        found = decode(data[start:], program_of(SMALL), parameters_of(SMALL), wrapped=True)
        check_account(found, len(data) - start)
        tail = [one for one in intact.trace.groups() if one.offset >= start]
        assert [one.elements for one in found.trace.groups()] == [one.elements for one in tail]
        skipped = tail[0].offset - start
        assert [(loss.offset, loss.length, loss.cause) for loss in found.trace.losses] == [(0, skipped, NO_BEGIN)] * (
            skipped > 0
        )
        first = next(number for number, one in enumerate(intact.trace.groups()) if one.offset >= start)
        pcs = list(intact.history.pcs(intact.position_of(first)))
        assert list(found.history.pcs()) in (pcs, pcs[1:])  # of a jump first nobody knows where it was
        assert not found.history.gaps and found.history.events[0].fact in (NO_BEGIN, Start(StartReason.BEGINNING))


def test_a_trace_that_does_not_begin_with_a_group() -> None:
    """Changes outside of groups come between groups: in front of the first one, they are the rest of something."""
    raw = encode([group(pc(4 * number), NOP) for number in range(1, 7)], RV64)
    rest = bytes.fromhex("0405100100000000000000")  # looks like x5 = 1
    for wrapped in (False, True):
        found = decode(rest + raw, Image(64), RV64, wrapped=wrapped)
        assert len(found.trace) == 6 and found.after(5).x(5) is None
        assert [tuple(loss) for loss in found.trace.losses] == [(0, 0, 11, NO_BEGIN)]
        assert same(in_chunks(rest + raw, [1] * 30, RV64), TraceGroups.from_bytes(rest + raw, RV64))
    assert decode(raw, Image(64), RV64, wrapped=True).trace.losses == []


def test_a_group_beyond_what_is_remembered() -> None:
    """Long groups are read element by element; they change what short ones do."""
    many = [csr(0x340 + number % 3, number) for number in range(5 * MOST_ELEMENTS)]
    groups = [group(pc(4), NOP), group(INIT, *many), group(pc(8), NOP, x(5, 1)), group(INIT, *many, INIT)]
    raw = encode(groups, RV64)
    found = decode(raw, Image(64), RV64)
    assert [one.elements for one in found.trace.groups()] == [one.elements for one in groups]
    assert found.after(1).csr(0x340) == 5 * MOST_ELEMENTS - 2
    assert [flaw.group for flaw in found.trace.flaws()] == [3]
    assert same(in_chunks(raw, [7] * (len(raw) // 7), RV64), found.trace)


def test_what_is_remembered_is_bounded() -> None:
    """A million different shapes of groups do not fill memory with them."""
    rng = random.Random(3)
    pieces = [b"\x03", b"\x10\x01\x00", b"\x05\x05\x10\x01", b"\x06\x03\x00\x01", b"\x07\x01\x03", b"\x0b"]
    raw = b"".join(b"\x01" + b"".join(rng.choices(pieces, k=rng.randint(1, 12))) + b"\x02" for _ in range(10_000))
    trace = TraceGroups.from_bytes(raw, RV64)
    assert len(trace) == 10_000 and not trace.losses
    assert len(trace.automaton.shapes) <= MOST_SHAPES
    assert trace.automaton._nodes <= MOST_NODES
    some = rng.sample(range(10_000), 300)
    assert encode([trace.group(number) for number in some], RV64) == b"".join(
        raw[trace.offsets[number] :][: trace.group(number).size] for number in some
    )


def test_damage_does_not_cost_the_square_of_its_length() -> None:
    """Bytes among which groups begin everywhere and none is: each place is looked at, and not far."""
    for noise in (
        b"\x01" + b"\x07\x01\x01" * 40_000 + b"\x00",
        b"\x01\x03" * 60_000 + b"\x00",
        b"\x01" * 100_000 + b"\x00",
    ):
        trace = TraceGroups.from_bytes(noise, RV64)
        assert sum(trace.accounting[1:]) == len(noise)


def test_progress_that_counts_no_bytes_has_a_unit() -> None:
    data, told = trace_bytes(SMALL), dict[str, int | None]()
    decode(
        data,
        program_of(SMALL),
        parameters_of(SMALL),
        progress=lambda label, done, total=None: told.update({label: total}),
    )
    groups = len(decoded(SMALL).trace)
    assert told and all(
        total == (groups if label.endswith(" (groups)") else len(data)) for label, total in told.items()
    )


def test_a_wrong_program_is_named_at_once() -> None:
    """The first instruction that is another one in the ELF; the addresses are the trace's own and stay."""
    found = decode(trace_bytes("flute_rv64ui-p-add"), program_of("flute_rv64ua-p-amoadd_d"), RV64)
    event = next(event for event in found.history.events if event.kind is EventKind.MISMATCH)
    what = r"trace does not match rv64ua-p-amoadd_d at 0x8000\w+: the instruction 0x\w+ ran, and 0x\w+ is there"
    assert re.fullmatch(what, event.text)
    assert list(found.history.pcs()) == list(decoded("flute_rv64ui-p-add").history.pcs())
    assert event.position <= len(found.history) // 2


def test_code_the_program_does_not_have_comes_from_the_trace() -> None:
    image = Image(64)
    found = decode(trace_bytes(SMALL), image, RV64)
    assert list(found.history.pcs()) == list(decoded(SMALL).history.pcs())
    for position, address in enumerate(found.history.pcs()):
        instr = found.trace.group(found.group_of(position)).instr
        assert isinstance(instr, Instr)
        assert image.read(address, instr.length) == instr.word.to_bytes(instr.length, "little")


def test_a_jump_first_has_no_address() -> None:
    """Where a trace begins with a jump, nobody can say where that was: the history begins behind it."""
    line = Line(0x1000)
    line(instr=Instr(0x00008067, 4), to=0x2000)
    line()
    found = line.decoded()
    assert list(found.history.pcs()) == [0x2000] and found.group_of(0) == 1
    assert found.history.events[0].next_pc == 0x2000
