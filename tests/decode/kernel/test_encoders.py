"""An encoder with the kernel sends what it sends without: for random programs, and every way to build an encoder.

Each execution is encoded several times by the same encoder, so that the kernel knows what it has learnt.
"""

import os
import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder as EtraceEncoder
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions as EtraceOptions
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.kernel.loading import absence
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder as NtraceEncoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync
from rvtrace_gdb.decode.ntrace.options import SIFIVE, EncoderOptions, ImplicitReturn, InstSyncMode
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace import random_programs as etrace
from tests.decode.executions import Run, execute
from tests.decode.ntrace import encodings as ntrace
from tests.decode.ntrace.messages import message
from tests.decode.synthetic import Program
from tests.helpers.amounts import some_of

pytestmark = pytest.mark.skipif(bool(absence()), reason=f"there is no kernel: {absence()}")
examples = settings(derandomize=True, max_examples=some_of(150), deadline=None)
Item = Block | IngressTrap | ProgramContext
ROUNDS = 3


class NtraceWithout(NtraceEncoder):
    """Counts what is encoded without the kernel."""

    steps = 0

    def _encode_item(self, item: Item) -> None:
        self.steps += 1
        super()._encode_item(item)


class EtraceWithout(EtraceEncoder):
    """The same."""

    steps = 0

    def _encode_item(self, item: Item) -> None:
        self.steps += 1
        super()._encode_item(item)


def both(encoded: Callable[[], list[bytes]]) -> None:
    """Compare what is sent with the kernel and without."""
    with_kernel = encoded()
    with patch.dict(os.environ, RVTRACE_KERNEL="0"):
        assert encoded() == with_kernel


def ntrace_messages(options: EncoderOptions, run: Run, seed: int, *, plain: bool) -> list[bytes]:
    """What is sent for an execution, told in pieces; unless *plain*, with all that may come in between."""
    rng, now = random.Random(seed), 1 << 20
    sent: list[bytes] = []
    encoder = NtraceEncoder(options, sent.append)
    for _ in range(ROUNDS):
        encoder.start(Sync.EXIT_FROM_DEBUG)
        at = 0
        while at < len(run.items):
            size = rng.choice([1, 7, 100])
            encoder.retire(run.items[at : at + size], cycles=None if plain else rng.choice([None, None, size]))
            at += size
            if not plain and rng.random() < 0.1:
                encoder.mark(Sync.TRACE_EVENT)
            if not plain and rng.random() < 0.3:
                now += rng.choice([1, 5, 1000])
                encoder.time(now)
            if not plain and rng.random() < 0.1:
                encoder = deepcopy(encoder, {id(sent): sent, id(options): options})
        encoder.stop(Evcode.DEBUG_MODE, run.next_pc)
    return sent


@examples
@given(st.integers(0, 1 << 32), ntrace.any_fields, ntrace.SOURCES, st.sampled_from([0.01, 0.4]), st.booleans())
def test_n_trace(seed: int, fields: dict[str, Any], source: tuple[int, int], trap_rate: float, plain: bool) -> None:
    case = ntrace.Case(seed, fields, source, trap_rate=trap_rate)
    both(lambda: ntrace_messages(case.encoder_options, case.run, seed, plain=plain))


KERNEL_OPTIONS: dict[str, dict[str, Any]] = {
    "HTM": {},
    "BTM": {"btm": True},
    "returns": {"implicit_return": ImplicitReturn.FULL_STACK, "sequential_jump": True},
    "partial": {"implicit_return": ImplicitReturn.PARTIAL_STACK, "return_depth": 2, "btm": True},
    "times": {"timestamps": True},
    "short times": {"timestamps": True, "timestamp_bits": 3},
    "times of branches": {"timestamps": True, "btm": True},
    "contexts": {"context": True, "all_jumps": True},
    "halfwords": {"sync_mode": InstSyncMode.HALFWORDS, "sync_max": 6},
    "messages": {"sync_mode": InstSyncMode.MESSAGES, "sync_max": 2, "btm": True},
    "cycles": {"sync_mode": InstSyncMode.CYCLES, "sync_max": 5},
    "short history": {"hist_limit": 4, "full_at_once": False},
}


@pytest.mark.parametrize("name", KERNEL_OPTIONS)
def test_the_kernel_does_most(name: str) -> None:
    """What is known it encodes, and that is what would be sent without it."""
    options = EncoderOptions(**KERNEL_OPTIONS[name])
    rng = random.Random(1)
    run = execute(Program(rng, 64, 40), rng, 3000)
    both(lambda: ntrace_messages(options, run, 1, plain=True))
    both(lambda: ntrace_messages(options, run, 1, plain=False))
    items = run.items
    encoder = NtraceWithout(options, lambda _: None)
    for _ in range(ROUNDS):
        encoder.steps = 0
        encoder.start(Sync.EXIT_FROM_DEBUG)
        encoder.retire(items)
        encoder.stop(Evcode.DEBUG_MODE)
    assert encoder.steps < len(items) / 10


@pytest.mark.parametrize("limit", range(4, 12))
def test_a_counter_that_is_often_full(limit: int) -> None:
    rng = random.Random(limit)
    run = execute(Program(rng, 64, 40), rng, 1000)
    both(lambda: ntrace_messages(EncoderOptions(btm=True, icnt_limit=limit), run, 1, plain=True))


def test_addresses_of_which_few_bits_are_sent() -> None:
    """SiFive's encoders leave out the high ones."""
    options = EncoderOptions(dialect=replace(SIFIVE, address_bits=40))
    far = Block(0xFFFF_FFC0_0000_0000, bytes([2, 1]), IType.OTHER_UNINFERABLE)
    near = Block(0x1000, bytes([2, 1]), IType.OTHER_UNINFERABLE)

    def messages() -> list[bytes]:
        sent: list[bytes] = []
        encoder = NtraceEncoder(options, sent.append)
        encoder.start(Sync.EXIT_FROM_DEBUG)
        encoder.retire([far, near] * 10)
        return sent

    both(messages)


@pytest.mark.parametrize("btm", [False, True])
@pytest.mark.parametrize("src_bits", range(13))
def test_an_empty_counter_behind_src(src_bits: int, btm: bool) -> None:
    """An interrupt right after a jump has I-CNT 0, which takes a byte where B-TYPE and SRC end one (3.1)."""
    source = (src_bits, 1 if src_bits else 0)
    options = EncoderOptions(src_bits=source[0], src_id=source[1], btm=btm)
    jump, trap = Block(0x1000, bytes([2, 1]), IType.OTHER_UNINFERABLE), IngressTrap(0x2000, True, 7, 0, 0x1000)
    name, rest = ("IndirectBranch", {}) if btm else ("IndirectBranchHist", {"hist": 1})
    jumped, trapped = (
        message(name, source, b_type=b_type, icnt=icnt, uaddr=0x3000 >> 1, **rest) for b_type, icnt in ((0, 3), (3, 0))
    )
    steps = 0

    def messages() -> list[bytes]:
        nonlocal steps
        sent: list[bytes] = []
        encoder = NtraceWithout(options, sent.append)
        encoder.start(Sync.EXIT_FROM_DEBUG)
        encoder.retire([jump, trap] * 100)
        steps = encoder.steps
        return sent[1:]

    with_kernel = messages()
    assert steps < 20
    with patch.dict(os.environ, RVTRACE_KERNEL="0"):
        assert messages() == with_kernel
    assert with_kernel[:199] == ([jumped, trapped] * 100)[:199]


def etrace_packets(case: etrace.Case, seed: int, *, plain: bool) -> list[bytes]:
    """The same for E-Trace."""
    rng = random.Random(seed)
    sent: list[bytes] = []
    encoder = EtraceEncoder(case.encoder_options, sent.append, sent.extend)
    for _ in range(ROUNDS):
        encoder.start()
        at = 0
        while at < len(case.items):
            size = rng.choice([1, 7, 100])
            encoder.retire(case.items[at : at + size], cycles=None if plain else rng.choice([None, None, size]))
            at += size
            if not plain and rng.random() < 0.1:
                encoder.notify()
            if not plain and rng.random() < 0.1:
                encoder = deepcopy(encoder, {id(sent): sent, id(case.encoder_options): case.encoder_options})
        encoder.stop(case.run.next_pc)
    return sent


@examples
@given(st.integers(0, 1 << 32), etrace.any_options, st.booleans())
def test_e_trace(seed: int, drawn: dict[str, Any], plain: bool) -> None:
    case = etrace.Case(seed, drawn, marks=False)
    both(lambda: etrace_packets(case, seed, plain=plain))


@pytest.mark.parametrize("drawn", [{}, {"full_address": True}, {"sijump": True}], ids=str)
def test_the_kernel_does_most_of_e_trace(drawn: dict[str, Any]) -> None:
    case = etrace.Case(1, drawn, marks=False, steps=2000)
    both(lambda: etrace_packets(case, 1, plain=True))
    encoder = EtraceWithout(case.encoder_options, lambda _: None, lambda _: None)
    for _ in range(ROUNDS):
        encoder.steps = 0
        encoder.start()
        encoder.retire(case.items)
        encoder.stop()
    assert encoder.steps < len(case.items) / 2


def test_a_jump_to_a_block_that_may_end_at_once() -> None:
    """The packet about the target is sent with the instruction after it, if that is the block's last one."""
    jump = Block(0x1000, bytes([2, 1]), IType.OTHER_UNINFERABLE)
    trap = IngressTrap(0x2004, True, 7, 0, 0x1000)
    long, short = Block(0x2000, bytes([2, 1]), IType.OTHER_UNINFERABLE), Block(0x2000, bytes([2]))

    def packets() -> list[bytes]:
        sent: list[bytes] = []
        encoder = EtraceEncoder(EtraceOptions(), sent.append, sent.extend)
        encoder.start()
        encoder.retire([*[jump, long] * 5, jump, short, trap, *[jump, long] * 5])
        encoder.stop()
        return sent

    both(packets)
