"""Every way to build an E-Trace encoder, and the trace of a random execution of a random program by it."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import fields as fields_of
from typing import Any

from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace.decoder import decode
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.etrace.encoder.options import ContextType, EncoderOptions, EndReport, ResyncMode
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters, TrapHandlers
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.etrace.naive_decoder import NaiveDecoder
from tests.decode.executions import Habits, Item, Run, execute
from tests.decode.synthetic import Program

MIX = ("plain", "branch", "jump", "odd")

PARAMETERS: dict[str, st.SearchStrategy[Any]] = {
    "iaddress_lsb": st.sampled_from([0, 1, 1]),
    "privilege_width": st.sampled_from([2, 3]),
    "ecause_width": st.integers(4, 6),
    "context_width": st.sampled_from([0, 0, 11, 32]),
    "time_width": st.sampled_from([0, 0, 16, 48]),
    "bpred_size": st.integers(1, 7),
    "cache_size": st.integers(1, 6),
    "return_stack_size": st.sampled_from([0, 1, 2, 5]),
    "call_counter_size": st.sampled_from([0, 0, 1, 3, 8]),
    "f0s_width": st.sampled_from([None, None, 1, 2]),
    "ecall_retires": st.booleans(),
}
MODES: dict[str, st.SearchStrategy[Any]] = {
    name: st.booleans()
    for name in ("full_address", "implicit_exception", "sijump", "implicit_return", "branch_prediction",
                 "jump_target_cache", "resync_disabled")
}  # fmt: skip
FREEDOMS: dict[str, st.SearchStrategy[Any]] = {
    "sync_mode": st.sampled_from(ResyncMode),
    "sync_max": st.sampled_from([0, 0, 1, 2, 4]),
    "compress": st.booleans(),
    "context": st.sampled_from(ContextType),
    "stop": st.sampled_from(EndReport),
    "shortest": st.booleans(),
    "epc_after_inferred": st.booleans(),
}

RESERVED_CAUSES = frozenset({14, 17, *range(32, 48)})
"""Of exceptions, by the privileged architecture (table of mcause): a hart takes none of these."""

Drawn = dict[str, Any]


def legal(drawn: Drawn) -> Drawn:
    """The nearest options an encoder can have (those `EncoderOptions` refuses are tested with it)."""
    drawn = dict(drawn)
    if not drawn["return_stack_size"] and not drawn["call_counter_size"]:
        drawn["return_stack_size"] = 3
    # A predictor or a cache that is not used is not there: without f0s_width its size would make room for subformat.
    for mode, size in (("branch_prediction", "bpred_size"), ("jump_target_cache", "cache_size")):
        if not drawn[mode]:
            drawn[size] = 0
    # "Resynchronization is disabled" is what resync_disabled says.
    if drawn["resync_disabled"]:
        drawn["sync_mode"] = ResyncMode.OFF
    return drawn


everything = st.fixed_dictionaries(PARAMETERS | MODES | FREEDOMS).map(legal)
_PLAIN: Drawn = {
    name: getattr(source, name)
    for source, table in ((Parameters(), PARAMETERS), (Modes(), MODES), (EncoderOptions(), FREEDOMS))
    for name in table
}


@st.composite
def _few(draw: st.DrawFn) -> Drawn:
    """Most at their default, where combinations of two or three show best."""
    table = PARAMETERS | MODES | FREEDOMS
    names = draw(st.lists(st.sampled_from(sorted(table)), max_size=5, unique=True))
    sized = {name: draw(table[name]) for name in ("bpred_size", "cache_size")}
    return legal(_PLAIN | sized | {name: draw(table[name]) for name in names})


any_options = st.one_of(everything, _few())
"""Fields of Parameters, Modes and EncoderOptions: any legal combination."""


def _part(kind: type, drawn: Drawn) -> Drawn:
    return {field.name: drawn[field.name] for field in fields_of(kind) if field.name in drawn}


class Case:
    """A program, an execution and its trace.

    traps      (how many instructions retired before, trap)
    trap_rate  chance of a trap before any instruction
    marks      notifications come now and then
    breaks     chance that packets are lost, or tracing is off for a while, after an item
    """

    def __init__(
        self,
        seed: int,
        drawn: Drawn,
        *,
        steps: int = 400,
        trap_rate: float = 0.01,
        marks: bool = True,
        breaks: float = 0,
    ) -> None:
        self.rng = rng = random.Random(seed)
        xlen = rng.choice([32, 64])
        parameters = Parameters(iaddress_width=xlen, iret_ext=drawn.get("iret_ext", True), **_part(Parameters, drawn))
        modes = Modes(**_part(Modes, drawn))
        mix = MIX[:-1] if _counts_only(parameters, modes) else rng.choice([(), MIX])
        self.program = Program(rng, xlen, rng.randint(8, 60), mix, forward=True)
        made = {name: drawn[name] for name in (*FREEDOMS, "support") if name in drawn}
        self.encoder_options = EncoderOptions(parameters, modes, **made)
        self.run = execute(self.program, rng, steps, _habits(self.encoder_options, rng, trap_rate))
        self.image = self.program.image()
        handlers_of = sorted({trap.handler for _, trap in self.run.traps})
        causes = dict(zip(handlers_of, _causes(parameters)[: len(handlers_of)], strict=True))
        self.items = [*_told(self.run, self.image, parameters, causes, rng)]
        self.traps = [*_traps(self.items)]
        handlers = TrapHandlers(handlers={(cause, i): at for at, cause in causes.items() for i in (False, True)})
        support = self.encoder_options.support
        self.options = Options(parameters, modes, pinned=True, support=support, trap_handlers=handlers)
        self.packets: list[bytes] = []
        self._trace(marks, breaks)
        self.trace = self.framed(self.packets)

    @property
    def pcs(self) -> list[int]:
        """What retired."""
        return self.run.pcs

    def framed(self, packets: Iterable[bytes]) -> bytes:
        """Packets in e-trace-encap: each with its length before it."""
        return b"".join(bytes([len(packet)]) + packet for packet in packets)

    def decode(self, data: bytes, *, wrapped: bool = False) -> History:
        """*data* by this program and these options."""
        return decode(data, self.image, self.options, Encapsulation(), wrapped=wrapped)

    def naive(self, packets: list[bytes] | None = None) -> NaiveDecoder:
        """The other decoder, after these packets."""
        decoder = NaiveDecoder(self.image, self.options)
        decoder.decode(self.packets if packets is None else packets)
        return decoder

    def _trace(self, marks: bool, breaks: float) -> None:
        """Tells the encoder everything, in pieces of any size."""
        rng, now, pending = self.rng, self.rng.randrange(1 << 12), list[Item]()
        encoder = Encoder(self.encoder_options, self.packets.append)
        encoder.time(now)
        encoder.context(ProgramContext(3))
        encoder.start()
        for item in self.items:
            pending.append(item)
            if rng.random() < 0.3:
                encoder.retire(pending)
                pending = []
                now += rng.choice([0, 1, 2, 60, 5000])
                encoder.time(now)
                if marks and rng.random() < 0.05:
                    encoder.notify()
                elif rng.random() < breaks:
                    self._interrupt(encoder)
        encoder.retire(pending)
        encoder.stop(self.run.next_pc)

    def _interrupt(self, encoder: Encoder) -> None:
        """Packets are lost, or tracing is off for a while."""
        if self.rng.random() < 0.5:
            encoder.lost()
        else:
            encoder.stop()
            encoder.start()


def _traps(items: Iterable[Item]) -> Iterator[tuple[int, IngressTrap]]:
    position = 0
    for item in items:
        if isinstance(item, IngressTrap):
            yield position, item
        elif isinstance(item, Block):
            position += item.instructions


def _causes(parameters: Parameters) -> list[int]:
    """Those a packet can tell."""
    return [cause for cause in range(1 << parameters.ecause_width) if cause not in RESERVED_CAUSES]


def _told(run: Run, image: Image, parameters: Parameters, causes: dict[int, int], rng: random.Random) -> Iterator[Item]:
    """The items, a constant and the jump to it in one block, traps with causes and values."""
    before: Block | None = None
    for item in _settled(run.items, image):
        if isinstance(item, IngressTrap):
            item = item._replace(cause=causes[item.handler], tval=0 if item.interrupt else rng.choice([0, 5, item.epc]))
        if before is not None and isinstance(item, Block) and item.pc == before.fall:
            item = _joined(before, item, image)
        elif before is not None:
            yield before
        before = item if isinstance(item, Block) and _loads(item, image) else None
        if before is None:
            yield item
    if before is not None:
        yield before


def _settled(items: Iterable[Item], image: Image) -> Iterator[Item]:
    """Contexts of the same privilege come only where an instruction can have changed them: not behind a jump or branch,
    nor between a constant and a jump to it.
    """
    privilege: int | None = None
    waiting: ProgramContext | None = None
    plain = True
    for item in items:
        if not isinstance(item, ProgramContext):
            yield item
            plain = isinstance(item, Block) and item.itype is IType.NONE and not _loads(item, image)
        elif item.prv != privilege:
            privilege, waiting = item.prv, None
            yield item
        else:
            waiting = item
        if waiting is not None and plain:
            yield waiting
            waiting = None


def _loads(block: Block, image: Image) -> bool:
    """Whether the last instruction is one that loads a constant."""
    return block.itype is IType.NONE and image.instruction(last_pc(block)).upper is not None


def last_pc(block: Block) -> int:
    """The address of the last instruction."""
    return block.fall - 2 * block.lengths[-1]


def _joined(first: Block, second: Block, image: Image) -> Block:
    at, listed = first.pc, []
    for length in first.lengths + second.lengths:
        listed.append(image.instruction(at))
        at += 2 * length
    return Block.from_instructions(first.pc, listed, image.xlen)


def _counts_only(parameters: Parameters, modes: Modes) -> bool:
    """Whether returns are expected to go where they came from, without a look: no co-routines, which do not."""
    return modes.implicit_return and not parameters.return_stack_size


def _habits(options: EncoderOptions, rng: random.Random, trap_rate: float) -> Habits:
    """An execution such an encoder can trace: simple counting needs returns that are well behaved."""
    return Habits(
        trap_rate=trap_rate,
        wander=0 if _counts_only(options.parameters, options.modes) else rng.choice([0, 0.05, 0.3]),
        depth=rng.choice([3, 12, 40]),
        ecalls=options.parameters.ecall_retires,
        contexts=rng.random() < 0.3,
        custom_jumps=False,
        handlers=len(_causes(options.parameters)),
    )
