"""What cannot be, and what the damage beside it speaks against, is a gap: no row, and no trap."""

import random
from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.history.events import EventKind, Loss, LossCause, NoteCause
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import Element, Group, Instr
from tests.decode.tandem.corpus import decoded, parameters_of, program_of, trace_bytes
from tests.decode.tandem.groups import NOP, RV64, Line, csr, pc, priv, x
from tests.helpers.amounts import LONG, some_of

START = 0x8000_0000


def with_one(*elements: Element, instr: Instr = NOP, to: int | None = None) -> DecodedTandem:
    """Five groups, then one with these elements, then five that go on behind it."""
    line = Line(START)
    for _ in range(5):
        line(x(5, 1))
    line(*elements, instr=instr, to=to)
    line.pc = START + 24
    for _ in range(5):
        line(x(6, 2))
    return line.decoded()


def rows(tandem: DecodedTandem) -> list[int]:
    return [one if one == GAP else one - START for one in tandem.history.pcs()]


@pytest.mark.parametrize(
    ("elements", "instr", "to", "words"),
    [
        ((priv(2),), NOP, None, "privilege mode 2"),
        ((priv(4),), NOP, None, "privilege mode 4"),
        ((), NOP, START + 25, "a pc of 0x80000019"),
        ((), Instr(0x67, 4), START + 25, "a pc of 0x80000019"),  # jr x0: it may go anywhere, but not there
        ((), Instr(0x0012, 4), None, "the instruction 0x12 of 32 bits"),
        ((), Instr(0x0013, 2), None, "the instruction 0x13 of 16 bits"),
        ((csr(0x342, 64), csr(0x341, START + 20)), NOP, START, "trap cause 0x40"),
        ((csr(0x342, 1 << 63 | 1 << 40), csr(0x341, START + 20)), NOP, START, "trap cause 0x10000000000"),
    ],
)
def test_what_cannot_be(elements: Sequence[Element], instr: Instr, to: int | None, words: str) -> None:
    """Privileged Architecture, "Privilege Levels", "Machine Cause"; ISA, instruction lengths, IALIGN."""
    tandem = with_one(*elements, instr=instr, to=to)
    assert rows(tandem) == [0, 4, 8, 12, 16, GAP, 24, 28, 32, 36, 40]
    assert not any(event.kind is EventKind.TRAP for event in tandem.history.events)
    (loss,) = [event for event in tandem.history.events if event.kind is EventKind.LOSS]
    assert loss.fact == Loss(LossCause.IMPOSSIBLE, (words,))
    assert loss.text == f"{words}: this is impossible; what was reported with it is ignored"
    assert loss.offset == tandem.trace.offsets[5] and (loss.last_pc, loss.next_pc) == (START + 16, START + 24)
    assert tandem.after(5).csr(0x342) is None and tandem.after(5).x(5) is None


@pytest.mark.parametrize("mode", [0, 1, 3])
def test_what_can_be(mode: int) -> None:
    """Every mode there is, and the last cause that is not reserved."""
    tandem = with_one(priv(mode))
    assert rows(tandem) == [4 * n for n in range(11)]
    trapped = with_one(csr(0x342, 63), csr(0x341, START + 20), priv(3), to=START + 24)
    assert [event.text for event in trapped.history.events if event.kind is EventKind.TRAP] == ["exception 63"]


def test_a_damaged_pc_is_no_place() -> None:
    """What follows goes on where the pc was: the address in between is the one that is wrong."""
    tandem = with_one(to=START + 0x1000)
    assert rows(tandem) == [0, 4, 8, 12, 16, GAP, 24, 28, 32, 36, 40]
    missing = Line(START)
    for _ in range(5):
        missing()
    missing.pc = START + 0x1000
    for _ in range(5):
        missing()
    assert rows(missing.decoded()) == [0, 4, 8, 12, 16, GAP, *range(0x1000, 0x1014, 4)]


def test_where_the_first_instruction_behind_a_loss_was_is_not_where_the_hart_was_before() -> None:
    """A branch alone does not tell its address: it may have been taken."""
    line = Line(START)
    for _ in range(5):
        line()
    line(instr=Instr(0x00000463, 4), to=START + 28)  # beq x0, x0, 8
    for _ in range(5):
        line()
    raw = encode(line.groups, RV64)
    offsets = line.decoded().trace.offsets
    lost = decode(raw[: offsets[4]] + b"\xee" * 7 + raw[offsets[5] :], Image(64), RV64)
    assert rows(lost) == [0, 4, 8, 12, GAP, 28, 32, 36, 40, 44]


def test_an_instruction_outside_of_a_group_did_not_run_there() -> None:
    """Without its begin group a group falls apart: the pc comes before the instruction then."""
    line = Line(START)
    for number in range(10):
        line(x(5, number))
    raw, offsets = encode(line.groups, RV64), line.decoded().trace.offsets
    tandem = decode(raw[: offsets[5]] + raw[offsets[5] + 1 :], Image(64), RV64)
    assert rows(tandem) == [0, 4, 8, 12, 16, GAP, 24, 28, 32, 36]
    causes = [event.fact.cause for event in tandem.history.events if isinstance(event.fact, Loss)]
    assert causes[0] is LossCause.NOT_BELIEVED
    notes = [getattr(event.fact, "cause", None) for event in tandem.history.events]
    assert NoteCause.FLAW in notes


NAMES = ("flute_rv64ui-p-add", "piccolo_rv32mi-p-csr", "flute_rv64uc-p-rvc", "flute_rv64si-p-scall", "flute_rv64-irq")


def damaged(random_: random.Random, data: bytes) -> bytes:
    """One byte lost, one that comes twice, or one bit flipped."""
    at = random_.randrange(len(data))
    return random_.choice(
        [
            data[:at] + data[at + 1 :],
            data[: at + 1] + data[at:],
            data[:at] + bytes([data[at] ^ 1 << random_.randrange(8)]) + data[at + 1 :],
        ]
    )


def listed_wrong(found: Sequence[int], truth: list[int]) -> bool:
    """Whether something is listed that did not run: pieces between gaps must have run in one piece, in this order."""
    at, pieces = 0, [[]]  # type: tuple[int, list[list[int]]]
    for one in found:
        if one == GAP:
            pieces.append([])
        else:
            pieces[-1].append(one)
    for piece in pieces:
        place = next((i for i in range(at, len(truth) + 1) if truth[i : i + len(piece)] == piece), None)
        if place is None:
            return True
        at = place + len(piece)
    return False


_DAMAGES = 100 if LONG else 25


@pytest.mark.parametrize("name", NAMES)
def test_of_damaged_traces_at_most_one_in_a_hundred_lists_what_did_not_run(name: str) -> None:
    random_, data, program = random.Random(f"noise {name}"), trace_bytes(name), program_of(name)
    truth = list(decoded(name).history.pcs())
    wrong = lost = 0
    for _ in range(_DAMAGES):
        history = decode(damaged(random_, data), program, parameters_of(name)).history
        wrong += listed_wrong(list(history.pcs()), truth)
        lost += max(len(truth) - history.instructions, 0)
    assert wrong <= 1
    assert lost <= _DAMAGES * 3  # rows: most damages cost one group or two


def test_a_wrong_program_costs_no_rows() -> None:
    """Where the program differs anyhow, that an instruction is another one speaks against nobody."""
    name, random_ = "flute_rv64ui-p-add", random.Random(5)
    data, other, parameters = trace_bytes(name), program_of("flute_rv64-irq"), parameters_of(name)
    for _ in range(some_of(30)):
        noise = damaged(random_, data)
        right, wrong = (decode(noise, one, parameters).history for one in (program_of(name), other))
        assert wrong.instructions >= right.instructions - 2


def test_the_state_of_a_group_nobody_believes_has_no_place() -> None:
    tandem = with_one(to=START + 0x1000)
    assert not tandem.index.retired[5]
    assert [one.position for one in tandem.history.accesses] == []
    assert isinstance(tandem.trace.group(5), Group) and pc(START + 0x1000) in tandem.trace.group(5).elements
