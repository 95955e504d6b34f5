"""A filter lets a part of an execution through: the history has that part, and a gap wherever something is missing.

Random programs, executions, filters and encoders; and by hand, each way in which a stretch can end and begin.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.decoder import StreamDecoder, decode
from rvtrace_gdb.decode.etrace.encapsulation import NAMES, ContentKind, Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions, EndReport
from rvtrace_gdb.decode.etrace.options import Dialect, SupportLayout
from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode.etrace.encoder.test_dialects import options_of
from tests.decode.etrace.random_programs import Case, any_options
from tests.decode.etrace.test_properties import assert_same
from tests.decode.etrace.vectors import framed
from tests.decode.etrace.worked_examples import Example
from tests.decode.filtered import Begin, End, Stretch, Told, check, random_filter, stretches, told
from tests.decode.filtered_by_hand import HAND, JUMPS, PROGRAM, gaps
from tests.decode.ntrace.messages import difference
from tests.decode.synthetic_code import INDIRECT
from tests.helpers.amounts import some_of

many = settings(derandomize=True, max_examples=some_of(120), deadline=None)
some = settings(many, max_examples=some_of(25))
seeds = st.integers(0, 1 << 32)
rates = st.sampled_from([0, 0.01, 0.05, 0.4])


class Filtered(Case):
    """A program, an execution, a filter, and the trace of what it lets through.

    *leading*: a trap that leads into a stretch is told; *ending*: one that ends it is.
    """

    def __init__(self, seed: int, drawn: dict[str, Any], *, trap_rate: float, leading: bool, ending: bool) -> None:
        self.leading, self.ending = leading, ending
        super().__init__(seed, drawn, trap_rate=trap_rate)

    def _trace(self, marks: bool, breaks: float) -> None:
        wanted = random_filter(self.program, self.run.pcs, random.Random(self.rng.random()))
        self.told: list[Told] = list(told(self.items, wanted, self.run.next_pc))
        self.stretches: list[Stretch] = stretches(self.told)
        self.last_traps = [item.trap for item in self.told if isinstance(item, End)]
        self.halts: list[bool] = []  # of each stretch: it ended though the encoder was not switched off
        encoder = Encoder(self.encoder_options, self.packets.append)
        encoder.context(ProgramContext(3))
        if self.rng.random() < 0.5:
            encoder.enable()
        for item in self.told:
            self._tell(encoder, item)
            if marks and self.rng.random() < 0.03:
                encoder.notify()

    def _tell(self, encoder: Encoder, item: Told) -> None:
        if isinstance(item, Begin):
            encoder.start(item.trap if self.leading else None)
        elif isinstance(item, ProgramContext):
            encoder.context(item)
        elif not isinstance(item, End):
            encoder.retire([item])
        else:
            self.halts.append(self.rng.random() < 0.7)
            tells = item.trap is not None and self.ending
            if item.trap is not None and tells:
                encoder.retire([item.trap])
            encoder.stop(None if tells else item.next_pc, disable=not self.halts[-1])

    def is_told(self, index: int) -> bool:
        """Whether what comes behind a stretch is in the trace: unless it ends with a jump or a trap."""
        trapped = self.ending and self.last_traps[index] is not None
        return not trapped and self.program.spots[self.stretches[index].pcs[-1]].kind not in (*INDIRECT, "ecall")


cases = st.builds(Filtered, seeds, any_options, trap_rate=rates, leading=st.booleans(), ending=st.booleans())


@many
@given(cases)
def test_what_a_filter_lets_through(case: Filtered) -> None:
    history = case.decode(case.trace)
    check(history, case.stretches, case.is_told)
    assert history.accounting == (len(case.trace), len(case.trace), 0, 0)
    assert not difference(case.naive().pcs, [pc for stretch in case.stretches for pc in stretch.pcs])


@some
@given(cases, st.lists(st.sampled_from([1, 2, 3, 7, 300]), min_size=1), st.integers(0, 30))
def test_however_it_is_read_it_is_the_same(case: Filtered, sizes: list[int], limit: int) -> None:
    """In pieces of any size, and with few steps remembered."""
    whole = case.decode(case.trace)
    decoder, start = StreamDecoder(case.image, case.options, Encapsulation(), memo_limit=limit, split=False), 0
    for size in cycle(sizes):
        decoder.feed(case.trace[start : start + size])
        start += size
        if start >= len(case.trace):
            break
    assert_same(decoder.finish_one(), whole)


@some
@given(seeds, any_options, rates, st.randoms(use_true_random=False))
def test_a_rotated_ring_has_the_last_stretches_and_their_gaps(
    seed: int, drawn: dict[str, Any], trap_rate: float, rng: random.Random
) -> None:
    case = Filtered(seed, drawn | {"resync_disabled": False}, trap_rate=trap_rate, leading=False, ending=False)
    whole = list(case.decode(case.trace).pcs())
    sequence = Encapsulation().framer().synchronization()
    for first in rng.choices(range(len(case.packets) + 1), k=3):
        ring = rng.randbytes(rng.randrange(3)) + sequence + case.framed(case.packets[first:])
        history = case.decode(ring, wrapped=True)
        found = list(history.pcs())
        assert found == whole[len(whole) - len(found) :]
        assert sum(history.accounting[1:]) == len(ring)


@some
@given(seeds, any_options, rates)
def test_where_only_a_halted_hart_stops_tracing_nothing_is_missing(
    seed: int, drawn: dict[str, Any], trap_rate: float
) -> None:
    """The same packets of an encoder without filters: a gap only where the debugger has moved the hart, or where the
    encoder was switched off.
    """
    case = Filtered(seed, drawn | {"sijump": False}, trap_rate=trap_rate, leading=False, ending=seed % 2 == 0)
    options = replace(case.options, unfiltered=True)
    found, position = list(decode(case.trace, case.image, options, Encapsulation()).pcs()), 0
    for index, (pcs, _) in enumerate(case.stretches):
        gap = position < len(found) and found[position] == GAP
        if index:
            moved = case.stretches[index - 1].next_pc != pcs[0]
            assert (
                gap is (moved and (case.is_told(index - 1) or not case.halts[index - 1])) or not case.halts[index - 1]
            )
        position += gap
        assert found[position : position + len(pcs)] == pcs
        position += len(pcs)


# By hand

JUMP = "tracing stops at a jump whose target is not in the trace"
MOVED = "tracing stops, then tracing starts at another place"


def filtered(options: EncoderOptions, ran: Sequence[int | IngressTrap], where: range) -> list[bytes]:
    """The packets of an execution, of which only these addresses are traced."""
    packets: list[bytes] = []
    encoder = Encoder(options, packets.append)
    for item in told(Example(PROGRAM).items(ran), lambda pc, _: pc in where, 0x300):
        if isinstance(item, Begin):
            encoder.start()
        elif isinstance(item, End):
            encoder.stop(item.next_pc, disable=False)
        else:
            assert not isinstance(item, ProgramContext)
            encoder.retire([item])
    return packets


@pytest.mark.parametrize("ending", HAND)
@pytest.mark.parametrize("stop", EndReport)
@pytest.mark.parametrize("dialect", Dialect)
def test_how_a_stretch_ends(ending: str, stop: EndReport, dialect: Dialect) -> None:
    ran, where, expected, ends = HAND[ending]
    texts = [JUMP if end == JUMPS else MOVED for end in ends]
    options = replace(options_of(dialect), stop=stop)
    packets = filtered(options, ran, where)
    history = decode(framed(packets), PROGRAM, options.decoder, Encapsulation())
    assert [*map(hex, history.pcs())] == [*map(hex, expected)]
    assert gaps(history) == texts
    unfiltered = decode(framed(packets), PROGRAM, replace(options.decoder, unfiltered=True), Encapsulation())
    assert gaps(unfiltered) == [text for text in texts if text == MOVED], "what only a halted hart can have done"


@pytest.mark.parametrize("name", NAMES)
def test_in_every_transport(name: str) -> None:
    ran, where, expected, _ = HAND["a return, an indirect call"]
    options = options_of(Dialect.STANDARD)
    encapsulation = Encapsulation(name)
    framer = encapsulation.framer()
    data = framer.synchronization() + b"".join(
        framer.packet(packet, ContentKind.INSTRUCTION, int(name == "atb"), None)
        for packet in filtered(options, ran, where)
    )
    assert list(decode(data, PROGRAM, options.decoder, encapsulation).pcs()) == expected


@pytest.mark.parametrize("support", SupportLayout)
def test_with_every_layout_of_support_packets(support: SupportLayout) -> None:
    ran, where, expected, ends = HAND["a return, an indirect call"]
    options = replace(options_of(Dialect.STANDARD), support=support)
    history = decode(framed(filtered(options, ran, where)), PROGRAM, options.decoder, Encapsulation())
    assert (list(history.pcs()), gaps(history)) == (expected, [JUMP] * len(ends))
