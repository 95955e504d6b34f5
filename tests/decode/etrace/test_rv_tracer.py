"""What rv_tracer sends and the document does not: synchronizations at branches that were reported before, and branch
maps without the number of branches.

Facts: its RTL (pulp-platform/rv_tracer, SHL-0.51). `te_branch_map` fills the map with 0 when it is flushed and sets
one bit for each branch, 0 for taken, that of the instruction reported included. `te_packet_emitter` sends 0 in place
of 16 to 30 branches if no uninferable discontinuity led to the address, and with 31 no address. `te_priority` sends
format 1 first where a synchronization is due and the map is not empty, then format 3 for the same instruction.
Addresses are written down here from the programs, which are a few instructions long.
"""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.items import Itemizer
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.wording import Wording
from rvtrace_gdb.decode.history.events import GAP_KINDS, EventKind, Loss, LossCause
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.etrace.packet.test_packet import low_first
from tests.decode.etrace.packets import write
from tests.decode.etrace.vectors import framed
from tests.decode.etrace.worked_examples import branches as standard_branches
from tests.decode.etrace.worked_examples import start as standard_start
from tests.decode.ntrace.messages import image_of

_DATA = Path(__file__).resolve().parents[2] / "data" / "etrace-rv_tracer"
N, T = "1", "0"
_PARAMETERS = Parameters(**{name: told for name, told in DEFAULTS[Dialect.PULP].items() if name in vars(Parameters())})  # type: ignore[arg-type]
PULP = Options(_PARAMETERS, dialect=Dialect.PULP)


def packet(text: str) -> bytes:
    """Bits in the order of transmission, and 0 up to a whole byte."""
    text += "0" * (-len(text) % 8)
    return bytes(int(text[i : i + 8][::-1], 2) for i in range(0, len(text), 8))


def start(address: int, branch: str = "1") -> bytes:
    """Format 3.0 in M-mode; addresses here fit two bytes and their sign."""
    return packet("11" + "00" + branch + "11" + low_first(address, 17))


def branches(outcomes: str, difference: int | None = None, *, sent: bool = True, updiscon: bool = False) -> bytes:
    """Format 1. *sent*: whether branches tells their number, as it does not for 16 to 30 of them as a rule."""
    size = next(size for size in (1, 3, 7, 15, 31) if len(outcomes) <= size)
    text = "10" + low_first(len(outcomes) if sent else 0, 5) + outcomes.ljust(size, "0")
    if difference is None:
        return packet(text)
    flag = str(int(updiscon))
    return packet(text + low_first(difference, 9) + "0" + flag + flag)


def decoded(image: Image, *packets: bytes) -> History:
    return decode(framed(packets), image, PULP, Encapsulation())


def ran(history: History) -> list[str]:
    return ["gap" if pc == GAP else hex(pc) for pc in history.pcs()]


def hexes(*runs: list[int] | str) -> list[str]:
    return [text for run in runs for text in ([run] if isinstance(run, str) else map(hex, run))]


def losses(history: History) -> list[Loss]:
    return [event.fact for event in history.events if event.kind in GAP_KINDS and isinstance(event.fact, Loss)]


# Outcomes at repeated synchronizations. Two branches, each over one instruction:
#   1000 nop; 1002 beq 1008; 1006 nop; 1008 nop; 100a beq 1010; 100e nop; 1010 nop; 1012 jr
TWICE = image_of(
    (0x1000, [asm.C_NOP, asm.beq(6), asm.C_NOP, asm.C_NOP, asm.beq(6), asm.C_NOP, asm.C_NOP, asm.c_jr(10)]), xlen=64
)


@pytest.mark.parametrize(("first", "between"), [(T, []), (N, [0x1006])], ids=["taken", "not taken"])
@pytest.mark.parametrize("said", ["0", "1"])
def test_the_outcome_at_a_repeated_synchronization_is_the_one_in_the_map(
    first: str, between: list[int], said: str
) -> None:
    """Whatever the branch bit says: format 1 up to the branch, then format 3 there, then on."""
    history = decoded(
        TWICE, start(0x1000), branches(first, 2), start(0x1002, said), branches(T, 0x1012 - 0x1002), start(0x1012)
    )
    assert ran(history) == hexes([0x1000, 0x1002, *between, 0x1008, 0x100A, 0x1010, 0x1012])
    assert not losses(history)


@pytest.mark.parametrize("said", ["0", "1"])
def test_a_branch_to_itself_is_not_run_again_by_a_repeated_synchronization(said: str) -> None:
    """1000 nop; 1002 beq 1002: with another round the map would not have been empty, and format 1 have come first."""
    image = image_of((0x1000, [asm.C_NOP, asm.beq(0), asm.C_NOP, asm.C_NOP]), xlen=64)
    packets = [start(0x1000), branches(T + T, 2), start(0x1002, said), branches(N, 0x1008 - 0x1002)]
    history = decoded(image, *packets)
    assert ran(history) == hexes([0x1000, 0x1002, 0x1002, 0x1002, 0x1006, 0x1008])
    assert not losses(history)


@pytest.mark.parametrize(("said", "after"), [("0", [0x1008, 0x100A]), ("1", [0x1006, 0x1008, 0x100A])])
def test_the_branch_bit_counts_where_no_outcome_is_known(said: str, after: list[int]) -> None:
    history = decoded(TWICE, start(0x1002, said), branches(T, 0x100A - 0x1002))
    assert ran(history) == hexes([0x1002, *after])


@pytest.mark.parametrize(("said", "after"), [(0, [0x1008, 0x100A]), (1, [0x1006, 0x1008, 0x100A])])
def test_in_the_document_the_branch_bit_is_the_outcome(said: int, after: list[int]) -> None:
    """Its encoders tell no instruction twice, so nothing else is known of the one that is synchronized at."""
    parameters, modes = Parameters(iaddress_width=64), Modes()
    fields = [
        standard_start(0x1000), standard_branches(1 - said, to=2), standard_start(0x1002, branch=said),
        standard_branches(0, to=8),
    ]  # fmt: skip
    payloads = [write(one, parameters, modes) for one in fields]
    history = decode(framed(payloads), TWICE, Options(parameters), Encapsulation())
    assert ran(history) == hexes([0x1000, 0x1002, *after])


# Maps without the number of branches. A loop of two branches, which goes on where the second one is taken:
#   1000 nop; 1002 beq; 1006 nop; 1008 nop; 100a beq 1000; 100e nop; 1010 jr
def loop(first: int, second: bytes = asm.C_NOP) -> Image:
    """*first*: how far the first branch leads; *second*: the instruction after the second one."""
    code = [asm.C_NOP, asm.beq(first), asm.C_NOP, asm.C_NOP, asm.beq(-10), second, asm.c_jr(10)]
    return image_of((0x1000, code), xlen=64)


LEAVES, SKIPS = loop(0x1010 - 0x1002), loop(6)
ROUND = [0x1000, 0x1002, 0x1006, 0x1008, 0x100A]
"""With the first branch not taken."""
END = [0x100A, 0x100E, 0x1010]


@pytest.mark.parametrize("count", [17, 19, 29])
def test_a_number_that_was_not_sent_is_found_where_only_one_leads_to_the_address(count: int) -> None:
    """Up to 1008, in an odd number of branches. Unused bits are 0: one round more and the first branch left the loop,
    for a jr, behind which the number is sent; one less and outcomes that are 1 would be left.
    """
    map_of_it = (N + T) * (count // 2) + N
    packets = [start(0x1000), branches(map_of_it, 8, sent=False), start(0x1008), branches(N, 8)]
    history = decoded(LEAVES, *packets)
    assert ran(history) == hexes(ROUND * (count // 2), ROUND[:-1], END)
    assert not losses(history)
    assert history.accounting.skipped == 0


def test_with_30_branches_the_last_bit_says_the_number() -> None:
    """Up to the second branch, which is not taken: the 30th outcome is 1. Then it is not synchronized at again."""
    map_of_it = (T + T) * 14 + T + N
    history = decoded(SKIPS, start(0x1000), branches(map_of_it, 0xA, sent=False), start(0x1010))
    taken = [0x1000, 0x1002, 0x1008, 0x100A]
    assert ran(history) == hexes(taken * 15, [0x100E, 0x1010])
    assert not losses(history)


def test_several_numbers_are_a_gap_that_says_which() -> None:
    """Each round more of taken branches leads to 1008 again: what ran before it, the first 17 branches tell."""
    packets = [start(0x1000), branches((N + T) * 8 + N, 8, sent=False), start(0x1008), branches(N, 8)]
    history = decoded(SKIPS, *packets)
    assert ran(history) == hexes(ROUND * 8, ROUND[:-2], "gap", [0x1008], END)
    assert losses(history) == [Loss(LossCause.COUNT_UNKNOWN, ("te_inst format 1", 0x1008, *range(17, 30, 2)))]
    (event,) = (event for event in history.events if event.kind is EventKind.LOSS)
    assert event.text == (
        "te_inst format 1 does not say how many branches lead to 0x1008:"
        " 17 or 19 or 21 or 23 or 25 or 27 or 29 are possible"
    )
    assert history.accounting.skipped == 0


def test_the_outcome_at_the_address_is_known_where_all_numbers_agree() -> None:
    """Up to the second branch, which is taken with any even number of branches from 16 on, so 1000 is next."""
    packets = [start(0x1000), branches((N + T) * 8, 0xA, sent=False), start(0x100A), branches(T + N, 0x10 - 0xA)]
    history = decoded(SKIPS, *packets)
    assert ran(history) == hexes(ROUND * 7, ROUND[:-1], "gap", [0x100A, 0x1000, 0x1002, 0x1008], END)
    assert losses(history) == [Loss(LossCause.COUNT_UNKNOWN, ("te_inst format 1", 0x100A, *range(16, 31, 2)))]


def test_the_outcome_at_the_address_is_not_known_where_numbers_differ_in_it() -> None:
    """The second branch leads back either way: not taken it was as the 18th branch, taken as any later one. So what
    comes is not decoded up to a synchronization.
    """
    image = loop(6, asm.c_j(0x1000 - 0x100E))
    map_of_it = (T + T) * 8 + T + N
    history = decoded(
        image, start(0x1000), branches(map_of_it, 0xA, sent=False), branches(T, -2), start(0x1008), branches(T, 2)
    )
    taken = [0x1000, 0x1002, 0x1008, 0x100A]
    assert ran(history) == hexes(taken * 8, taken[:-1], "gap", [0x1008, 0x100A])
    assert losses(history) == [Loss(LossCause.COUNT_UNKNOWN, ("te_inst format 1", 0x100A, *range(18, 31, 2)))]


def test_no_number_is_a_mismatch() -> None:
    """100e is behind the second branch not taken, and the map has 0 there whatever its length."""
    history = decoded(LEAVES, start(0x1000), branches((N + T) * 8 + N, 0xE, sent=False), start(0x1010))
    (loss,) = losses(history)
    assert loss.cause is LossCause.MISMATCH
    assert "no number of branches from 17 to 30 leads to 0x100e" in str(loss.detail[2])
    assert ran(history)[-2:] == ["gap", "0x1010"]


def test_words_of_a_map_without_the_number() -> None:
    itemizer = Itemizer(PULP, Encapsulation(), 64)
    data = framed([start(0x1000), branches((N + T) * 8 + N, 8, sent=False)])
    _, item = [*itemizer.feed(data), *itemizer.finish()]
    assert Wording(PULP).text(item) == (
        "te_inst format=1 branches=0 branch_map=0x15555 address=0x8 addr=0x1008 map=NTNTNTNTNTNTNTNTN.."
        " # 17 to 30 branches: their number was not sent"
    )


@pytest.mark.parametrize(("difference", "resumed"), [(8, [0x1008, 0x100A, 0x1000]), (0xA, [0x1000])])
def test_behind_missing_code_a_map_of_unknown_length_tells_the_address_and_not_the_outcome_there(
    difference: int, resumed: list[int]
) -> None:
    """0ffe jumps where no code is. Decoding goes on at 1008; at the branch at 100a it cannot: at the next address."""
    image = loop(6)
    image.add_code(0xFFE, asm.c_j(0x100))
    packets = [start(0xFFE), branches((N + T) * 8 + N, difference + 2, sent=False)]
    history = decoded(image, *packets, branches(T, 0x1000 - 0xFFE - difference - 2))
    assert ran(history) == hexes([0xFFE], "gap", resumed)


def test_capture_gpios_all() -> None:
    """All of it (tests/data/etrace-rv_tracer), by what the program says of itself: main sets bits of the pads one after
    another, and polls each. Its loops have constant bounds, found in the listing, so how often they go round is known.
    """
    packets, code = (gzip.decompress((_DATA / f"gpios_all.{name}.bin.gz").read_bytes()) for name in ("packets", "code"))
    image = Image(64)
    image.add_code(0x8000_0000, code)
    options = Options(_PARAMETERS, support=SupportLayout.PULP, dialect=Dialect.PULP)
    history = decode(packets, image, options, Encapsulation("pulp"))
    assert not losses(history)
    assert history.accounting == (12_200, 12_200, 0, 0)
    ran_at = Counter(history.pcs())
    # 10 times: a3 from 0 to 15, a poll of the pad in each; then a1 from 0 to 24.
    assert ran_at[0x8000_8790] == 10 * 15
    assert ran_at[0x8000_8C18] == 10
    assert ran_at[0x8000_8BB6] == 10 * 24
    assert ran_at[0x8000_8C24] == 10
    # a2 from 0 to 15 (packet 89 synchronizes at the branch at the end, which packet 88 said is taken), and on to 30.
    assert ran_at[0x8000_870C] == 15
    assert ran_at[0x8000_8738] == 15
    # Known limit (docs/etrace.md): these two returns, of the calls right before, are reported as going on further down.
    pcs = list(history.pcs())
    for returned_to, reported in ((0x8000_8748, 0x8000_8772), (0x8000_8B70, 0x8000_8B98)):
        assert ran_at[returned_to - 4] == 1 and not ran_at[returned_to]
        assert pcs[pcs.index(reported) - 1] == 0x8000_1814
