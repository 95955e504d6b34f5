"""Nothing in a trace makes the E-Trace decoder slow or large: counts without end, code that goes round, noise."""

import gc
import random
import tracemalloc
from typing import Any

import pytest

from rvtrace_gdb.decode.etrace.decoder import StreamDecoder
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.etrace.packets import write
from tests.decode.etrace.vectors import framed
from tests.decode.etrace.worked_examples import Fields, address, branches, start
from tests.decode.ntrace.messages import image_of
from tests.helpers.amounts import LONG, each_seed

LOOP = image_of(
    (0x100, [asm.C_NOP, asm.c_beqz(-2), asm.c_jr(6)]),  # a loop
    (0x200, [asm.c_j(0)]),  # j .
    (0x300, [asm.jal(0, 1)]),  # calls itself
    (0x400, [asm.jal(0x100, 1), asm.c_beqz(-4), asm.c_jr(6)]),  # a loop that calls 0x500, which returns
    (0x500, [asm.c_jr(1)]),
)


def decoded(
    image: Image, packets: list[Fields], parameters: dict[str, Any] | None = None, count_bits: int = 28, **modes: bool
) -> History:
    """The history of these packets. *count_bits*: of the greatest branch_count that is believed."""
    options = Options(
        Parameters(iaddress_width=image.xlen, **parameters or {}), Modes(**modes), pinned=True,
        branch_count_bits=count_bits,
    )  # fmt: skip
    decoder = StreamDecoder(image, options, Encapsulation(), split=False)
    decoder.feed(framed(write(packet, options.parameters, options.modes) for packet in packets))
    return decoder.finish_one()


def counted(count: int) -> Fields:
    """Format 0, subformat 0, without an address: so many branches were predicted correctly, and the next was not."""
    return {"format": 0, "subformat": 0, "branch_count": count - 31, "branch_fmt": 0}


def warmed_up(pc: int) -> list[Fields]:
    """Tracing starts at *pc*, and the branch behind it is taken 31 times: from then on that is predicted."""
    return [start(pc), branches(*[0] * 31)]


def test_billions_of_predicted_branches() -> None:
    """branch_count has 32 bits: a loop that ran for minutes is one packet, and takes no time."""
    count = (1 << 32) + 30
    history = decoded(LOOP, [*warmed_up(0x100), counted(count)], {"bpred_size": 4}, 32, branch_prediction=True)
    assert history.instructions == 2 * (31 + count + 1)
    assert [history.pc(i) for i in (0, 1, 10**9, 2 * count)] == [0x100, 0x102, 0x100, 0x100]
    assert not [event for event in history.events if event.kind is EventKind.MISMATCH]


def test_billions_of_predicted_branches_around_a_call() -> None:
    """The same, with an implicit return in each round."""
    parameters = {"bpred_size": 4, "return_stack_size": 2, "iret_ext": True}
    packets = [*warmed_up(0x400), counted(1 << 30)]
    history = decoded(LOOP, packets, parameters, 32, branch_prediction=True, implicit_return=True)
    assert history.instructions == 3 * (31 + (1 << 30) + 1)
    assert [history.pc(3 * 10**8 + i) for i in range(3)] == [0x400, 0x500, 0x404]


@pytest.mark.parametrize("pc", [0x200, 0x300])
def test_code_that_goes_round_without_a_branch(pc: int) -> None:
    """Outcomes that nothing has, an address that is never reached: said at once, also where calls pile up."""
    parameters = {"return_stack_size": 5, "iret_ext": True}
    for packet, why in ((branches(*[1] * 31), "30 branch outcomes are left"), (address(0x1000), "never reaches")):
        history = decoded(LOOP, [start(pc), packet, start(0x100)], parameters, implicit_return=True)
        (event,) = (event for event in history.events if event.kind is EventKind.MISMATCH)
        assert why in event.text
        assert history.pc(len(history) - 1) == 0x100


@pytest.mark.parametrize("pc", [0x200, 0x300])
def test_predicted_outcomes_that_nothing_has(pc: int) -> None:
    """A count of predictions where the code goes round without a branch: said at once, and no round of it is listed."""
    parameters = {"bpred_size": 4, "return_stack_size": 5, "iret_ext": True}
    packets = [start(pc), counted(500), start(0x100)]
    history = decoded(LOOP, packets, parameters, branch_prediction=True, implicit_return=True)
    (event,) = (event for event in history.events if event.kind is EventKind.MISMATCH)
    assert "branch outcomes are left, and the code has none" in event.text
    assert list(history.pcs()) == [pc, GAP, 0x100]


def test_predicted_outcomes_are_listed_up_to_the_loop_that_has_none() -> None:
    """The branch before the loop was predicted, and ran."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.c_j(0)]), (0x200, [asm.C_NOP]))
    history = decoded(image, [start(0x100), counted(31), start(0x200)], {"bpred_size": 4}, branch_prediction=True)
    assert list(history.pcs()) == [0x100, 0x102, GAP, 0x200]


def test_millions_of_predicted_branches_with_much_code_between_two() -> None:
    """Each round calls ten functions, one after the other, before its branch: a loop all the same."""
    calls = [asm.jal(0x100 - 4 * i, 1) for i in range(10)]  # all of them to 0x500, which returns
    image = image_of((0x400, [*calls, asm.c_beqz(-40), asm.c_jr(6)]), (0x500, [asm.c_jr(1)]))
    parameters, count = {"bpred_size": 4, "return_stack_size": 2, "iret_ext": True}, 1 << 27
    packets = [*warmed_up(0x400), counted(count)]
    history = decoded(image, packets, parameters, branch_prediction=True, implicit_return=True)
    assert history.instructions == 21 * (31 + count + 1)
    assert not [event for event in history.events if event.kind is EventKind.MISMATCH]


def test_a_branch_count_that_nobody_meant() -> None:
    """In a loop any number fits, so that nothing contradicts one: noise from 29 bits on, unless the limit is raised."""
    for count in (1 << 28, (1 << 32) - 1):
        packets = [*warmed_up(0x100), counted(31 + count), start(0x200)]
        history = decoded(LOOP, packets, {"bpred_size": 4}, branch_prediction=True)
        (loss,) = (event for event in history.events if event.kind is EventKind.LOSS)
        assert f"a branch_count of {count.bit_length()} bits, more than 28" in loss.text
        assert "branch_count_bits" in loss.text
        assert list(history.pcs())[-2:] == [GAP, 0x200] and history.instructions == 2 * 31 + 1
        raised = decoded(LOOP, packets[:-1], {"bpred_size": 4}, count.bit_length(), branch_prediction=True)
        assert raised.instructions == 2 * (31 + count + 31 + 1)
        assert not [event for event in raised.events if event.kind is EventKind.LOSS]


@pytest.mark.parametrize(("count", "noted"), [((1 << 22) - 1, False), (1 << 22, True), ((1 << 28) - 1, True)])
def test_a_large_branch_count_is_noted(count: int, noted: bool) -> None:
    """It is believed, and whoever reads the history hears that one packet alone says so."""
    packets = [*warmed_up(0x100), counted(31 + count)]
    history = decoded(LOOP, packets, {"bpred_size": 4}, branch_prediction=True)
    assert history.instructions == 2 * (31 + count + 31 + 1)
    notes = [event for event in history.events if event.kind is EventKind.NOTE]
    assert [f"says that {count + 31} branches went as predicted" in note.text for note in notes] == [True] * noted


_PLACES, _MEMO, _EACH = (2000, 1 << 9, 2000) if LONG else (250, 1 << 5, 2300)
"""Far more places than the decoder may remember, and bytes of history for each at most: with memory it is more."""


def test_ever_new_places_do_not_fill_memory() -> None:
    """Ever new addresses, contexts and times: what is remembered is bounded, the history itself grows."""
    rng = random.Random(4)
    parameters, modes = Parameters(iaddress_width=64, context_width=32, time_width=16), Modes()
    image = Image(64)
    image.add_code(0, asm.c_beqz(4) * (1 << 15))
    options = Options(parameters, modes, pinned=True)
    decoder = StreamDecoder(image, options, Encapsulation(), memo_limit=_MEMO, split=False)
    held = []
    tracemalloc.start()
    for _ in range(3):
        for _ in range(_PLACES):
            place = {"context": rng.randrange(1 << 32), "time": rng.randrange(1 << 16)}
            decoder.feed(framed([write(start(2 * rng.randrange(1 << 15), **place), parameters, modes)]))
        gc.collect()  # what other tests left is freed at any time
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[2] - held[1] < _EACH * _PLACES
    assert decoder.finish_one().instructions >= 3 * _PLACES


@each_seed(range(20))
def test_noise(seed: int) -> None:
    """Any bytes: all of them are accounted for, and the decoder goes on."""
    rng = random.Random(seed)
    names = ("implicit_return", "branch_prediction", "jump_target_cache", "sijump")
    modes = {name: rng.random() < 0.5 for name in names}
    parameters = Parameters(
        iaddress_width=32, ecause_width=5, bpred_size=4, cache_size=4, return_stack_size=2, iret_ext=rng.random() < 0.5,
        context_width=rng.choice((0, 8)), time_width=rng.choice((0, 16)),
    )  # fmt: skip
    image = Image(32)
    image.add_code(0, rng.randbytes(1 << 12))
    options = Options(parameters, Modes(**modes), pinned=rng.random() < 0.5)
    decoder = StreamDecoder(image, options, Encapsulation(), split=False)
    data = bytes(rng.choices((0x01, 0x02, 0x03, 0x73, 0x07, rng.randrange(256)), k=20_000 if LONG else 6_000))
    decoder.feed(data)
    account = decoder.finish_one().accounting
    assert account.total == account.decoded + account.idle + account.skipped == len(data)
