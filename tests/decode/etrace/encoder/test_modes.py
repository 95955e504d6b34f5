"""The optional modes in the encoder, rule by rule: "Optional and run-time configurable modes" and "Format 0 packets" of
2.0.
"""

import pytest

from rvtrace_gdb.decode.etrace.encoder.options import BranchPredictor, EncoderOptions
from rvtrace_gdb.decode.etrace.encoder.output import MAX_BRANCH_COUNT, Branches
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.encoder.words import Item, M, Told, U, branch, ends, exception, jr, plain, sent

HANDLER = 0x4000
Items = list[Item]


# -- sequentially inferable jumps


def pair(pc: int, target: int) -> Block:
    """A constant and a jump to it."""
    return Block(pc, bytes([1, 1]), IType.OTHER_UNINFERABLE, inferred=target)


@pytest.mark.parametrize(("on", "wanted"), [(True, ["start 1000", "68"]), (False, ["start 1000", "66", "68"])])
def test_sequentially_inferable_jumps(on: bool, wanted: list[str]) -> None:
    modes = Modes(full_address=True, sijump=on)
    assert sent(plain(0x1000), pair(0x1002, 0x66), plain(0x66, 2), modes=modes) == wanted


@pytest.mark.parametrize(
    ("own", "wanted"),
    [(False, ["1004", "trap 4000 cause 2"]), (True, ["1004", "trap 66 thaddr 0 cause 2", "start 4000"])],
)
def test_a_trap_at_the_target_of_an_inferred_jump(own: bool, wanted: list[str]) -> None:
    """The chart: no updiscon comes before, so the handler is reported. The pseudo-code of 2.0.5 (exception_address)
    takes any jump to a register for one, and wants the EPC.
    """
    items = plain(0x1000), pair(0x1002, 0x66), exception(0x66, HANDLER), plain(HANDLER)
    modes = Modes(full_address=True, sijump=True)
    assert sent(*items, modes=modes, epc_after_inferred=own) == ["start 1000", *wanted]


# -- branch prediction

PREDICTS = Parameters(iaddress_width=32, bpred_size=4)
PREDICTION = Modes(full_address=True, branch_prediction=True)


def test_the_states_of_the_predictor() -> None:
    """The table of "Branch prediction mode", from 01 on: state by state, outcome and whether it was predicted."""
    predictor = BranchPredictor(PREDICTS)
    steps = [(True, False), (True, True), (False, False), (False, False), (False, True), (True, False), (False, True)]
    #         01 -> 11       11           11 -> 10        10 -> 00       00            00 -> 01       01 -> 00
    steps += [(True, False), (True, False), (False, False), (True, True), (False, False), (False, False)]
    #         00 -> 01        01 -> 11      11 -> 10        10 -> 11      11 -> 10        10 -> 00
    for taken, predicted in steps:
        assert predictor.follow(0x1234, taken) is predicted


def test_the_predictor_is_indexed_by_the_low_bits_of_the_address() -> None:
    """Bits bpred_size:1. 0x10 and 0x30 share an entry of 16, 0x10 and 0x12 do not."""
    predictor = BranchPredictor(PREDICTS)
    predictor.follow(0x10, True)
    assert predictor.follow(0x30, True)
    assert not predictor.follow(0x12, True)


def loop(times: int) -> Items:
    """A branch to itself, taken so many times: predicted from the second one on."""
    return [branch(0x10, to=0x10) for _ in range(times)]


def test_branches_not_all_predicted_are_a_map() -> None:
    """31 of them: the first one was not."""
    found = sent(plain(0), *loop(31), branch(0x10), plain(0x12), parameters=PREDICTS, modes=PREDICTION)
    assert found == ["start 0", "T" * 31, "N 12"]


def test_predicted_branches_are_counted() -> None:
    """The map is full once, for the first one failed; then 40 are right, and the last one is not: it is not counted
    ("the branch following the previous correct prediction failed").
    """
    found = sent(plain(0), *loop(71), branch(0x10), plain(0x12, 3), parameters=PREDICTS, modes=PREDICTION)
    assert found == ["start 0", "T" * 31, "40 fails", "16"]


def test_less_than_31_predicted_branches_are_a_map() -> None:
    found = sent(plain(0), *loop(31 + 30), branch(0x10), plain(0x12, 3), parameters=PREDICTS, modes=PREDICTION)
    assert found == ["start 0", "T" * 31, "T" * 30 + "N", "16"]


def test_a_count_with_an_address() -> None:
    """An updiscon, or an exception, needs an address: the count goes with it. "If this points to a branch instruction,
    then the branch was predicted correctly", and it is counted; else the packet says that it failed, and it is not.
    """
    items: Items = [plain(0), *loop(71), branch(0x10)]
    jumped = sent(*items[:-1], branch(0x10, to=0x20), jr(0x12), plain(0x66, 2), parameters=PREDICTS, modes=PREDICTION)
    assert jumped == ["start 0", "T" * 31, "40 fails", "66", "68"]
    trapped: Items = [exception(0x10, HANDLER), plain(HANDLER)]
    assert sent(*items, *trapped, parameters=PREDICTS, modes=PREDICTION)[2:] == ["41 10", "trap 4000 cause 2"]
    trapped[0] = exception(0x12, HANDLER)
    assert sent(*items, *trapped, parameters=PREDICTS, modes=PREDICTION)[2:] == ["40 fails 10", "trap 4000 cause 2"]


def test_the_predictor_is_reset_by_a_synchronization() -> None:
    """Then it follows the branch that packet reports: that one is predicted wrongly, the next one rightly."""
    items: Items = [plain(0), *loop(40), exception(0x10, 0x10), *loop(32), branch(0x10), plain(0x12, 2)]
    found = sent(*items, parameters=PREDICTS, modes=PREDICTION)
    assert found == ["start 0", "T" * 31, "T" * 9 + " 10", "trap 10 cause 2 taken", "31 fails", "14"]


def test_without_resynchronization_the_predictor_is_not_reset() -> None:
    modes = Modes(full_address=True, branch_prediction=True, resync_disabled=True)
    items: Items = [plain(0), *loop(40), exception(0x10, 0x20), branch(0x20, to=0x10), *loop(32), plain(0x12, 2)]
    assert sent(*items, parameters=PREDICTS, modes=modes)[3:] == ["trap 20 cause 2 taken", "31 fails", "14"]
    reset = sent(*items, parameters=PREDICTS, modes=PREDICTION)
    assert reset[3:] == ["trap 20 cause 2 taken", "T" * 31, "N 14"]


def test_a_count_at_its_highest_value() -> None:
    """ "The branch count reaches its maximum value (0xffff ffff)": reported with the address of the branch."""
    branches = Branches(EncoderOptions(PREDICTS, PREDICTION))
    for _ in range(100):
        branches.follow(0x10, False)
    branches.count = MAX_BRANCH_COUNT - 2
    due = []
    for _ in range(2):
        branches.follow(0x10, False)
        due.append(branches.is_due)
    assert due == [False, True]
    format, subformat, fields = branches.addressed({"address": 0x10})
    assert (format, subformat, fields["branch_count"], fields["branch_fmt"]) == (0, 0, 0xFFFFFFFF, 2)


def test_the_encoder_reports_a_count_at_its_highest_value() -> None:
    told = Told(PREDICTS, PREDICTION).retires(plain(0), *(branch(0x10) for _ in range(33)))
    told.words()
    told.encoder._branches.count = MAX_BRANCH_COUNT - 1
    told.retires(branch(0x10), plain(0x10))
    assert told.words() == [f"{MAX_BRANCH_COUNT} 10"]


# -- jump target cache

CACHES = Parameters(iaddress_width=32, cache_size=3)
CACHE = Modes(full_address=True, jump_target_cache=True)


def jumped(*targets: int) -> Items:
    """Indirect jumps, each to two instructions and the next jump."""
    items: Items = [plain(0x1000)]
    at = 0x1002
    for target in targets:
        items += [jr(at), plain(target, 2)]
        at = target + 4
    return items


def test_a_target_in_the_cache_is_an_index() -> None:
    """Eight entries, by bits 3:1: 0x106 is in entry 3, and so is 0x116, which replaces it."""
    found = sent(*jumped(0x106, 0x20C, 0x106, 0x116, 0x106, 0x20C), parameters=CACHES, modes=CACHE)
    assert found == ["start 1000", "106", "20c", "[3]", "116", "106", "[6]", "20e"]


def test_branches_go_with_the_index() -> None:
    items: Items = [plain(0x1000), jr(0x1002), branch(0x106), branch(0x10), jr(0x12), branch(0x106), plain(0x108)]
    found = sent(*items, parameters=CACHES, modes=CACHE)
    assert found == ["start 1000", "T 106", "NN [3]", "108"]


def test_a_target_that_needs_updiscon_is_an_address() -> None:
    """Format 0, subformat 1 has no such bit."""
    items = [*jumped(0x106), jr(0x10A), plain(0x106), exception(0x108, HANDLER), plain(HANDLER)]
    found = sent(*items, parameters=CACHES, modes=CACHE)
    assert found == ["start 1000", "106", "106 updiscon", "trap 4000 cause 2"]


def test_a_shorter_difference_may_be_sent() -> None:
    """ "The encoder may chose to output the equivalent format 1 or 2 packet if that will result in a shorter packet":
    a difference of 0 in one byte, against format 0 with an index of 8 bits in two.
    """
    parameters = Parameters(iaddress_width=32, cache_size=8)
    modes = Modes(jump_target_cache=True)
    items: Items = [plain(0x1000), jr(0x1002), jr(0x106), jr(0x106), plain(0x106, 2)]
    assert sent(*items, parameters=parameters, modes=modes)[2:4] == ["0", "0"]
    assert sent(*items, parameters=parameters, modes=modes, shortest=False)[2:4] == ["[131]", "[131]"]


def test_the_cache_is_emptied_by_a_synchronization() -> None:
    items = [*jumped(0x106), exception(0x10A, 0x1002), *jumped(0x106)[1:]]
    found = sent(*items, parameters=CACHES, modes=CACHE)
    assert found == ["start 1000", "106", "108", "trap 1002 cause 2", "106", "108"]


def test_without_resynchronization_the_cache_is_not_emptied() -> None:
    """And the target of a jump that a synchronization reports, for a change of privilege, enters it as any other does
    (the pseudo-code of 2.0.5: cache_update for all packets but traps).
    """
    modes = Modes(full_address=True, jump_target_cache=True, resync_disabled=True)
    mret = ends(0x1002, IType.TRAP_RETURN)
    items: Items = [plain(0x1000), mret, U, plain(0x106, 2), jr(0x10A), plain(0x106, 2), exception(0x10A, 0x20)]
    items += [M, jr(0x20), plain(0x106, 3)]
    found = sent(*items, parameters=CACHES, modes=modes)
    assert found == ["start 1000", "start 106 m=0", "[3]", "108", "trap 20 cause 2", "[3]", "10a"]


def test_what_never_retired_does_not_enter_the_cache() -> None:
    """A trap at the target of a jump (the pseudo-code of 2.0.5: cache_update unless the packet is of a trap)."""
    modes = Modes(full_address=True, jump_target_cache=True, resync_disabled=True)
    items: Items = [plain(0x1000), jr(0x1002), exception(0x106, HANDLER), plain(HANDLER), jr(HANDLER + 2)]
    found = sent(*items, plain(0x106, 2), parameters=CACHES, modes=modes)
    assert found == ["start 1000", "1002", "trap 106 thaddr 0 cause 2", "start 4000", "106", "108"]


def test_tracing_begins_with_an_empty_cache() -> None:
    """ "Resynchronization is disabled" does not mean the first synchronization."""
    modes = Modes(full_address=True, jump_target_cache=True, resync_disabled=True)
    told = Told(CACHES, modes).retires(*jumped(0x106))
    told.encoder.stop(disable=False)
    told.encoder.start()
    told.retires(*jumped(0x106)).encoder.stop()
    assert told.words().count("106") == 2


def test_a_count_of_branches_goes_before_an_index() -> None:
    """ "If the number of correctly predicted branches is 31 or more, then format 0, subformat 0 is always used"."""
    parameters = Parameters(iaddress_width=32, bpred_size=4, cache_size=3)
    modes = Modes(full_address=True, branch_prediction=True, jump_target_cache=True)
    items: Items = [plain(0), jr(2), plain(0x108), jr(0x10A), *loop(71), jr(0x10), plain(0x108, 2)]
    # The first branch is the second jump's target, and reported with it; 70 are left.
    assert sent(*items, parameters=parameters, modes=modes) == ["start 0", "108", "T 10", "70 108", "10a"]
