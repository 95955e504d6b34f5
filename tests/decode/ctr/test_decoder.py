"""From records to a history, by hand: what is known, what is not and why, what contradicts the program.

Which transfers between modes are recorded: Control Transfer Records 1.0, table "Trap and Trap Return Recording".
"""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.ctr.decoder import DecodedRecords, decode_records
from rvtrace_gdb.decode.ctr.records import TYPE_NAMES, CtrRecord, RecordOptions, impossible, record_text
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler as asm

BASE = 0x8000_0000
ALL = RecordOptions().kinds
CALL, ICALL, RET, JUMP, IJUMP = (
    IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.RETURN, IType.INFERABLE_TAIL_CALL, IType.UNINFERABLE_TAIL_CALL
)  # fmt: skip
TAKEN, NOT_TAKEN, EXCEPTION, INTERRUPT, XRET = (
    IType.TAKEN, IType.NOT_TAKEN, IType.EXCEPTION, IType.INTERRUPT, IType.TRAP_RETURN
)  # fmt: skip
RET_CODE, MRET, PUSH, POP = (
    asm.jalr(0, 1),
    asm.MRET,
    (0xFF01_0113).to_bytes(4, "little"),
    (0x0101_0113).to_bytes(4, "little"),
)
SAVE, LOAD = (0x0011_3423).to_bytes(4, "little"), (0x0081_3083).to_bytes(4, "little")  # sd ra, 8(sp); ld ra, 8(sp)
SWITCH = (0x34E0_1073).to_bytes(4, "little")  # csrw mctrctl, zero


def at(number: int) -> int:
    """The address of instruction *number*."""
    return BASE + 4 * number


def image(*code: bytes, xlen: int = 64) -> Image:
    made = Image(xlen)
    made.add_code(BASE, b"".join(code))
    return made


def row(*transfers: tuple[int | None, int | None, IType]) -> list[CtrRecord]:
    """Records of (instruction it left, instruction it went to, type)."""
    return [
        CtrRecord(None if source is None else at(source), None if target is None else at(target), kind, offset=24 * i)
        for i, (source, target, kind) in enumerate(transfers)
    ]


def decode(records: Sequence[CtrRecord], program: Image, options: RecordOptions | None = None) -> DecodedRecords:
    return decode_records(records, program, options or RecordOptions(), total=24 * len(records), idle=0)


def lines(decoded: DecodedRecords) -> list[int]:
    """The history by number of instruction, GAP for a gap."""
    return [pc if pc == GAP else (pc - BASE) // 4 for pc in decoded.history.pcs()]


def said(decoded: DecodedRecords, *kinds: EventKind) -> list[str]:
    return [event.text for event in decoded.history.events if event.kind in kinds]


NOP = asm.NOP


def test_what_lies_between_two_records() -> None:
    decoded = decode(
        row((0, 2, CALL), (4, 1, RET), (1, 5, JUMP)), image(asm.jal(8, 1), asm.jal(16), NOP, NOP, RET_CODE)
    )
    assert lines(decoded) == [0, 2, 3, 4, 1]
    assert [(one.first, one.stop, one.instructions) for one in decoded.stretches[:3]] == [
        (0, 1, 1),
        (1, 4, 3),
        (4, 5, 1),
    ]
    assert decoded.stretches[3].instructions is None and decoded.stretches[3].why == "what ran since is not recorded"
    assert said(decoded, EventKind.SYNC) == ["the oldest record"]
    assert decoded.history.accounting == (72, 72, 0, 0)


def test_up_to_where_the_hart_stands() -> None:
    code = image(asm.jal(8), NOP, NOP, asm.beq(8), NOP, NOP)
    decoded = decode(row((0, 2, JUMP)), code, RecordOptions(end=at(5)))
    assert lines(decoded) == [0, 2, 3, 4] and decoded.stretches[-1].instructions == 3
    here = decode(row((0, 2, JUMP)), code, RecordOptions(end=at(2)))
    assert lines(here) == [0] and here.stretches[-1].instructions == 0


def test_from_where_recording_began() -> None:
    """The code leads from there to the oldest record without any other transfer."""
    code = image(NOP, asm.beq(8), NOP, asm.jal(8), NOP, NOP)
    decoded = decode(row((3, 5, JUMP)), code, RecordOptions(begin=at(0), end=at(5)))
    assert lines(decoded) == [0, 1, 2, 3]
    assert said(decoded, EventKind.SYNC) == ["tracing starts"]
    assert [(one.first, one.stop, one.complete) for one in decoded.stretches] == [(0, 4, True), (4, 4, True)]
    on_it = decode(row((3, 5, JUMP)), code, RecordOptions(begin=at(3)))
    assert lines(on_it) == [3] and said(on_it, EventKind.SYNC) == ["tracing starts"]


LEADS = image(NOP, NOP, asm.jal(8), NOP, NOP)
RECORD = row((2, 4, JUMP))


@pytest.mark.parametrize(
    ("program", "options"),
    [
        (LEADS, RecordOptions(begin=at(3))),
        (LEADS, RecordOptions(begin=at(0) - 8)),
        (LEADS, RecordOptions(begin=at(0), hidden=True)),
        (LEADS, RecordOptions(begin=at(0), kinds=ALL - {EXCEPTION})),
        (LEADS, RecordOptions(begin=at(0), ras=True)),
        (image(NOP, NOP, asm.jal(8), NOP, NOP, SWITCH), RecordOptions(begin=at(0))),
    ],
    ids=["another place", "no code", "a mode that is not recorded", "traps", "calls alone", "the program clears them"],
)
def test_where_it_is_not_certain_what_ran_since_recording_began(program: Image, options: RecordOptions) -> None:
    """What is said is what is said if nobody knows where that was."""
    decoded = decode(RECORD, program, options)
    assert lines(decoded) == [2] and said(decoded, EventKind.SYNC) == ["the oldest record"]
    assert not said(decoded, EventKind.LOSS)


def test_an_exception_leaves_its_instruction_out() -> None:
    code = image(asm.jal(8), NOP, NOP, asm.ECALL, NOP, NOP, MRET)
    decoded = decode(row((0, 2, JUMP), (3, 5, EXCEPTION), (6, 4, XRET)), code, RecordOptions(end=at(5)))
    assert lines(decoded) == [0, 2, 5, 6, 4]
    (trap,) = (event for event in decoded.history.events if event.kind is EventKind.TRAP)
    assert (trap.position, trap.text, trap.last_pc, trap.next_pc) == (2, "exception", at(3), at(5))


def test_an_interrupt_at_the_target_itself() -> None:
    decoded = decode(row((0, 2, JUMP), (2, 4, INTERRUPT), (5, 2, XRET)), image(asm.jal(8), *[NOP] * 4, MRET))
    assert lines(decoded) == [0, 4, 5]
    assert decoded.stretches[1].instructions == 0 and decoded.stretches[2].instructions == 2


PARTIAL = {
    "a trap from a mode that is not recorded": (
        row((0, 2, JUMP), (None, 4, INTERRUPT), (5, 2, XRET)),
        [0, GAP, 4, 5],
        ["interrupt in a mode that is not recorded"],
        "the place where the hart entered a mode that is not recorded is not known",
    ),
    "a trap return to one": (
        row((0, 4, JUMP), (5, None, XRET), (None, 4, EXCEPTION), (5, None, XRET)),
        [0, 4, 5, GAP, 4, 5],
        ["exception in a mode that is not recorded"],
        "the hart was in a mode that is not recorded",
    ),
    "an external trap": (
        row((0, 2, JUMP), (3, None, EXCEPTION), (0, 2, JUMP)),
        [0, 2, GAP, 0],
        ["exception into a mode that is not recorded"],
        "the hart was in a mode that is not recorded",
    ),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_partial_records(name: str) -> None:
    records, history, traps, why = PARTIAL[name]
    code = image(asm.jal(16 if name == "a trap return to one" else 8), NOP, NOP, asm.ECALL, NOP, MRET)
    decoded = decode(records, code, RecordOptions(hidden=True))
    assert lines(decoded) == history
    assert said(decoded, EventKind.TRAP) == traps
    gap = decoded.history.gap_at(history.index(GAP))
    assert gap.text == why and gap.kind is EventKind.TRACE_OFF
    assert why in [stretch.why for stretch in decoded.stretches]


def test_a_zero_is_an_address_where_the_mode_does_not_change() -> None:
    decoded = decode(
        [CtrRecord(at(0), None, ICALL), CtrRecord(None, at(0), EXCEPTION, offset=24)], image(asm.jalr(1, 6))
    )
    assert decoded.history.pc(0) == at(0)
    decoded = decode([CtrRecord(at(0), None, ICALL), CtrRecord(0, at(0), EXCEPTION, offset=24)], image(asm.jalr(1, 6)))
    assert lines(decoded) == [0] and decoded.stretches[1].complete


# Transfers that are not recorded


def test_a_branch_that_is_not_recorded() -> None:
    """Both ways lead to the next record: what ran before the branch is known, and the source of the record."""
    code = image(asm.jal(4), NOP, asm.beq(8), NOP, NOP, RET_CODE, NOP)
    options = RecordOptions(ALL - {TAKEN})
    decoded = decode(row((0, 1, JUMP), (5, 6, RET)), code, options)
    assert lines(decoded) == [0, 1, 2, GAP, 5]
    assert decoded.stretches[1].why == f"the direction of the branch at 0x{at(2):x} was not recorded"
    assert decoded.history.gap_at(3).next_pc == at(5)
    hidden = decode(row((0, 1, JUMP), (5, 6, RET)), code, RecordOptions(ALL - {TAKEN}, hidden=True))
    assert lines(hidden) == [0, GAP, 5]


def test_a_branch_one_way_of_which_would_have_left_a_record() -> None:
    code = image(asm.jal(4), asm.beq(12), NOP, RET_CODE, NOP, asm.jal(-20))
    for end, ran in ((3, [1, 2, 3]), (5, [1, 4, 5])):
        kind = RET if end == 3 else JUMP
        decoded = decode(row((0, 1, JUMP), (end, 0, kind)), code, RecordOptions(ALL - {TAKEN}))
        assert lines(decoded) == [0, *ran] and decoded.stretches[1].complete


def test_a_loop_of_any_number_of_rounds() -> None:
    code = image(asm.jal(4), NOP, asm.beq(-4), RET_CODE)
    decoded = decode(row((0, 1, JUMP), (3, 0, RET)), code, RecordOptions(ALL - {TAKEN}))
    assert lines(decoded) == [0, 1, 2, GAP, 3]
    interrupted = decode(row((0, 1, JUMP), (2, 0, INTERRUPT)), code, RecordOptions(ALL - {TAKEN}))
    assert lines(interrupted) == [0, 1, GAP]
    assert interrupted.stretches[1].why == f"the number of passes through 0x{at(2):x} was not recorded"


def test_a_return_that_is_not_recorded_goes_where_its_register_says() -> None:
    code = image(asm.jal(12, 1), NOP, asm.jal(-8), NOP, RET_CODE)
    options = RecordOptions(ALL - {RET})
    decoded = decode(row((0, 3, CALL), (2, 0, JUMP)), code, options)
    assert lines(decoded) == [0, 3, 4, 1, 2]
    unknown = decode(row((2, 3, JUMP), (2, 3, JUMP)), image(asm.jal(12, 1), NOP, asm.jal(4), NOP, RET_CODE), options)
    assert lines(unknown) == [2, 3, 4, GAP, 2]
    assert unknown.stretches[1].why == f"the target of the function return at 0x{at(4):x} was not recorded"


def test_a_return_address_that_was_saved() -> None:
    """f saves ra and calls g; both returns are not recorded."""
    code = image(asm.jal(8, 1), asm.jal(-4), PUSH, SAVE, asm.jal(20, 1), LOAD, POP, RET_CODE, NOP, RET_CODE)
    records = row((0, 2, CALL), (4, 9, CALL), (1, 0, JUMP))
    decoded = decode(records, code, RecordOptions(ALL - {RET}))
    assert lines(decoded) == [0, 2, 3, 4, 9, 5, 6, 7, 1]
    from_elsewhere = bytes.fromhex("83b00500")  # ld ra, 0(a1): a switch of stacks
    code = image(asm.jal(8, 1), asm.jal(-4), PUSH, SAVE, asm.jal(20, 1), from_elsewhere, POP, RET_CODE, NOP, RET_CODE)
    decoded = decode(records, code, RecordOptions(ALL - {RET}))
    assert lines(decoded) == [0, 2, 3, 4, 9, 5, 6, 7, GAP, 1]


def test_a_return_address_that_was_overwritten() -> None:
    """The records tell where the return went, whatever was saved: nothing is wrong with the program."""
    code = image(asm.jal(8, 1), NOP, PUSH, SAVE, NOP, LOAD, POP, RET_CODE)
    decoded = decode(row((0, 2, CALL), (7, 9, RET)), code)
    assert lines(decoded) == [0, 2, 3, 4, 5, 6, 7] and not decoded.history.gaps


def test_where_a_return_went_tells_which_way_led_to_it() -> None:
    code = image(asm.jal(8, 1), NOP, asm.beq(12), NOP, asm.jal(4, 1), RET_CODE)
    options = RecordOptions(ALL - {TAKEN, CALL})
    assert lines(decode(row((0, 2, CALL), (5, 1, RET)), code, options)) == [0, 2, 5]
    assert lines(decode(row((0, 2, CALL), (5, 5, RET)), code, options)) == [0, 2, 3, 4, 5]
    assert lines(decode(row((0, 2, CALL), (5, 9, RET)), code, options)) == [0, 2, GAP, 5]


def test_an_interrupt_at_a_jump_that_may_have_been_made_before() -> None:
    decoded = decode(row((0, 1, JUMP), (2, 0, INTERRUPT)), image(asm.jal(4), NOP, RET_CODE), RecordOptions(ALL - {RET}))
    assert lines(decoded) == [0, 1, GAP]


def test_a_jump_to_a_constant() -> None:
    code = image(asm.jal(4), asm.auipc(6, 0), asm.jalr(0, 6, 16), NOP, NOP, RET_CODE)
    decoded = decode(row((0, 1, JUMP), (5, 0, RET)), code, RecordOptions(ALL - {IJUMP}))
    assert lines(decoded) == [0, 1, 2, 5]


@pytest.mark.parametrize(
    "options", [RecordOptions(hidden=True), RecordOptions(ALL - {EXCEPTION})], ids=["hidden", "filtered"]
)
def test_an_exception_that_is_not_recorded(options: RecordOptions) -> None:
    code = image(asm.jal(4), NOP, asm.ECALL, NOP, RET_CODE)
    decoded = decode(row((0, 1, JUMP), (4, 0, RET)), code, options)
    assert lines(decoded) == [0, GAP, 4]
    assert decoded.stretches[1].why == f"the effect of the exception at 0x{at(2):x} was not recorded"
    assert len(said(decoded, EventKind.NOTE)) == 1


BEFORE, AFTER = (0x01F0_1013).to_bytes(4, "little"), (0x4070_5013).to_bytes(4, "little")  # slli x0,x0,31; srai x0,x0,7


def test_the_ebreak_of_a_semihosting_call() -> None:
    """Served, it leaves no record; where nobody serves it, that of an exception."""
    code = image(asm.jal(8), NOP, BEFORE, asm.EBREAK, AFTER, asm.jal(8), NOP, NOP, MRET)
    served = decode(row((0, 2, JUMP), (5, 7, JUMP)), code, RecordOptions(end=at(8)))
    assert lines(served) == [0, 2, 3, 4, 5, 7] and not served.history.gaps
    trapped = decode(row((0, 2, JUMP), (3, 7, EXCEPTION), (8, 4, XRET)), code, RecordOptions(end=at(5)))
    assert lines(trapped) == [0, 2, 7, 8, 4] and not trapped.history.gaps


def test_an_ebreak_that_halted() -> None:
    decoded = decode(row((0, 1, JUMP), (4, 0, RET)), image(asm.jal(4), NOP, asm.EBREAK, NOP, RET_CODE))
    assert lines(decoded) == [0, 1, GAP, 4] and not said(decoded, EventKind.MISMATCH)


def test_a_trap_that_left_no_record_is_no_contradiction() -> None:
    """The next record is in code the last one does not lead to: a handler."""
    code = image(asm.jal(4), NOP, RET_CODE, NOP, asm.jal(-16, 1))
    for options in (RecordOptions(hidden=True), RecordOptions(ALL - {INTERRUPT})):
        decoded = decode(row((0, 1, JUMP), (4, 0, CALL)), code, options)
        assert lines(decoded) == [0, GAP, 4]
        why = f"the code does not lead to 0x{at(4):x}; the transfer that did was not recorded"
        assert decoded.stretches[1].why == why
        assert not said(decoded, EventKind.MISMATCH)


def test_the_program_changes_what_is_recorded() -> None:
    code = image(asm.jal(4), NOP, SWITCH, NOP, RET_CODE)
    decoded = decode(row((0, 1, JUMP), (4, 0, RET)), code)
    assert lines(decoded) == [0, GAP, 4] and not said(decoded, EventKind.MISMATCH)
    before = decode(row((0, 1, JUMP), (1, 4, INTERRUPT)), code)
    assert lines(before) == [0] and before.stretches[1].complete


def test_what_was_recorded_before_the_program_changed_it_is_not_known() -> None:
    """Taken branches may have left no record then: what is behind one is not certain, as it is now."""
    code = image(asm.jal(4), asm.beq(8), NOP, NOP, asm.jal(4), NOP, SWITCH, asm.jal(4), asm.beq(8), NOP, NOP, RET_CODE)
    records = row((0, 1, JUMP), (4, 5, JUMP), (7, 8, JUMP), (11, 0, RET))
    decoded = decode(records, code)
    assert lines(decoded) == [0, GAP, 4, GAP, 7, 8, 9, 10, 11]
    assert decoded.stretches[1].why == f"the direction of the branch at 0x{at(1):x} was not recorded"
    since = decode(records[2:], code)
    assert lines(since) == [7, 8, 9, 10, 11]


# Contradictions


def _text(number: int, why: str) -> str:
    return f"trace does not match the program at 0x{at(number):x}: {why}"


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (row((0, 1, JUMP), (2, 0, CALL)),
         _text(2, "the record says direct call, but the instruction there is a branch")),
        (row((0, 1, JUMP), (1, 0, RET)),
         _text(1, "the record says function return, but the instruction there is a plain instruction")),
        (row((0, 1, JUMP), (2, 9, TAKEN)), _text(2, f"the taken branch there leads to 0x{at(4):x}, not to")),
        (row((0, 1, JUMP), (6, 0, RET)), _text(4, "there is no record of the direct jump")),
        (row((6, 3, RET), (1, 6, INTERRUPT)), _text(4, "there is no record of the direct jump")),
        (row((0, 9, JUMP), (1, 0, RET)), _text(0, f"the direct jump there leads to 0x{at(1):x}, not to 0x{at(9):x}")),
        (row((0, 1, JUMP), (4, 0, JUMP), (9, 0, INTERRUPT)), _text(0, "there is no record of the direct jump")),
    ],
    ids=["type", "plain", "target", "in between", "behind", "oldest", "in between, later"],
)  # fmt: skip
def test_a_wrong_program_is_named(records: list[CtrRecord], why: str) -> None:
    code = image(asm.jal(4), NOP, asm.beq(8), NOP, asm.jal(-16), NOP, RET_CODE, NOP, NOP, NOP)
    decoded = decode(records, code)
    assert said(decoded, EventKind.MISMATCH)[0].startswith(why)


def test_code_that_is_not_there() -> None:
    code = image(asm.jal(4), NOP)
    decoded = decode(row((0, 1, JUMP), (9, 0, RET)), code)
    assert lines(decoded) == [0, 1, GAP]  # what ran where there is no code nobody can say
    assert "there is no code" in decoded.stretches[1].why and said(decoded, EventKind.MISMATCH)
    fault = decode(row((0, 9, JUMP), (9, 0, EXCEPTION)), image(asm.jal(36)))
    assert lines(fault) == [0] and fault.stretches[1].complete


def test_a_pc_that_the_user_has_set_is_not_the_programs_fault() -> None:
    decoded = decode(row((0, 2, JUMP)), image(asm.jal(8), NOP, NOP, asm.jal(-12)), RecordOptions(end=at(1)))
    assert lines(decoded) == [0, GAP] and not said(decoded, EventKind.MISMATCH)
    assert decoded.stretches[-1].why == f"the code does not lead to 0x{at(1):x}; the transfer that did was not recorded"


def test_more_ways_than_can_be_looked_at() -> None:
    """A ladder of branches, each rung of which may have been passed: 2**2500 ways."""
    code = image(asm.jal(4), *[asm.beq(8), NOP] * 2500, RET_CODE)
    decoded = decode(row((0, 1, JUMP), (5001, 0, RET)), code, RecordOptions(ALL - {TAKEN}))
    assert lines(decoded) == [0, 1, GAP, 5001]
    calls = image(asm.jal(4), *[asm.jal(8, 5), asm.jal(8, 1)] * 2500, RET_CODE)
    decoded = decode(row((0, 1, JUMP), (5001, 0, RET)), calls, RecordOptions(ALL - {CALL, JUMP}))
    assert lines(decoded)[0] == 0 and lines(decoded)[-1] == 5001


# Harts that say less, or more


def test_a_not_taken_branch_goes_on_behind_it_whatever_its_target_says() -> None:
    code = image(asm.jal(4), asm.beq(-4), NOP, RET_CODE)
    for target in (0, 2, 9):
        decoded = decode(row((0, 1, JUMP), (1, target, NOT_TAKEN), (3, 0, RET)), code, RecordOptions(ALL | {NOT_TAKEN}))
        assert lines(decoded) == [0, 1, 2, 3]


def test_harts_without_types() -> None:
    code = image(asm.jal(4), asm.beq(8), NOP, asm.jal(4), RET_CODE, NOP, NOP, MRET)
    none = IType.NONE
    transfers = row((0, 1, none), (1, 3, none), (3, 4, none), (4, 5, none), (6, 7, none), (7, 6, none))
    decoded = decode(transfers, code)
    assert lines(decoded) == [0, 1, 3, 4, 5, 7]
    assert said(decoded, EventKind.TRAP) == ["exception or interrupt"]
    assert not decoded.history.gaps


def test_times_of_the_newest_row_of_counts() -> None:
    code = image(asm.jal(4), asm.jal(-4))
    cycles = [7, None, 5, 10, 3]
    records = [CtrRecord(at(i % 2), at(1 - i % 2), JUMP, cycles=count, offset=24 * i) for i, count in enumerate(cycles)]
    decoded = decode(records, code)
    times = [decoded.history.time_at(i) for i in range(len(decoded.history))]
    assert decoded.stretches[1].why == "recording may have been off before this record: it has no cycles (CCV)"
    assert lines(decoded) == [0, GAP, 1, 0, 1, 0]
    assert times == [None, None, None, 0, 5, 15]
    saturated = [record._replace(saturated=i == 3, cycles=1) for i, record in enumerate(records)]
    assert decode(saturated, code).history.time_at(3) is None


def test_times_that_are_rounded_down_are_said_to_be() -> None:
    code = image(asm.jal(4), asm.jal(-4))
    records = [CtrRecord(at(i), at(1 - i), JUMP, cycles=8192 * i, offset=24 * i) for i in range(2)]
    assert said(decode(records, code), EventKind.NOTE) == [
        "times are lower bounds: records round counts of 8192 or more cycles down"
    ]


# RAS emulation


def test_the_calls_under_way() -> None:
    """main calls f, which calls g; before that it called h, which has returned."""
    f, g, h = [NOP, asm.jal(8, 1), RET_CODE], [NOP, NOP, RET_CODE], [asm.beq(8), RET_CODE, RET_CODE]
    code = image(asm.jal(16, 1), asm.jal(24, 1), NOP, NOP, *h, *f, *g)
    decoded = decode(row((1, 7, CALL), (8, 10, CALL)), code, RecordOptions(ras=True, end=at(11)))
    assert lines(decoded) == [1, 7, 8, 10]
    over = decode(
        row((1, 7, CALL), (8, 10, CALL)),
        image(NOP, asm.jal(24, 1), *[NOP] * 5, asm.jal(-8, 1), asm.jal(8, 1), RET_CODE),
        RecordOptions(ras=True),
    )
    assert lines(over) == [1, GAP, 8]


def test_no_records() -> None:
    decoded = decode([], image(NOP), RecordOptions(end=BASE))
    assert lines(decoded) == [] and [stretch.complete for stretch in decoded.stretches] == [False]
    assert decode_records([], image(), RecordOptions(), total=384, idle=384).history.accounting == (384, 0, 384, 0)


def test_rows_of_records() -> None:
    record = CtrRecord(at(0), None, XRET, True, 12, True)
    columns = "Record source=0x80000000 target=? TYPE=3 MISP=1 cycles=12 saturated=1"
    assert record_text(record) == f"{columns} # trap return, mispredicted"
    record = CtrRecord(at(0), at(8), XRET)
    assert record_text(record) == "Record source=0x80000000 target=0x80000020 TYPE=3 MISP=0 # trap return"
    assert set(TYPE_NAMES) == set(IType)


def test_behind_a_trap_return_no_register_is_known() -> None:
    """Another task may run then: a return that is not recorded is not followed."""
    code = image(asm.jal(12, 1), NOP, asm.jal(-8), NOP, MRET, NOP, RET_CODE)
    decoded = decode(row((0, 3, CALL), (4, 5, XRET), (2, 0, JUMP)), code, RecordOptions(ALL - {RET}))
    assert lines(decoded) == [0, 3, 4, 5, 6, GAP, 2]


# Records that no hart writes, or that are not of this program


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (CtrRecord(at(1), at(3), IType.NONE, reserved=6), "a record of type 6"),
        (CtrRecord(at(1), at(3), IType.NONE, reserved=7), "a record of type 7"),
        (CtrRecord(at(1) | 1 << 60, at(3), JUMP), "a record whose source is 0x1000000080000004"),
        (CtrRecord(at(1), 0x7FFF_FFFF_0000_0000, JUMP), "a record whose target is 0x7fffffff00000000"),
    ],
)
def test_what_no_hart_records_is_a_gap(noise: CtrRecord, words: str) -> None:
    """1.0, "Control Transfer Type Definitions": 6 and 7 are reserved; addresses have 57 bits at most, sign-extended."""
    code = image(asm.jal(4), asm.jal(8), NOP, asm.jal(8), NOP, asm.jal(-20))
    before, after = row((0, 1, JUMP)), row((3, 5, JUMP), (5, 0, JUMP))
    decoded = decode([*before, noise._replace(offset=24), *(one._replace(offset=48) for one in after)], code)
    assert lines(decoded) == [0, GAP, 3, 5]
    (loss,) = [event for event in decoded.history.events if event.kind is EventKind.LOSS]
    assert loss.text == f"{words}: this is impossible; what was reported with it is ignored" and loss.offset == 24
    assert [stretch.complete for stretch in decoded.stretches][1:3] == [False, False]
    first = decode([noise, *after], code)
    assert lines(first) == [3, 5] and said(first, EventKind.LOSS)
    assert lines(decode([*before, noise], code)) == [0, GAP]
    for address in (0xFFFF_FFFF_8000_0000, 0x00FF_FFFF_FFFF_F000):
        assert impossible(CtrRecord(address, address, JUMP), 64) == ""
    assert impossible(CtrRecord(1 << 31, 1 << 31, JUMP), 32) == ""


@pytest.mark.parametrize("source", [1000, 4])
def test_a_source_that_the_program_does_not_have_is_no_row(source: int) -> None:
    """There is no code, or an instruction that is not a jump: that it ran there nobody can say."""
    code = image(asm.jal(4), NOP, asm.jal(8), NOP, NOP, asm.jal(-20))
    decoded = decode(row((0, 1, JUMP), (source, 5, JUMP), (5, 0, JUMP)), code)
    assert at(source) not in list(decoded.history.pcs())
    assert lines(decoded) == [0, GAP, 5]
    assert said(decoded, EventKind.MISMATCH)
    direct = decode(row((0, source, JUMP), (source, 5, JUMP), (5, 0, JUMP)), image(asm.jal(4 * source), *[NOP] * 4))
    assert lines(direct)[:2] == [0, GAP]
