"""Right behind a gap nothing is known any more that was known before it: until it is written again."""

from decode.tandem.decoder import Tandem, decode
from decode.tandem.layout import GPR
from tests.decode.tandem_corpus import decoded, parameters_of, program_of, trace_bytes

NAME, FIRST, LAST = "piccolo_rv32-hello", 1000, 1010  # groups that are taken out


def with_hole() -> Tandem:
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
    assert (before.holds, behind.holds) == (True, False) and before.group == behind.group < FIRST
