"""The fast path of each encoder is taken for the options that it honours: an option that was added later goes the slow
path until somebody has thought of it, and both paths send the same.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder as EtraceEncoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as EtraceOptions
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder as NtraceEncoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import DIALECTS, Dialect
from rvtrace_gdb.decode.ntrace.options import EncoderOptions as NtraceOptions
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode.etrace import random_programs as etrace
from tests.decode.executions import execute
from tests.decode.ntrace import encodings as ntrace
from tests.decode.synthetic import Program
from tests.helpers.amounts import some_of

Item = Block | IngressTrap | ProgramContext
examples = settings(derandomize=True, max_examples=some_of(100), deadline=None)


@dataclass(frozen=True)
class InventedNtrace(NtraceOptions):
    invented: bool = False


@dataclass(frozen=True)
class InventedDialect(Dialect):
    invented: bool = False


@dataclass(frozen=True)
class InventedEtrace(EtraceOptions):
    invented: bool = False


@dataclass(frozen=True)
class InventedParameters(Parameters):
    invented: int = 0


@dataclass(frozen=True)
class InventedModes(Modes):
    invented: bool = False


class NtraceSteps(NtraceEncoder):
    """Counts what takes the slow path."""

    steps = 0

    def _encode_item(self, item: Item) -> None:
        self.steps += 1
        super()._encode_item(item)


class EtraceSteps(EtraceEncoder):
    """The same."""

    steps = 0

    def _encode_item(self, item: Item) -> None:
        self.steps += 1
        super()._encode_item(item)


def ntrace_steps(options: NtraceOptions, items: list[Item]) -> int:
    encoder = NtraceSteps(options, lambda message: None)
    encoder.start(Sync.EXIT_FROM_DEBUG)
    encoder.retire(items)
    return encoder.steps


def etrace_steps(options: EtraceOptions, items: list[Item]) -> int:
    encoder = EtraceSteps(options, lambda packet: None)
    encoder.start()
    encoder.retire(items)
    return encoder.steps


INVENTIONS: dict[str, tuple[Callable[[Any, list[Item]], int], Callable[[Any], object]]] = {
    "N-Trace": (ntrace_steps, lambda on: InventedNtrace(invented=on)),
    "N-Trace dialect": (ntrace_steps, lambda on: NtraceOptions(dialect=InventedDialect("new", invented=on))),
    "E-Trace": (etrace_steps, lambda on: InventedEtrace(invented=on)),
    "E-Trace parameters": (etrace_steps, lambda on: EtraceOptions(InventedParameters(invented=int(on)))),
    "E-Trace modes": (etrace_steps, lambda on: EtraceOptions(modes=InventedModes(invented=on))),
}


@pytest.mark.parametrize("invention", INVENTIONS)
def test_an_invented_option_takes_the_slow_path(invention: str) -> None:
    steps, options = INVENTIONS[invention]
    rng = random.Random(1)
    items = execute(Program(rng, 32, 40), rng, 300).items
    assert steps(options(False), items) < len(items)
    assert steps(options(True), items) == len(items)


@examples
@given(st.integers(0, 1 << 32), ntrace.any_fields)
def test_both_paths_of_n_trace_send_the_same(seed: int, fields: dict[str, Any]) -> None:
    rng = random.Random(seed)
    run = execute(Program(rng, 32, 40), rng, 300)
    options = InventedNtrace(**{**fields, "dialect": DIALECTS[fields["dialect"]], "xlen": 32})
    sent: tuple[list[bytes], list[bytes]] = ([], [])
    for messages, invented in zip(sent, (False, True), strict=True):
        encoder = NtraceEncoder(replace(options, invented=invented), messages.append)
        encoder.start(Sync.EXIT_FROM_DEBUG)
        encoder.retire(run.items[:50])
        encoder.mark(Sync.TRACE_EVENT)
        encoder.retire(run.items[50:], run.next_pc)
        encoder.stop(Evcode.DEBUG_MODE)
    assert sent[0] == sent[1]


@examples
@given(st.integers(0, 1 << 32), etrace.any_options)
def test_both_paths_of_e_trace_send_the_same(seed: int, drawn: dict[str, Any]) -> None:
    case = etrace.Case(seed, drawn, marks=False)
    sent: tuple[list[bytes], list[bytes]] = ([], [])
    for packets, invented in zip(sent, (False, True), strict=True):
        options = InventedEtrace(**vars(case.encoder_options), invented=invented)
        encoder = EtraceEncoder(options, packets.append)
        encoder.start()
        encoder.retire(case.items[:50])
        encoder.notify()
        encoder.retire(case.items[50:], case.run.next_pc)
        encoder.stop()
    assert sent[0] == sent[1]


def test_every_dialect_of_n_trace_may_take_the_fast_path() -> None:
    rng = random.Random(1)
    items = execute(Program(rng, 32, 40), rng, 300).items
    for dialect in DIALECTS.values():
        assert ntrace_steps(NtraceOptions(dialect=dialect), items) < len(items)
