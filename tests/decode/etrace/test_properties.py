"""decode(encode(execution)) == execution, for random programs, executions and every way to build an E-Trace encoder;
and the document's decoder, told anew for the tests, finds the same.
"""

from bisect import bisect_right
from dataclasses import fields as fields_of
from itertools import cycle
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.decoder import StreamDecoder, decode
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode.etrace.packets import read, write
from tests.decode.etrace.random_programs import FREEDOMS, MODES, PARAMETERS, Case, any_options
from tests.decode.ntrace.messages import difference
from tests.decode.synthetic_code import INDIRECT
from tests.helpers.amounts import some_of

examples = settings(derandomize=True, max_examples=some_of(60), deadline=None)
many = settings(examples, max_examples=some_of(300, share=10))
seeds = st.integers(0, 1 << 32)
rates = st.sampled_from([0, 0.005, 0.05, 0.4])

DATA = {"data_", "daddress_", "lrid_", "csr_", "mmacas_"}


def test_every_option_of_the_encoder_takes_part() -> None:
    """But those of data trace, and those that are not a freedom of the document: layouts, dialects, widths of a
    hart.
    """
    named = {field.name for kind in (Parameters, Modes, EncoderOptions) for field in fields_of(kind)}
    left = {name for name in named if not any(name.startswith(start) for start in DATA)}
    fixed = {"iaddress_width", "iret_ext", "parameters", "modes", "dialect", "support", "itype_width", "hcontext_at"}
    assert left - fixed == {*PARAMETERS, *MODES, *FREEDOMS}


@many
@given(seeds, any_options, rates)
def test_decoding_what_was_encoded_gives_the_execution(seed: int, drawn: dict[str, Any], trap_rate: float) -> None:
    case = Case(seed, drawn, trap_rate=trap_rate)
    history = case.decode(case.trace)
    assert not difference(history.pcs(), case.pcs)
    assert history.gaps == 0
    assert history.accounting == (len(case.trace), len(case.trace), 0, 0)
    check_traps(case, history)


@many
@given(seeds, any_options, rates)
def test_the_documents_decoder_finds_the_same(seed: int, drawn: dict[str, Any], trap_rate: float) -> None:
    """So the encoder makes what others can read, and nothing of the decoder's own is needed for it."""
    case = Case(seed, drawn, trap_rate=trap_rate)
    naive = case.naive()
    assert not difference(naive.pcs, case.pcs)
    for position, epc, fields in naive.traps:
        hits = [trap for at, trap in case.traps if at == position and trap.cause == fields["ecause"]]
        assert hits
        assert epc is None or epc in [trap.epc for trap in hits]


def check_traps(case: Case, history: History) -> None:
    """Each at its place, with its handler and where it hit, as far as the packets tell.

    Not told is where a second trap before the first handler's first instruction hit (that is the first handler), nor
    the first one's handler. Behind a jump that is inferred a first trap of two tells its EPC or does not, as encoders
    please (the flow chart takes the jump for none, the pseudo-code does not), and the packet looks the same.
    """
    end = len(case.pcs)  # of a trap whose handler did not run any more not all encoders' packets tell
    traps = [event for event in history.events if event.kind is EventKind.TRAP and event.position < end]
    taken = [(position, trap) for position, trap in case.traps if position < end]
    assert [event.position for event in traps] == [position for position, _ in taken]
    for i, (event, (position, trap)) in enumerate(zip(traps, taken, strict=True)):
        kind = "interrupt" if trap.interrupt else "exception"
        assert event.text.startswith(f"{kind} {trap.cause}"), event
        if i + 1 == len(traps) or traps[i + 1].position > position:
            assert event.next_pc == trap.handler
        jumped = position > 0 and case.program.spots[case.pcs[position - 1]].kind in INDIRECT
        unsure = jumped and i + 1 < len(traps) and traps[i + 1].position == position
        if not unsure and (i == 0 or traps[i - 1].position < position):
            assert event.last_pc in (trap.epc, None)


@examples
@given(seeds, any_options)
def test_contexts(seed: int, drawn: dict[str, Any]) -> None:
    """Each instruction runs in its privilege mode; in its process, too, where changes are reported precisely."""
    case = Case(seed, drawn | {"context_width": 32}, marks=False)
    history = case.decode(case.trace)
    places: list[int] = []
    contexts: list[ProgramContext] = []
    at = 0
    for item in case.items:
        if isinstance(item, ProgramContext):
            places.append(at)
            contexts.append(item)
        elif isinstance(item, Block):
            at += item.instructions
    precise = drawn["context"].name in ("PRECISE", "DISCONTINUITY")
    for i in range(len(case.pcs)):
        found = bisect_right(places, i) - 1
        context = contexts[found] if found >= 0 else ProgramContext(3)
        assert history.context_at(i).prv == context.prv, i
        if precise and context.scontext is not None:
            assert history.context_at(i).scontext == context.scontext, i


@examples
@given(seeds, any_options, st.sampled_from([16, 48, 64]))
def test_times(seed: int, drawn: dict[str, Any], width: int) -> None:
    """What the packets say, in order, each at the instruction of its packet."""
    case = Case(seed, drawn | {"time_width": width})
    history = case.decode(case.trace)
    sent = [
        fields["time"]
        for fields in (read(packet, case.options.parameters, case.options.modes) for packet in case.packets)
        if fields["format"] == 3 and fields["subformat"] != 3
    ]
    told = [time & (1 << width) - 1 for _, time in history.times]
    positions = [position for position, _ in history.times]
    assert positions == sorted(positions)
    assert set(told) <= set(sent)
    assert not sent or told[-1] == sent[-1] or positions[-1] <= len(case.pcs)


@examples
@given(seeds, any_options, rates)
def test_packets_are_as_short_as_they_can_be(seed: int, drawn: dict[str, Any], trap_rate: float) -> None:
    """With compression: what the tests write with the same fields ("sign based compression" over the whole packet);
    without it, the same number in whole fields.
    """
    case = Case(seed, drawn, trap_rate=trap_rate)
    parameters, modes = case.options.parameters, case.options.modes
    for packet in case.packets:
        fields = read(packet, parameters, modes)
        shortest = write(fields, parameters, modes)
        assert int.from_bytes(packet, "little", signed=True) == int.from_bytes(shortest, "little", signed=True)
        if drawn["compress"]:
            assert packet == shortest


@examples
@given(seeds, any_options)
def test_with_and_without_memory_of_steps(seed: int, drawn: dict[str, Any]) -> None:
    """What is remembered, and forgetting it at any time, changes nothing."""
    case = Case(seed, drawn)
    whole = case.decode(case.trace)
    for limit in (0, 1, 7):
        decoder = StreamDecoder(case.image, case.options, Encapsulation(), memo_limit=limit, split=False)
        decoder.feed(case.trace)
        assert_same(decoder.finish_one(), whole)
    assert not difference(whole.pcs(), case.pcs)


@examples
@given(
    seeds,
    any_options,
    st.lists(st.sampled_from([1, 2, 3, 7, 300, 5000]), min_size=1),
    st.lists(st.integers(0, (1 << 32) - 1), max_size=6),
    st.booleans(),
)
def test_any_chunking_gives_the_same_history(
    seed: int, drawn: dict[str, Any], sizes: list[int], damages: list[int], wrapped: bool
) -> None:
    case = Case(seed, drawn)
    data = bytearray(case.trace)
    for damage in damages:
        data[damage % len(data)] = damage >> 24
    whole = case.decode(bytes(data), wrapped=wrapped)
    decoder = StreamDecoder(case.image, case.options, Encapsulation(), wrapped=wrapped, split=False)
    start = 0
    for size in cycle([*sizes, 0]):
        decoder.feed(bytes(data[start : start + size]))
        start += size
        if start >= len(data):
            break
    assert_same(decoder.finish_one(), whole)


def assert_same(one: History, other: History) -> None:
    assert (len(one), one.gaps) == (len(other), other.gaps)
    assert not difference(one.pcs(0, 20_000), other.pcs(0, 20_000))
    assert not difference(one.events, other.events)
    assert not difference(one.contexts, other.contexts)
    assert not difference(one.times, other.times)
    assert one.accounting == other.accounting


@examples
@given(seeds, any_options, rates)
def test_standard_support_packets_tell_parameters_and_modes(seed: int, drawn: dict[str, Any], trap_rate: float) -> None:
    """A decoder that was told no more than the widths which are not in them."""
    case = Case(seed, drawn | {"support": SupportLayout.STANDARD}, trap_rate=trap_rate)
    unsaid = ("iaddress_width", "iaddress_lsb", "privilege_width", "ecause_width", "context_width", "ecall_retires")
    known = {name: getattr(case.options.parameters, name) for name in unsaid}
    told = Options(Parameters(**known), support=SupportLayout.STANDARD, trap_handlers=case.options.trap_handlers)
    history = decode(case.trace, case.image, told, Encapsulation())
    assert not difference(history.pcs(), case.pcs)
