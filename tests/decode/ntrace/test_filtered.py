"""A filter lets a part of an execution through: the history has that part, and a gap wherever something is missing.

Random programs, executions, filters and encoders; and by hand, each way in which a stretch can end and begin.
"""

import random
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder, decode
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode import assembler as asm
from tests.decode.etrace.worked_examples import Example
from tests.decode.filtered import Begin, End, Stretch, Told, check, random_filter, stretches, told
from tests.decode.filtered_by_hand import HAND, PROGRAM, gaps
from tests.decode.ntrace.encodings import Case, any_fields, decoder_options
from tests.decode.ntrace.messages import decoded, image_of, message, split
from tests.decode.ntrace.test_properties import assert_same
from tests.helpers.amounts import some_of

many = settings(derandomize=True, max_examples=some_of(120), deadline=None)
some = settings(many, max_examples=some_of(25))
seeds = st.integers(0, 1 << 32)
rates = st.sampled_from([0, 0.01, 0.05, 0.4])


class Filtered(Case):
    """A program, an execution, a filter, and the trace of what it lets through."""

    def _trace(self, marks: bool, breaks: float) -> None:
        wanted = random_filter(self.program, self.run.pcs, random.Random(self.rng.random()))
        self.told: list[Told] = list(told(self.run.items, wanted, self.run.next_pc))
        self.stretches: list[Stretch] = stretches(self.told)
        encoder = Encoder(self.encoder_options, self.messages.append)
        for item in self.told:
            if isinstance(item, Begin):
                encoder.start(Sync.TRACE_ENABLE)
            elif isinstance(item, End):
                encoder.stop(Evcode.TRACE_DISABLED, item.next_pc)
            elif isinstance(item, ProgramContext):
                encoder.context(item)
            else:
                encoder.retire([item])
            if marks and self.rng.random() < 0.03:
                encoder.mark(Sync.TRACE_EVENT)


cases = st.builds(Filtered, seeds, any_fields, trap_rate=rates)


@many
@given(cases)
def test_what_a_filter_lets_through(case: Filtered) -> None:
    history = case.decode(case.trace)
    check(history, case.stretches, lambda index: True)
    total, decoded, idle, skipped = history.accounting
    assert (total, skipped) == (len(case.trace), 0)
    assert decoded == sum(map(len, split(case.trace))) and idle == total - decoded


@some
@given(cases, st.lists(st.sampled_from([1, 2, 3, 7, 300]), min_size=1), st.integers(0, 30))
def test_however_it_is_read_it_is_the_same(case: Filtered, sizes: list[int], limit: int) -> None:
    """In pieces of any size, and with few steps remembered."""
    decoder, start = StreamDecoder(case.program.image(), case.options, memo_limit=limit, split=False), 0
    for size in cycle(sizes):
        decoder.feed(case.trace[start : start + size])
        start += size
        if start >= len(case.trace):
            break
    assert_same(decoder.finish_one(), case.decode(case.trace))


# By hand


def filtered(options: EncoderOptions, ran: Sequence[int | IngressTrap], where: range) -> bytes:
    """The trace of an execution, of which only these addresses are traced."""
    messages: list[bytes] = []
    encoder = Encoder(options, messages.append)
    for item in told(Example(PROGRAM).items(ran), lambda pc, _: pc in where, 0x300):
        if isinstance(item, Begin):
            encoder.start(Sync.TRACE_ENABLE)
        elif isinstance(item, End):
            encoder.stop(Evcode.TRACE_DISABLED, item.next_pc)
        else:
            encoder.retire([item])
    return b"".join(messages)


@pytest.mark.parametrize("ending", HAND)
@pytest.mark.parametrize("btm", [False, True])
@pytest.mark.parametrize("more", [{}, {"implicit_return": 3, "all_jumps": True}])
def test_how_a_stretch_ends(ending: str, btm: bool, more: dict[str, Any]) -> None:
    """N-Trace tells the target of the last jump, too."""
    ran, where, expected, ends = HAND[ending]
    options = EncoderOptions(btm=btm, xlen=32, **more)
    history = decode(filtered(options, ran, where), PROGRAM, decoder_options(options))
    assert [*map(hex, history.pcs())] == [*map(hex, expected)]
    assert gaps(history) == ["trace disabled, then trace enabled at another place"] * len(ends)


CODE = image_of(
    (0x100, [asm.C_NOP, asm.c_jr(1)]), (0x200, [asm.C_NOP, asm.ECALL]), (0x300, [asm.C_NOP, asm.c_beqz(-2)]),
    (0x400, [asm.C_NOP, asm.c_j(0x100 - 0x402)]),
)  # fmt: skip


@pytest.mark.parametrize(
    ("first", "halfwords", "end"),
    [
        (0x100, 2, "at a jump whose target is not in the trace"),
        (0x200, 3, "at a trap whose handler is not in the trace"),
        (0x300, 2, "at a branch whose outcome is not in the trace"),
    ],
)
@pytest.mark.parametrize("evcode", Evcode)
def test_an_encoder_that_does_not_tell_what_comes_behind_the_last_instruction(
    first: int, halfwords: int, end: str, evcode: Evcode
) -> None:
    """Switched off behind an instruction. A halted hart goes on where it was: nothing is missing."""
    stop = message("ProgTraceCorrelation", evcode=evcode, cdf=1, icnt=halfwords, hist=1)
    begin = [message("ProgTraceSync", sync=Sync.TRACE_ENABLE, icnt=0, faddr=at >> 1) for at in (first, 0x400)]
    history = decoded(CODE, begin[0], stop, begin[1])
    last = {0x100: 0x102, 0x200: 0x202, 0x300: 0x302}[first]
    switched_off = evcode is Evcode.TRACE_DISABLED
    assert list(history.pcs()) == [first, last, GAP] if switched_off else [first, last]
    assert gaps(history) == ([f"trace disabled {end}"] if switched_off else [])
    assert [event.kind.value for event in history.events] == ["trace on", "trace off", "trace on"]
