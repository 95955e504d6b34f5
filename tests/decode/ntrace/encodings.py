"""Every way to build an encoder, what a decoder must be told of each, and the trace of a random execution by it."""

import random
from typing import Any

from hypothesis import strategies as st

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Sync, Tcode
from rvtrace_gdb.decode.ntrace.options import (
    DIALECTS,
    EncoderOptions,
    ImplicitReturn,
    InstSyncMode,
    Options,
    SyncPlacement,
)
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.executions import Habits, Run, execute
from tests.decode.synthetic import Program

_CHUNKS = st.lists(st.integers(1, 6), max_size=4).map(tuple)

FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "dialect": st.sampled_from(["1.0", *DIALECTS]),
    "btm": st.booleans(),
    "sync_mode": st.sampled_from(InstSyncMode),
    "sync_max": st.integers(0, 5),
    "implicit_return": st.sampled_from(ImplicitReturn),
    "return_depth": st.sampled_from([1, 2, 5, 32, 1023]),
    "partial_bits": st.sampled_from([4, 8, 12, 20]),
    "sequential_jump": st.booleans(),
    "repeated_history": st.booleans(),
    "repeat_branch": st.booleans(),
    "hrepeat_limit": st.sampled_from([2, 3, 10, (1 << 18) - 1]),
    "bcnt_limit": st.sampled_from([1, 2, 9, (1 << 18) - 1]),
    "all_jumps": st.booleans(),
    "extend_addr_msb": st.booleans(),
    "timestamps": st.booleans(),
    "timestamp_bits": st.sampled_from([0, 40, 64]),
    "timestamp_sparse": st.sampled_from([1, 1, 2, 7]),
    "context": st.booleans(),
    "icnt_limit": st.sampled_from([1, 4, 8, 16, 64, 512, 1 << 16]),
    "hist_limit": st.integers(2, 32),
    "full_at_once": st.booleans(),
    "icnt_full_sync": st.booleans(),
    "icnt_by_block": st.booleans(),
    "hist_full_first": st.booleans(),
    "hist_chunks": _CHUNKS,
    "repeat_trims": st.sampled_from([(), (1,), (3, 1), (2, 5)]),
    "repeat_shortest": st.booleans(),
    "repeat_broken_by_icnt": st.booleans(),
    "run_minimum": st.sampled_from([1, 3, 16]),
    "b_type_extended": st.booleans(),
    "indirect_without_hist": st.booleans(),
    "correlation_without_hist": st.booleans(),
    "sync_placement": st.sampled_from(SyncPlacement),
    "linear_sync": st.sampled_from(
        [None, None, Tcode.PROG_TRACE_SYNC, Tcode.DIRECT_BRANCH_SYNC, Tcode.INDIRECT_BRANCH_SYNC,
         Tcode.INDIRECT_BRANCH_HIST_SYNC]
    ),
    "trap_return_sync": st.booleans(),
    "ownership_full": st.booleans(),
    "exact_context": st.booleans(),
    "context_by_sync": st.booleans(),
    "empty_fields": st.booleans(),
    "field_padding": st.sampled_from([0, 0, 0, 1, 3]),
    "marks_keep_hist": st.booleans(),
    "idle_bytes": st.sampled_from([0, 0, 1, 5]),
    "idle_before_sync": st.sampled_from([0, 0, 1, 9]),
}  # fmt: skip
"""All fields of `EncoderOptions` but SRC and XLEN, which a case chooses; a test holds that none is left out.

Dialects go by their names, for reports that can be read.
"""

SOURCES = st.integers(0, 12).flatmap(lambda bits: st.tuples(st.just(bits), st.integers(0, (1 << bits) - 1)))


def legal(drawn: dict[str, Any]) -> dict[str, Any]:
    """The nearest options an encoder can have (those `EncoderOptions` refuses are tested with it)."""
    drawn = dict(drawn)
    full = drawn["hist_limit"] - 1
    drawn["hist_chunks"] = () if drawn["repeated_history"] else tuple(min(n, full) for n in drawn["hist_chunks"])
    drawn["icnt_full_sync"] &= drawn["btm"] or drawn["dialect"] == "rc7"
    if drawn["btm"] and drawn["linear_sync"] is Tcode.INDIRECT_BRANCH_HIST_SYNC:
        drawn["linear_sync"] = None
    return drawn


encoder_fields = st.fixed_dictionaries(FIELDS).map(legal)
"""Keyword arguments of `EncoderOptions`: any legal combination."""


@st.composite
def few_fields(draw: st.DrawFn) -> dict[str, Any]:
    """The same with most fields at their default, where combinations of two or three show best."""
    names = draw(st.lists(st.sampled_from(sorted(FIELDS)), max_size=4, unique=True))
    defaults = {name: getattr(EncoderOptions(), name) for name in FIELDS}
    return legal(defaults | {"dialect": "1.0"} | {name: draw(FIELDS[name]) for name in names})


any_fields = st.one_of(encoder_fields, few_fields())


def decoder_options(options: EncoderOptions) -> Options:
    """What a decoder must know of an encoder: all else is in the messages."""
    return Options(
        src_bits=options.src_bits,
        src_id=options.src_id if options.src_bits else None,
        timestamps=options.timestamps,
        timestamp_bits=options.timestamp_bits,
        btm=options.btm,
        implicit_return=options.implicit_return,
        sequential_jump=options.sequential_jump,
        all_jumps=options.all_jumps,
        extend_addr_msb=options.extend_addr_msb,
        sync_period=1 << options.sync_max + 4 if options.sync_mode is InstSyncMode.MESSAGES else None,
        dialect=options.dialect,
    )


class Case:
    """A program, an execution and its trace. *fields*: of `EncoderOptions`, beside src_bits, src_id and xlen.

    times   the clock when each instruction retired
    breaks  chance that messages are lost, or tracing is off for a while, after a few items
    """

    def __init__(
        self,
        seed: int,
        fields: dict[str, Any] | None = None,
        source: tuple[int, int] = (0, 0),
        *,
        steps: int = 400,
        trap_rate: float = 0.01,
        marks: bool = True,
        breaks: float = 0,
    ) -> None:
        self.rng = rng = random.Random(seed)
        xlen = rng.choice([32, 64])
        self.program = Program(rng, xlen, rng.randint(8, 60), rng.choice([(), ("plain", "branch", "jump", "odd")]))
        fields = {"dialect": "1.0"} | (fields or {})
        fields["dialect"] = DIALECTS[fields["dialect"]]
        self.encoder_options = EncoderOptions(**fields, src_bits=source[0], src_id=source[1], xlen=xlen)
        self.options = decoder_options(self.encoder_options)
        self.run: Run = execute(self.program, rng, steps, _habits(self.encoder_options, rng, trap_rate))
        self.messages: list[bytes] = []
        self.times: list[int] = []
        self._trace(marks, breaks)
        self.trace = b"".join(self.messages)

    def decode(self, data: bytes, *, wrapped: bool = False) -> History:
        """*data* by this program and these options."""
        return decode(data, self.program.image(), self.options, wrapped=wrapped)

    def _trace(self, marks: bool, breaks: float) -> None:
        """Tells the encoder everything, in pieces of any size, with triggers and pauses in between."""
        rng, now, pending = self.rng, self.rng.randrange(1 << 30), list[Block | IngressTrap]()
        encoder = Encoder(self.encoder_options, self.messages.append)
        encoder.time(now)
        encoder.start(Sync.EXIT_FROM_DEBUG)
        for number, item in enumerate(self.run.items):
            if isinstance(item, ProgramContext):
                encoder.retire(pending, cycles=0)
                pending = []
                encoder.context(item)
                continue
            pending.append(item)
            self.times += [now] * (item.instructions if isinstance(item, Block) else 0)
            if rng.random() < 0.3:
                encoder.retire(pending, _next_pc(self.run, number) if rng.random() < 0.5 else None, cycles=0)
                pending = []
                now += rng.choice([0, 1, 2, 60, 5000])
                encoder.time(now)
                if marks and rng.random() < 0.03:
                    encoder.mark(rng.choice([Sync.EXTERNAL_TRIGGER, Sync.TRACE_EVENT]))
                elif marks and rng.random() < 0.02 and not (isinstance(item, Block) and item.itype is IType.EXCEPTION):
                    encoder.stop(Evcode.TRACE_DISABLED, _next_pc(self.run, number))
                    encoder.start(Sync.TRACE_ENABLE)
                elif rng.random() < breaks:
                    _interrupt(encoder, rng, _next_pc(self.run, number))
        encoder.retire(pending, cycles=0)
        encoder.stop(Evcode.DEBUG_MODE, self.run.next_pc if rng.random() < 0.5 else None)


def _interrupt(encoder: Encoder, rng: random.Random, next_pc: int) -> None:
    """Messages are lost, or tracing goes off if it is on, and on if it is off."""
    if rng.random() < 0.5:
        encoder.error(0, rng.choice([0, 4, 12]))
    elif rng.random() < 0.7:
        encoder.stop(Evcode.TRACE_DISABLED, next_pc)
    else:
        encoder.start(Sync.TRACE_ENABLE)


def periodic(seed: int, fields: dict[str, Any], period: int = 0, **options: Any) -> Case:
    """A case with many synchronizing messages, each of which resets the encoder."""
    fields = fields | {"sync_mode": InstSyncMode.MESSAGES, "sync_max": period}
    if fields.get("dialect") == "rc7":
        del fields["dialect"]
        fields["icnt_full_sync"] = False
    return Case(seed, fields, **options)


def _next_pc(run: Run, number: int) -> int:
    """Where execution goes on after item *number*."""
    for item in run.items[number + 1 :]:
        if isinstance(item, Block):
            return item.pc
        if isinstance(item, IngressTrap):
            return item.epc
    return run.next_pc


def _habits(options: EncoderOptions, rng: random.Random, trap_rate: float) -> Habits:
    """An execution such an encoder can trace: simple counting needs returns that are well behaved."""
    counting = options.implicit_return is ImplicitReturn.COUNTER
    partial = options.implicit_return is ImplicitReturn.PARTIAL_STACK
    return Habits(
        trap_rate=trap_rate,
        wander=0 if counting else rng.choice([0, 0.05, 0.3]),
        told_apart=options.partial_bits if partial else 64,
        depth=rng.choice([3, 12, 40, 200]),
        ecalls=rng.random() < 0.3,
        contexts=options.context,
    )
