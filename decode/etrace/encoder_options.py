"""How an E-Trace encoder is built and configured: its parameters and modes, and one named option for each freedom the
document leaves.

Sources: Efficient Trace for RISC-V 2.0; the v0.8 extensions "Standard Support Packet" and "Implicit Return".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum

from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout
from rvtrace_gdb.decode.etrace.support import fields_of


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
        fields_of(self.support, parameters, modes)

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
