"""Right behind a gap nothing is known any more that was known before it: until it is written again."""

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, TandemAccesses, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import GPR
from tests.decode.tandem.corpus import decoded, parameters_of, program_of, trace_bytes
from tests.decode.tandem.groups import RV64, Line, store, sw

NAME, FIRST, LAST = "piccolo_rv32-hello", 1000, 1010  # groups that are taken out


def with_hole() -> DecodedTandem:
    whole, offsets = trace_bytes(NAME), decoded(NAME).trace.offsets
    return decode(whole[: offsets[FIRST]] + whole[offsets[LAST] :], program_of(NAME), parameters_of(NAME))


def test_nothing_is_known_at_the_first_instruction_behind_a_gap() -> None:
    tandem = with_hole()
    (gap,) = tandem.history.gap_positions
    before, behind, later = (tandem.before(position) for position in (gap, gap + 1, gap + 2))
    assert None not in (before.x(1), before.x(2), before.x(8))
    assert behind.xs() == [0, *[None] * 31] and behind.csrs() == {} and behind.privilege is None
    assert sum(value is not None for value in later.xs()) == 2  # x0, and what that instruction wrote
    assert behind.pc == tandem.history.pc(gap + 1)


def test_memory_is_not_known_behind_a_gap_either() -> None:
    tandem = with_hole()
    (gap,) = tandem.history.gap_positions
    store = next(store for group in range(FIRST - 2, 0, -1) for _, store in tandem.stored(group))
    assert None not in tandem.before(gap - 1).memory(store.address, store.size)
    assert tandem.before(gap + 1).memory(store.address, store.size, loads=True) == [None] * store.size


def test_the_last_writers_are_named_and_do_not_hold() -> None:
    tandem = with_hole()
    (gap,) = tandem.history.gap_positions
    before, behind = (tandem.before(position).register_writer(GPR + 2) for position in (gap, gap + 1))
    assert before is not None and behind is not None
    assert (before.current, behind.current) == (True, False) and before.group == behind.group < FIRST


def test_an_access_is_one_whatever_gaps_are_around_it() -> None:
    """The gap has the number of the group behind it, or of none at the end; the access is the instruction's."""
    line = Line(0x1000)
    for _ in range(5):
        line()
        line(*store(0x2000, 4, 7), instr=sw())
    raw = encode(line.groups, RV64)
    groups = decode(raw, Image(64), RV64).trace.offsets
    clean = [one.address for one in decode(raw, Image(64), RV64).history.accesses]
    assert clean == [0x2000] * 5
    cut = raw[: groups[2]] + b"\xff" + raw[groups[3] :]  # the gap is right before a store
    found = decode(cut, Image(64), RV64).history
    gap, *more = found.gap_positions
    assert not more and [one.position for one in found.accesses] == [1, gap + 1, gap + 3, gap + 5, gap + 7]
    for end in (bytes(64), b"\x01\x00", b"\xff"):
        found = decode(raw + end, Image(64), RV64).history
        assert list(found.gap_positions) == [10]
        for accesses in (found.accesses, found.accesses[:]):
            assert [one.position for one in accesses] == [1, 3, 5, 7, 9]


def test_a_gap_accesses_nothing() -> None:
    line = Line(0x1000)
    line()
    line(*store(0x2000, 4, 7), instr=sw())
    raw = encode(line.groups, RV64)
    split = decode(raw, Image(64), RV64).trace.offsets[1]
    for data in (raw[:split] + b"\xff" + raw[split:] + raw * 4, raw + bytes(64)):
        history = decode(data, Image(64), RV64).history
        assert isinstance(history.accesses, TandemAccesses)
        assert history.gap_positions and all(history.accesses.access_at(gap) is None for gap in history.gap_positions)
