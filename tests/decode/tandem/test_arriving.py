"""A tandem trace that is decoded while it arrives has the history of the whole one, whatever its pieces."""

import random

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder, IncrementalBuilder
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.decode.tandem.decoder import IncrementalDecoder, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import Ending, Group, IncrementPc, Instr, TandemParameters
from tests.decode.tandem.corpus import TRACES, parameters_of, program_of, trace_bytes
from tests.decode.tandem.groups import INIT, NOP, RESET, RV64, csr, group, pc, priv, x
from tests.helpers.amounts import each_seed

Told = tuple[list[int], list[Event], list[object], list[object]]


def whole(data: bytes, program: Program, parameters: TandemParameters, *, wrapped: bool = False) -> Told:
    history = decode(data, program, parameters, wrapped=wrapped).history
    return list(history.pcs()), list(history.events), list(history.contexts), list(history.times)


def arrived(
    data: bytes, program: Program, parameters: TandemParameters, sizes: list[int], *, wrapped: bool = False
) -> Told:
    """In pieces of these sizes, again and again; what is there is taken away after each."""
    builder = IncrementalBuilder()
    decoder = IncrementalDecoder(program, parameters, builder, wrapped=wrapped)
    pcs: list[int] = []
    events: list[Event] = []
    at = number = 0
    while at < len(data):
        size = sizes[number % len(sizes)]
        decoder.feed(data[at : at + size])
        at, number = at + size, number + 1
        piece = builder.take()
        pcs += piece.history.pcs(piece.begin, piece.end)
        events += piece.events
    decoder.finish()
    piece = builder.take(last=True)
    pcs += piece.history.pcs(piece.begin, piece.end)
    events += piece.events
    collected = HistoryBuilder()
    decoder = IncrementalDecoder(program, parameters, collected, wrapped=wrapped)
    for start in range(0, len(data), sizes[0] * 16):
        decoder.feed(data[start : start + sizes[0] * 16])
    decoder.finish()
    history = collected.finish(piece.history.accounting)
    assert list(history.pcs()) == pcs
    return pcs, events, list(history.contexts), list(history.times)


@pytest.mark.parametrize("name", [name for name in TRACES if "rv64ui-v" not in name])  # that is a long one
def test_real_traces(name: str) -> None:
    data, parameters = trace_bytes(name)[:12000], parameters_of(name)
    assert arrived(data, program_of(name), parameters, [611, 7, 4099]) == whole(data, program_of(name), parameters)


@each_seed(range(12))
def test_damaged_ones(seed: int) -> None:
    random_ = random.Random(seed)
    name = random_.choice(["flute_rv64-irq", "piccolo_rv32-irq", "flute_rv64si-p-scall"])
    data = bytearray(trace_bytes(name)[:5000])
    for _ in range(random_.randrange(1, 5)):
        at = random_.randrange(len(data))
        data[at : at + random_.choice([0, 1, 30, 400])] = random_.randbytes(random_.choice([0, 1, 5, 200]))
    parameters, wrapped = parameters_of(name), random_.random() < 0.3
    expected = whole(bytes(data), program_of(name), parameters, wrapped=wrapped)
    sizes = [random_.choice([1, 17, 100, 1000])]
    found = arrived(bytes(data), program_of(name), parameters, sizes, wrapped=wrapped)
    assert intact(found) == intact(expected)


def intact(told: Told) -> Told:
    """Without what is found of code that the damage changed: how often the same code is looked at is left open."""
    pcs, events, contexts, times = told
    others = [event for event in events if event.kind is not EventKind.MISMATCH and "do not agree" not in event.text]
    return pcs, others, contexts, times


def made() -> list[Group]:
    """What the corpus does not have: increments, implied ends, odd groups, a loader, returns that tell no pc."""
    loader = [group(INIT, x(n, n)) for n in range(1, 32)] + [group(INIT, csr(0x341, 0x300))]
    loop = [Group((IncrementPc(), NOP), Ending.IMPLIED)] * 9 + [group(pc(0x100), Instr(0xFDDFF06F, 4))]
    odd = [group(pc(0x104), NOP, NOP), group(csr(0x7C0, 1)), group(priv(3), csr(0x342, 7), csr(0x341, 0x104), pc(0x80))]
    return [
        *loader, group(RESET), *loader[:5], group(INIT, pc(0x100)), *loop * 4, *odd, *loader,
        group(pc(0x104), priv(0), Instr(0x30200073, 4)), *loader[:1], *loop[:3], *loader,
    ]  # fmt: skip


@pytest.mark.parametrize("size", [1, 5, 40, 333, 1 << 20])
def test_made_ones(size: int) -> None:
    data = encode(made(), RV64)
    assert arrived(data, Image(), RV64, [size]) == whole(data, Image(), RV64)


def test_a_wrong_program() -> None:
    data, other = trace_bytes("flute_rv64ui-p-add")[:6000], "flute_rv64-irq"
    expected = whole(data, program_of(other), parameters_of(other))
    assert arrived(data, program_of(other), parameters_of(other), [500]) == expected
    assert sum(event.kind is EventKind.MISMATCH for event in expected[1]) == 1


def test_memory_does_not_grow() -> None:
    builder = IncrementalBuilder()
    decoder = IncrementalDecoder(Image(), RV64, builder)
    one = encode([group(pc(0x100 + 4 * (n + 1)), NOP, x(n + 1, n)) for n in range(30)], RV64)
    one += encode([group(pc(0x100), Instr(0xF8DFF06F, 4))], RV64)
    kept = set()
    for data in [one] * 40 + [b"\xee" * 5000] * 40 + [one] * 4:
        decoder.feed(data)
        builder.take()
        trace = decoder._trace
        kept.add((len(trace.data) < 1 << 17, len(trace.offsets) < 64, len(trace.losses) < 2, len(builder._events) < 4))
    assert kept == {(True, True, True, True)}
