"""How an E-Trace encoder is built and configured, and the tables of its optional modes.

`EncoderOptions` has the parameters and modes, and one named option for each choice that the document leaves to the
encoder. Branch predictor, jump target cache and return stack must be the same in an encoder and its decoder.
`ReturnReporting` determines when an encoder reports the number of calls or of implicit returns.

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


class ResyncMode(IntEnum):
    """The values of trTeInstSyncMode: the unit of the resync timer ("Resynchronisation")."""

    OFF = 0
    PACKETS = 1
    CYCLES = 2
    HALFWORDS = 3


class ContextType(IntEnum):
    """The values of ctype: how a change of context is reported ("Context type ctype values and corresponding actions").

    UNREPORTED   nothing; later synchronization packets have the new value
    IMPRECISE    a packet without an address (format 3, subformat 2), with the next instruction that sends no other
    PRECISE      the first instruction with the new context is reported, as after a change of privilege
    DISCONTINUITY  so is the last one with the old context, as before a trap
    """

    UNREPORTED = 0
    IMPRECISE = 1
    PRECISE = 2
    DISCONTINUITY = 3


class EndReport(Enum):
    """How the end of tracing is reported ("Format 3 subformat 3 qual_status field").

    LATE   by ended_ntr if the last packet was due to an uninferable discontinuity, else by ended_rep
    EARLY  by updiscon in that packet, and always ended_rep: the encoder knows of the end in advance
    """

    LATE = "late"
    EARLY = "early"


@dataclass(frozen=True)
class EncoderOptions:
    """How the encoder is built and configured. Raises ValueError for a combination that no encoder can have.

    parameters     the encoder's parameters; ecall_retires must agree with the hart's blocks
    modes          the enabled modes
    dialect        the dialect of packets
    support        the layout of support packets
    sync_mode, sync_max   synchronize after 2**(sync_max + 4) units (trTeInstSyncMode, trTeInstSyncMax)
    compress       whether to shorten packets by sign based compression; else all fields are sent
    itype_width    width of itype, 3 or 4: with 3, calls and returns are not known, so there is no implicit return
    context        how a change of context is reported
    hcontext_at    bit of the field context where hcontext begins, above scontext; None: it is not sent ("Hart to
                   encoder interface" recommends the ASID in bits 15 to 0, the VMID in 29 to 16)
    stop           how the end of tracing is reported
    epc_after_inferred   whether a trap at the target of an inferred jump (sijump, implicit_return) is reported with its
                   EPC (thaddr 0), as at the target of an uninferable jump, which the pseudo-code of 2.0.5 demands; else
                   with its handler (thaddr 1), as in the flow chart
    shortest       whether to send a target in the jump target cache as a difference if the packet is then shorter,
                   which "Format selection" allows; else always as an index
    """

    parameters: Parameters = field(default_factory=Parameters)
    modes: Modes = field(default_factory=Modes)
    dialect: Dialect = Dialect.STANDARD
    support: SupportLayout = SupportLayout.REFERENCE
    sync_mode: ResyncMode = ResyncMode.OFF
    sync_max: int = 0
    compress: bool = True
    itype_width: int = 4
    context: ContextType = ContextType.PRECISE
    hcontext_at: int | None = None
    stop: EndReport = EndReport.LATE
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
        if modes.resync_disabled and self.sync_mode is not ResyncMode.OFF:
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
        """The options of a decoder for this encoder's packets."""
        return Options(self.parameters, self.modes, support=self.support, dialect=self.dialect)

    @property
    def period(self) -> int:
        """The number of units between synchronizations."""
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
"""The ranges of numbers: those of the document's registers ("Discovery") or, if it has none, sensible ones."""


PUSH = frozenset({IType.UNINFERABLE_CALL, IType.INFERABLE_CALL})
"""The calls. A coroutine swap is none, nor is a jump with a link register other than x1 and x5."""


class BranchPredictor:
    """The branch predictor: 2**bpred_size states of two bits, the prediction and the latest outcome."""

    def __init__(self, parameters: Parameters) -> None:
        self._shift = parameters.iaddress_lsb
        self._mask = (1 << parameters.bpred_size) - 1
        self._states: dict[int, tuple[bool, bool]] = {}

    def reset(self) -> None:
        """Set all entries to 01, as at every synchronization."""
        self._states.clear()

    def follow(self, pc: int, taken: bool) -> bool:
        """Train the predictor with the outcome of the branch at *pc*, and return whether it was the predicted one."""
        index = pc >> self._shift & self._mask
        predicted, latest = self._states.get(index, (False, True))
        if predicted != latest:
            self._states[index] = (taken, taken)
        else:
            self._states[index] = (predicted, taken)
        return predicted == taken


class JumpTargets:
    """The jump target cache: 2**cache_size addresses, indexed by their low bits."""

    def __init__(self, parameters: Parameters) -> None:
        self._shift = parameters.iaddress_lsb
        self._mask = (1 << parameters.cache_size) - 1
        self._targets: dict[int, int] = {}

    def reset(self) -> None:
        """Invalidate all entries, as at every synchronization."""
        self._targets.clear()

    def follow(self, target: int) -> int | None:
        """Enter the *target* of an uninferable jump. Returns its index if it was there before, else None."""
        index = target >> self._shift & self._mask
        found = self._targets.get(index) == target
        self._targets[index] = target
        return index if found else None


class EncoderReturnStack:
    """The expected return addresses, or their number: with a return_stack_size a stack, without one a counter.

    With irets the limit of the counter is that of the stack in the pseudo-code of 2.0.5, 2**call_counter_size; with
    irdepth it is that of the field. Only 2.0.5 has a stack whose entries also have counters.
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
        self._stack: list[list[int]] = []  # address, number of further calls

    def __len__(self) -> int:
        return len(self._stack)

    def reset(self) -> None:
        """Drop all return addresses, as at every synchronization."""
        self._stack.clear()

    def call(self, fall: int) -> None:
        """Push the return address *fall* of a call."""
        top = self._stack[-1] if self._stack else None
        if top is not None and top[0] == fall and top[1] < self._count_max:
            top[1] += 1
            return
        if len(self._stack) == self._entries:
            del self._stack[0]
        self._stack.append([fall, 0])

    def misses(self, target: int) -> bool:
        """Whether *target* is not the address to which the next return is expected."""
        return bool(self._stack) and self._is_stack and self._stack[-1][0] != target

    def expects(self, target: int) -> bool | None:
        """Pop the address of a return to *target*, and return whether it was expected; None: no return was expected.

        A counter accepts any target. After a mismatch the address stays on the stack with irdepth, and is popped with
        irets: so do the pseudo-codes of 2.0 and of 2.0.5.
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
    """How an instruction was reached, as far as returns are concerned."""

    OTHERWISE = 0
    EXPECTED = 1
    """By a return to the expected address."""
    MISSED = 2
    """By a return to another address, or by one that exceeds the maximum of irets."""
    UNKNOWN = 3
    """By a return when none was expected."""


class ReturnReporting:
    """The expected return addresses, and the returns since the last report that a decoder may need to know."""

    def __init__(self, parameters: Parameters) -> None:
        self._model = EncoderReturnStack(parameters)
        self._counts_returns = parameters.iret_ext
        self._irets = 0  # implicit returns since the last branch or report
        self._ambiguous = False  # there was a return since the last call, and no branch since then

    def synchronize(self, *, reset: bool) -> None:
        """Handle a synchronization packet."""
        self._irets = 0
        self._ambiguous = False
        if reset:
            self._model.reset()

    def reported(self) -> None:
        """Handle a packet that reports an address."""
        self._irets = 0
        self._ambiguous = False

    @property
    def is_open(self) -> bool:
        """Whether a synchronization packet alone would leave open which of several returns preceded it."""
        return self._irets > 0 if self._counts_returns else self._ambiguous

    def misses(self, block: Block, target: int) -> bool:
        """Whether `follow` would be `Reached.MISSED`."""
        if block.itype is not IType.RETURN:
            return False
        return self._model.misses(target) or (self._is_full() and len(self._model) > 0)

    def follow(self, block: Block, target: int, *, inferred: bool) -> Reached:
        """Apply the jump from *block* to *target*. *inferred*: the code determines the target."""
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
        """Return irreport and its number for an instruction.

        *target*: it is the target of an uninferable discontinuity.
        """
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
