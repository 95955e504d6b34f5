"""How an E-Trace encoder is built and configured, and what it keeps for its optional modes.

`EncoderOptions` has its parameters and modes, and one named option for each freedom the document leaves. Branch
predictor, jump target cache and return stack are what an encoder and its decoder keep alike. `ReturnCount` says when an
encoder tells how many calls or returns there were, for returns it does not report.

Sources: Efficient Trace for RISC-V 2.0, "Branch prediction mode", "Jump target cache mode", "Implicit return mode",
"Format 2 irreport and irdepth"; the v0.8 extensions "Standard Support Packet" and "Implicit Return" ("Format 2 irreport
and irets"), and the pseudo-code of 2.0.5 for stacks whose entries have a counter.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.packet import support_fields
from rvtrace_gdb.decode.executed.encoder_ingress import BRANCH, Block
from rvtrace_gdb.decode.program.instructions import IType


class SyncMode(IntEnum):
    """trTeInstSyncMode: what the resync timer counts ("Resynchronisation")."""

    OFF = 0
    PACKETS = 1
    CYCLES = 2
    HALFWORDS = 3


class ContextType(IntEnum):
    """ctype: what a change of context makes the encoder do ("Context type ctype values and corresponding actions").

    UNREPORTED   nothing; later synchronization packets have the new value
    IMPRECISE    a packet without an address (format 3, subformat 2), with the next instruction that sends no other
    PRECISE      the first instruction with the new context is reported, as after a change of privilege
    DISCONTINUITY  so is the last one with the old context, as before a trap
    """

    UNREPORTED = 0
    IMPRECISE = 1
    PRECISE = 2
    DISCONTINUITY = 3


class Stop(Enum):
    """How the end of tracing is told ("Format 3 subformat 3 qual_status field").

    LATE   by ended_ntr where the last packet was due to an uninferable discontinuity, else by ended_rep
    EARLY  by updiscon in that packet, and always ended_rep: the encoder sees the end coming
    """

    LATE = "late"
    EARLY = "early"


@dataclass(frozen=True)
class EncoderOptions:
    """How the encoder is built and configured. Raises ValueError for what no encoder can be.

    parameters     what it is built with; that ecall_retires, the blocks show that the hart tells
    modes          what is switched on
    dialect        whose packets it makes
    support        layout of its support packets
    sync_mode, sync_max   synchronize after 2**(sync_max + 4) units (trTeInstSyncMode, trTeInstSyncMax)
    compress       packets are shortened by sign based compression; else all fields are sent
    itype_width    of the ingress port, 3 or 4: with 3 calls and returns are not known, so there is no implicit return
    context        what a change of context makes the encoder do
    hcontext_at    bit of the field context where hcontext begins, above scontext; None: it is not sent ("Hart to
                   encoder interface" recommends the ASID in bits 15 to 0, the VMID in 29 to 16)
    stop           how the end of tracing is told
    epc_after_inferred   a trap at the target of a jump that is inferred (sijump, implicit_return) is reported with its
                   EPC (thaddr 0), as one at the target of an uninferable one, which the pseudo-code of 2.0.5 demands;
                   else with its handler (thaddr 1), as the flow chart has it
    shortest       a target in the jump target cache is sent as a difference where that makes the packet shorter, which
                   "Format selection" allows; else always as an index
    """

    parameters: Parameters = field(default_factory=Parameters)
    modes: Modes = field(default_factory=Modes)
    dialect: Dialect = Dialect.STANDARD
    support: SupportLayout = SupportLayout.REFERENCE
    sync_mode: SyncMode = SyncMode.OFF
    sync_max: int = 0
    compress: bool = True
    itype_width: int = 4
    context: ContextType = ContextType.PRECISE
    hcontext_at: int | None = None
    stop: Stop = Stop.LATE
    epc_after_inferred: bool = False
    shortest: bool = True

    def __post_init__(self) -> None:
        parameters, modes = self.parameters, self.modes
        for name, allowed in _RANGES.items():
            value = getattr(self if hasattr(self, name) else parameters, name)
            if value is not None and value not in allowed:
                raise ValueError(f"{name} is {allowed[0]} to {allowed[-1]}, not {value}")
        if parameters.iaddress_lsb >= parameters.iaddress_width:
            raise ValueError(
                f"iaddress_lsb {parameters.iaddress_lsb} leaves nothing of {parameters.iaddress_width} bits"
            )
        if modes.implicit_return and self.itype_width == 3:
            raise ValueError("implicit_return needs itype_width 4: with 3, calls and returns are not known")
        if modes.implicit_return and not (parameters.return_stack_size or parameters.call_counter_size):
            raise ValueError("implicit_return needs a return_stack_size or a call_counter_size")
        if modes.branch_prediction and not parameters.bpred_size:
            raise ValueError("branch_prediction needs a bpred_size")
        if modes.jump_target_cache and not parameters.cache_size:
            raise ValueError("jump_target_cache needs a cache_size")
        if parameters.f0s_width == 0 and modes.branch_prediction and modes.jump_target_cache:
            raise ValueError("branch_prediction and jump_target_cache together need an f0s_width of at least 1")
        if modes.resync_disabled and self.sync_mode is not SyncMode.OFF:
            raise ValueError("resync_disabled says that sync_mode is off")
        self._check_dialect()
        support_fields(self.support, parameters, modes)

    def _check_dialect(self) -> None:
        if self.dialect is Dialect.STANDARD:
            return
        for mode in ("branch_prediction", "jump_target_cache", "implicit_return"):
            if getattr(self.modes, mode):
                raise ValueError(f"packets of dialect {self.dialect.value} have no room for {mode}")
        if DEFAULTS[self.dialect].get("full_address") and not self.modes.full_address:
            raise ValueError(f"dialect {self.dialect.value} has full addresses only: full_address")

    @property
    def decoder(self) -> Options:
        """What a decoder of this encoder's packets is to be told."""
        return Options(self.parameters, self.modes, support=self.support, dialect=self.dialect)

    @property
    def period(self) -> int:
        """Units between synchronizations."""
        return 1 << self.sync_max + 4


_RANGES: Mapping[str, range] = {
    "itype_width": range(3, 5),
    "sync_max": range(32),
    "hcontext_at": range(64),
    "iaddress_width": range(8, 65),
    "iaddress_lsb": range(4),
    "privilege_width": range(1, 4),
    "ecause_width": range(1, 65),
    "context_width": range(65),
    "time_width": range(65),
    "bpred_size": range(17),
    "cache_size": range(17),
    "return_stack_size": range(12),
    "call_counter_size": range(12),
    "f0s_width": range(4),
}
"""Of numbers; those of the document's registers ("Discovery") or, where it gives none, what is sensible."""


PUSH = frozenset({IType.UNINFERABLE_CALL, IType.INFERABLE_CALL})
"""The calls. A coroutine swap is none, nor is a jump that leaves another register than x1 or x5 the return address."""


class Predictor:
    """2**bpred_size states of two bits: the upper one the prediction, the lower one the latest outcome."""

    def __init__(self, parameters: Parameters) -> None:
        self._shift = parameters.iaddress_lsb
        self._mask = (1 << parameters.bpred_size) - 1
        self._states: dict[int, tuple[bool, bool]] = {}

    def reset(self) -> None:
        """All 01, as at every synchronization."""
        self._states.clear()

    def follow(self, pc: int, taken: bool) -> bool:
        """The branch at *pc* had this outcome: whether it was the predicted one."""
        index = pc >> self._shift & self._mask
        predicted, latest = self._states.get(index, (False, True))
        if predicted != latest:
            self._states[index] = (taken, taken)
        else:
            self._states[index] = (predicted, taken)
        return predicted == taken


class JumpTargets:
    """2**cache_size addresses, each where its low bits say."""

    def __init__(self, parameters: Parameters) -> None:
        self._shift = parameters.iaddress_lsb
        self._mask = (1 << parameters.cache_size) - 1
        self._targets: dict[int, int] = {}

    def reset(self) -> None:
        """All invalid, as at every synchronization."""
        self._targets.clear()

    def follow(self, target: int) -> int | None:
        """An uninferable jump led to *target*: its index if it was there; it is now."""
        index = target >> self._shift & self._mask
        found = self._targets.get(index) == target
        self._targets[index] = target
        return index if found else None


class ReturnStack:
    """The return addresses expected, or how many: with a return_stack_size a stack, without one a counter.

    With irets a counter goes as far as the stack in the pseudo-code of 2.0.5, 2**call_counter_size; with irdepth as far
    as that field. A stack whose entries have counters too is of 2.0.5 only.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._pops_always = parameters.iret_ext
        counted = 1 << parameters.call_counter_size
        self._is_stack = parameters.return_stack_size > 0
        if self._is_stack:
            self._entries = 1 << parameters.return_stack_size
        else:
            self._entries = counted if parameters.iret_ext else counted - 1
        self._count_max = counted - 1 if self._is_stack and parameters.iret_ext else 0
        self._stack: list[list[int]] = []  # address, how many times more

    def __len__(self) -> int:
        return len(self._stack)

    def reset(self) -> None:
        """None expected, as at every synchronization."""
        self._stack.clear()

    def call(self, fall: int) -> None:
        """A call that returns to *fall*."""
        top = self._stack[-1] if self._stack else None
        if top is not None and top[0] == fall and top[1] < self._count_max:
            top[1] += 1
            return
        if len(self._stack) == self._entries:
            del self._stack[0]
        self._stack.append([fall, 0])

    def misses(self, target: int) -> bool:
        """A return to *target* would go elsewhere than expected."""
        return bool(self._stack) and self._is_stack and self._stack[-1][0] != target

    def expects(self, target: int) -> bool | None:
        """A return led to *target*: whether that was expected; None when nothing was. A counter expects anything.

        What was expected in vain stays, with irdepth, and goes, with irets: the pseudo-code of 2.0 and that of 2.0.5.
        """
        if not self._stack:
            return None
        expected, more = self._stack[-1]
        met = expected == target or not self._is_stack
        if not met and not self._pops_always:
            return False
        if more:
            self._stack[-1][1] = more - 1
        else:
            self._stack.pop()
        return met


_MOST_IRETS = 255


class Reached(Enum):
    """How an instruction was reached, as far as returns go."""

    OTHERWISE = 0
    EXPECTED = 1
    """By a return to the address expected."""
    MISSED = 2
    """By a return to another one, or one too many to leave out."""
    UNKNOWN = 3
    """By a return of which nothing was expected."""


class ReturnReporting:
    """The return addresses expected, and what happened since the last report that a decoder may need to know."""

    def __init__(self, parameters: Parameters) -> None:
        self._model = ReturnStack(parameters)
        self._counts_returns = parameters.iret_ext
        self._irets = 0  # left out since the last branch or report
        self._ambiguous = False  # a return since the last call, and no branch since that

    def synchronize(self, *, reset: bool) -> None:
        """A synchronization packet goes out."""
        self._irets = 0
        self._ambiguous = False
        if reset:
            self._model.reset()

    def reported(self) -> None:
        """An address goes out."""
        self._irets = 0
        self._ambiguous = False

    @property
    def is_open(self) -> bool:
        """A synchronization packet alone would leave open which of several returns came before it."""
        return self._irets > 0 if self._counts_returns else self._ambiguous

    def misses(self, block: Block, target: int) -> bool:
        """Whether `follow` would be `Reached.MISSED`."""
        if block.itype is not IType.RETURN:
            return False
        return self._model.misses(target) or (self._is_full() and len(self._model) > 0)

    def follow(self, block: Block, target: int, *, inferred: bool) -> Reached:
        """*block* has led to *target*, which is *told* by the code."""
        itype = block.itype
        if block.ending == BRANCH:
            self._irets = 0
            self._ambiguous = False
        elif itype in PUSH:
            self._model.call(block.fall)
            self._ambiguous = False
        elif itype is IType.RETURN and inferred:
            if self._counts_returns:
                self._model.expects(target)
        elif itype is IType.RETURN:
            return self._follow_return(target)
        return Reached.OTHERWISE

    def _follow_return(self, target: int) -> Reached:
        expected = self._model.expects(target)
        self._ambiguous = True
        if expected is None:
            return Reached.UNKNOWN
        if not expected or self._is_full():
            return Reached.MISSED
        self._irets += 1
        return Reached.EXPECTED

    def _is_full(self) -> bool:
        return self._counts_returns and self._irets == _MOST_IRETS

    def fields(self, reached: Reached, *, target: bool) -> dict[str, int]:
        """irreport and what goes with it, for an instruction reached so; *target*: of an uninferable discontinuity."""
        if self._counts_returns:
            return self._irets_fields(reached, target)
        depth = len(self._model)
        if reached is Reached.MISSED:
            return {"irreport": 1, "irdepth": depth}
        if reached is Reached.EXPECTED:
            return {"irreport": 1, "irdepth": depth} if depth else {}
        return {"irreport": 1, "irdepth": depth} if self._ambiguous and not target else {}

    def _irets_fields(self, reached: Reached, target: bool) -> dict[str, int]:
        irets = self._irets - (reached is Reached.EXPECTED)
        if target and reached is Reached.OTHERWISE:
            return {}
        if irets or reached in (Reached.EXPECTED, Reached.MISSED):
            return {"irreport": 1, "irets": irets}
        return {}
