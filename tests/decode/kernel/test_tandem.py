"""The kernel and Python find the same groups, effects and history in the same bytes of a tandem trace."""

import os
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.builder import IncrementalBuilder
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.decoder import IncrementalDecoder, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.index import Index
from rvtrace_gdb.decode.tandem.protocol import (
    DIALECTS,
    FLUTE,
    ROCKET,
    SPECIFICATION,
    AdditionalState,
    Group,
    Instr,
    StateId,
    TandemParameters,
)
from tests.decode.kernel.histories import Shape, shape
from tests.decode.kernel.test_ntrace import chunks, damaged
from tests.decode.tandem.corpus import TRACES, parameters_of, program_of, trace_bytes
from tests.decode.tandem.groups import INIT, RESET, Line, csr, f, loose, priv, store, sw, x
from tests.helpers.amounts import some_of

pytestmark = pytest.mark.skipif(kernel() is None, reason="there is no kernel to compare with")
examples = settings(derandomize=True, max_examples=some_of(150), deadline=None)
seeds = st.integers(0, 1 << 32)
R = TypeVar("R")


def both_ways(make: Callable[[], R]) -> tuple[R, R]:
    """What is made with the kernel and without."""
    compiled = make()
    with patch.dict(os.environ, {"RVTRACE_KERNEL": "0"}):
        return compiled, make()


def index_shape(index: Index) -> dict[str, Any]:
    """Everything in an index."""
    registers, code, trace = index.registers, index.code, index.trace
    found = {**vars(index), "dirty": list(registers.dirty), "forgotten": registers._forgotten}
    found["registers"] = {
        regno: (list(column.groups), list(column.values), column.unknown)
        for regno, column in registers.columns.items()
        if column.groups
    }
    found["memory"] = {
        space: (list(w.groups), list(w.addresses), list(w.values), list(w.sizes), w.unknown, w.placed)
        for space, w in index.memory.items()
    }
    found["code"] = code.words, code.varying
    found["trace"] = list(trace.offsets), list(trace.shapes), trace.losses, list(trace.flaws())
    return {name: list(value) if name == "pcs" else value for name, value in found.items()}


def codes(paths: list[Any]) -> list[object]:
    return [(path.parts, dict(path.code)) if isinstance(path, Path) else repr(type(path)) for path in paths]


def decoded(data: bytes, name: str, parameters: TandemParameters, wrapped: bool, stops: bool) -> tuple[Any, ...]:
    found = decode(data, program_of(name), parameters, wrapped=wrapped, stop_at_error=stops)
    return index_shape(found.index), list(found._groups), shape(found.history), codes(list(found.history._entries))


def made_up_group(line: Line, rng: random.Random) -> None:
    address, size, value = 0x8000_1000 + rng.randrange(64), rng.choice([1, 2, 4, 8]), rng.randrange(1 << 8)
    physical = AdditionalState(StateId.PHYSICAL_ADDRESS, address ^ 0x40_0000)
    status = csr(csrs.MSTATUS, rng.choice([0, 0x800, 0x6000, csrs.MPRV, csrs.MPRV | 0x800]))
    usual: list[Callable[[], int]] = [
        lambda: line(status),
        lambda: line(store(address, size, value), instr=sw()),
        lambda: line(store(address, size, value, physical=True), instr=sw()),
        lambda: line(store(address, size, value), physical, instr=sw()),
        lambda: line(store(address, 4, value), x(5, 1), instr=Instr(0x0053_22AF, 4)),
        lambda: line(x(rng.randrange(32), value), f(3, value), csr(1, 1)),
        lambda: line(f(4, value), status),
        lambda: line(instr=Instr(0x0000_8067, 4), to=0x8000_0000 + 4 * rng.randrange(8)),
        lambda: line(priv(rng.choice([0, 1, 3]))),
        lambda: line.add(RESET) if rng.random() < 0.2 else line.add(INIT, csr(csrs.SATP, 8 << 60 | value & 1)),
    ]
    rng.choice(usual)()


def made_up(rng: random.Random) -> list[Group]:
    """Groups that real cores of the corpus do not send: MPRV, both addresses of a store, loose elements, boot code."""
    line = Line(rng.choice([0x07FF_FF80, 0x8000_0000]))
    for _ in range(rng.randrange(20, 200)):
        line.groups += [loose(x(7, 3))] * rng.choice([0, 0, 0, 0, 0, 1])
        made_up_group(line, rng)
    return line.groups


def case(seed: int) -> tuple[random.Random, str, bytes, TandemParameters]:
    """A trace of a real core, some of it twice, read as its own dialect or another; or one that was made up."""
    rng = random.Random(seed)
    if rng.random() < 0.5:
        parameters = TandemParameters(64, 64, dialect=rng.choice([FLUTE, ROCKET, SPECIFICATION]))
        return rng, "flute_rv64ui-p-add", encode(made_up(rng), parameters), parameters
    name = rng.choice(TRACES)
    trace, parameters = trace_bytes(name), parameters_of(name)
    begin = rng.randrange(len(trace))
    data = trace[:6000] + trace[begin : begin + 6000] * rng.choice([1, 2])
    if rng.random() < 0.3:
        parameters = replace(parameters, dialect=rng.choice(list(DIALECTS.values())))
    return rng, name, data, parameters


@examples
@given(seeds)
def test_whole_traces(seed: int) -> None:
    rng, name, data, parameters = case(seed)
    wrapped, stops = rng.random() < 0.3, rng.random() < 0.3
    for places in (0, 1, 20):
        read = damaged(data, rng, places)
        compiled, interpreted = both_ways(partial(decoded, read, name, parameters, wrapped, stops))
        for one, other in zip(compiled, interpreted, strict=True):
            assert one == other


@examples
@given(seeds)
def test_traces_that_arrive(seed: int) -> None:
    rng, name, data, parameters = case(seed)
    read = damaged(data[:1500], rng, rng.choice([0, 3]))
    pieces = chunks(read, rng) if rng.random() < 0.5 else [bytes([byte]) for byte in read]

    def followed() -> list[Shape]:
        builder, found = IncrementalBuilder(), []
        decoder = IncrementalDecoder(program_of(name), parameters, builder)
        for piece in [*pieces, None]:
            if piece is None:
                decoder.finish()
            else:
                decoder.feed(piece)
            taken = builder.take(last=piece is None)
            found.append((*shape(taken.history), list(taken.events)))
        return found

    compiled, interpreted = both_ways(followed)
    assert compiled == interpreted


@pytest.mark.parametrize("name", TRACES)
def test_the_corpus(name: str) -> None:
    data, parameters = trace_bytes(name) * 2, parameters_of(name)
    compiled, interpreted = both_ways(partial(decoded, data, name, parameters, False, False))
    assert compiled == interpreted
