"""Random programs and runs: what is shown ran, what is determined is shown, and nothing makes decoding fail."""

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.ctr.decoder import DecodedRecords, RecordStretch, decode_records
from rvtrace_gdb.decode.ctr.records import CtrRecord, RecordOptions
from rvtrace_gdb.decode.history.events import GAP_KINDS, EventKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.ctr.naive_ways import Believed, Ways, ways
from tests.decode.ctr.random_harts import ALL, BASE, JUMPS, Event, Hart, Program, recorded
from tests.helpers.amounts import some_of

TRAPS = {1, 2}
seeds = st.integers(0, 2**32)


def options(types: frozenset[int], **rest: bool) -> RecordOptions:
    return RecordOptions(frozenset(map(IType, types)), **rest)


def decode(program: Program, records: Sequence[CtrRecord], options: RecordOptions) -> DecodedRecords:
    size = 24 * len(records)
    return decode_records(records, program.image(), options, total=size, idle=0)


def shown(decoded: DecodedRecords, number: int) -> tuple[list[int], list[int]]:
    """What a stretch shows before its gap, and behind it; all of it before, without a gap."""
    stretch = decoded.stretches[number]
    pcs = list(decoded.history.pcs(stretch.first, stretch.stop))
    if stretch.complete:
        return pcs, []
    if GAP not in pcs:  # nothing ran since the gap before
        return [], pcs
    gap = pcs.index(GAP)
    return pcs[:gap], pcs[gap + 1 :]


def filters(rng: random.Random) -> frozenset[int]:
    """Types that are recorded, as people choose them, or any."""
    chosen = [ALL, ALL - {4}, ALL - {4, 5}, frozenset({8, 9, 13}), frozenset({4, 5}), ALL - {13}, ALL - {11, 15}]
    any_of = frozenset(kind for kind in ALL if rng.random() < 0.6)
    return rng.choice([*chosen, any_of])


def check_sound(decoded: DecodedRecords, stretches: list[list[int]], records: list[CtrRecord], *, sure: bool) -> None:
    """What is shown is what ran."""
    for number, (truth, record) in enumerate(zip(stretches, records, strict=False)):
        before, behind = shown(decoded, number)
        retired = record.kind not in (IType.EXCEPTION, IType.INTERRUPT)
        if number == 0:
            assert before == truth[-1:] * retired
        elif decoded.stretches[number].complete:
            assert before == truth
        else:
            assert before == truth[: len(before)] and behind == truth[-1:] * retired
            assert sure or not before


def check_account(decoded: DecodedRecords) -> None:
    history = decoded.history
    account = history.accounting
    assert account.decoded + account.idle + account.skipped == account.total
    causes = [event.position for event in history.events if event.kind in GAP_KINDS]
    assert all(position in causes for position in history.gap_positions)
    positions = [(stretch.first, stretch.stop) for stretch in decoded.stretches]
    assert positions[0][0] == 0 and positions[-1][1] == len(history)
    assert all(one[1] == two[0] for one, two in pairwise(positions))


@given(seeds)
@settings(max_examples=some_of(200), deadline=None)
def test_what_is_shown_ran(seed: int) -> None:
    rng = random.Random(seed)
    program = Program(rng, rng.randint(4, 30))
    types = filters(rng) | TRAPS
    hart = Hart(program, rng)
    hart.run(rng.randint(10, 300))
    records, stretches = recorded(hart.events, types)
    decoded = decode(program, records, options(types))
    check_account(decoded)
    check_sound(decoded, stretches, records, sure=True)
    assert not [event for event in decoded.history.events if event.kind is EventKind.MISMATCH]


@given(seeds)
@settings(max_examples=some_of(200), deadline=None)
def test_what_is_shown_ran_where_traps_are_not_recorded(seed: int) -> None:
    rng = random.Random(seed)
    program = Program(rng, rng.randint(4, 30))
    types = filters(rng)
    hart = Hart(program, rng, traps=False)
    hart.run(rng.randint(10, 300))
    records, stretches = recorded(hart.events, types)
    decoded = decode(program, records, options(types, hidden=True))
    check_account(decoded)
    check_sound(decoded, stretches, records, sure=False)
    assert not [event for event in decoded.history.events if event.kind is EventKind.MISMATCH]


@pytest.mark.parametrize("sure", [True, False], ids=["sure", "hidden"])
@given(seed=seeds)
@settings(max_examples=some_of(200), deadline=None)
def test_a_stretch_is_whole_if_there_is_one_way_only(seed: int, sure: bool) -> None:
    rng = random.Random(seed)
    program = Program(rng, rng.randint(4, 14))
    types = filters(rng) | TRAPS if sure else filters(rng)
    hart = Hart(program, rng, traps=sure)
    hart.run(rng.randint(10, 100))
    records, _ = recorded(hart.events, types)
    end = hart.pc if rng.random() < 0.7 else None
    options = RecordOptions(frozenset(map(IType, types)), hidden=not sure, end=end)
    decoded = decode(program, records, options)
    believed: Believed | None = Believed()
    for number, record in enumerate(records):
        found = None
        if number and believed is not None:
            found = naive(program, records[number - 1], record, believed, types, sure)
            check_against(decoded, number, found, record, sure)
        at_source = believed_at(decoded.stretches[number], found) if number else Believed()
        believed = known_behind(program, record, at_source)
    if records and end is not None and believed is not None:
        found = ways(program, records[-1].target or 0, believed, end, None, types, sure)
        check_against(decoded, len(records), found, None, sure)


def believed_at(stretch: RecordStretch, found: Ways | None) -> Believed | None:
    """What is known of the registers behind a stretch. None: more than the few ways looked at here can tell."""
    if not stretch.complete:
        return Believed()
    return found.believed if found is not None and found.unique is not None else None


def naive(
    program: Program, before: CtrRecord, record: CtrRecord, believed: Believed, types: frozenset[int], sure: bool
) -> Ways:
    assert before.target is not None and record.source is not None
    target = record.target if record.kind not in (IType.EXCEPTION, IType.INTERRUPT) else None
    return ways(program, before.target, believed, record.source, target, types, sure)


def known_behind(program: Program, record: CtrRecord, believed: Believed | None) -> Believed | None:
    """What is known of the registers when the transfer was made."""
    if record.source is None or record.kind in (IType.EXCEPTION, IType.INTERRUPT, IType.TRAP_RETURN):
        return Believed()
    op = program.at[record.source]
    if believed is not None:
        believed.link(op, record.source + op.length)
    return believed


def check_against(decoded: DecodedRecords, number: int, found: Ways, record: CtrRecord | None, sure: bool) -> None:
    """A stretch is what all ways there are have in common."""
    if found.cut:
        return
    stretch = decoded.stretches[number]
    retired = record is not None and record.kind not in (IType.EXCEPTION, IType.INTERRUPT)
    source = [record.source] if retired and record is not None else []
    before, _ = shown(decoded, number)
    assert stretch.complete == (found.unique is not None)
    if found.unique is not None:
        assert before == [*found.unique, *source]
    else:
        assert before == (found.common if sure else [])


@given(seeds)
@settings(max_examples=some_of(200), deadline=None)
def test_ras_shows_only_what_ran(seed: int) -> None:
    """The records are the calls that have not returned (1.0, "RAS (Return Address Stack) Emulation Mode").

    Where they returned to elsewhere they are symmetric no more, and RAS emulation itself says so much less.
    """
    rng = random.Random(seed)
    program = Program(rng, rng.randint(4, 20))
    hart = Hart(program, rng, traps=False)
    hart.run(rng.randint(10, 200))
    stack, astray = call_stack(program, hart.events)
    records = [record._replace(offset=24 * i) for i, (_, record) in enumerate(stack)]
    decoded = decode(program, records, RecordOptions(ras=True, end=hart.pc))
    check_account(decoded)
    assert not [event for event in decoded.history.events if event.kind is EventKind.MISMATCH]
    ends = [number for number, _ in stack] + [len(hart.events)]
    for number, stretch in enumerate(decoded.stretches[: len(stack) + 1] if stack else ()):
        before, behind = shown(decoded, number)
        if number < len(stack):
            assert [*before, *behind][-1:] == [records[number].source]
        if number and stretch.complete and astray < ends[number - 1]:
            assert before == [event.pc for event in hart.events[ends[number - 1] + 1 : ends[number] + 1]]
        assert stretch.complete or not before


def call_stack(program: Program, events: Sequence[Event]) -> tuple[list[tuple[int, CtrRecord]], int]:
    """The newest 16 calls that have not returned, each with the number of its event; the last event that returned to
    elsewhere than behind its call."""
    stack: list[tuple[int, CtrRecord]] = []
    astray = -1
    for number, event in enumerate(events):
        if event.type in (12, 13):
            call = events[stack[-1][0]] if stack else None
            if call is None or event.to != call.pc + program.at[call.pc].length:
                astray = number
            stack = stack[:-1]
        if event.type in (8, 9, 12):
            stack.append((number, CtrRecord(event.pc, event.to, IType(event.type))))
    return stack[-16:], astray


kinds = st.sampled_from(list(IType))


@st.composite
def junk(draw: st.DrawFn) -> CtrRecord:
    address = st.one_of(st.none(), st.integers(BASE, BASE + 64), st.integers(0, 2**64 - 1))
    cycles = draw(st.one_of(st.none(), st.integers(0, 2**27)))
    return CtrRecord(
        draw(address), draw(address), draw(kinds), draw(st.booleans()), cycles, draw(st.booleans()),
        draw(st.integers(0, 6144)),
    )  # fmt: skip


@given(
    st.lists(junk(), max_size=12),
    st.binary(max_size=80),
    st.sampled_from([32, 64]),
    st.frozensets(kinds),
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), st.integers(BASE, BASE + 64), st.integers(0, 2**64 - 1)),
)
@settings(max_examples=some_of(250), deadline=None)
def test_nothing_makes_it_fail(
    records: list[CtrRecord], code: bytes, xlen: int, types: frozenset[IType], ras: bool, hidden: bool, end: int | None
) -> None:
    image = Image(xlen)
    image.add_code(BASE, code)
    options = RecordOptions(types, ras, end, hidden)
    decoded = decode_records(records, image, options, total=24 * len(records) + 48, idle=24)
    check_account(decoded)
    assert len(decoded.stretches) == len(records) + 1
    assert decoded.history.accounting.skipped == 24
    again = decode_records(records, image, options, total=24 * len(records) + 48, idle=24)
    assert list(again.history.pcs()) == list(decoded.history.pcs()) and again.stretches == decoded.stretches


@given(seeds, st.sampled_from([2, 4, 6]))
@settings(max_examples=some_of(100), deadline=None)
def test_a_wrong_program_shows_no_more_than_its_own_ways(seed: int, shift: int) -> None:
    """Whatever is shown for a wrong program is code of it, and the sources recorded."""
    rng = random.Random(seed)
    program = Program(rng, rng.randint(4, 30))
    hart = Hart(program, rng)
    hart.run(100)
    records, _ = recorded(hart.events, ALL)
    size = 24 * len(records)
    decoded = decode_records(records, program.image(shift), options(ALL), total=size, idle=0)
    check_account(decoded)
    if len(records) > 8 and len(JUMPS & {int(record.kind) for record in records}) > 2:
        assert [event for event in decoded.history.events if event.kind is EventKind.MISMATCH]
