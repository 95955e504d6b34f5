"""How an E-Trace encoder is built and configured: its parameters and modes, and one named option for each freedom the
document leaves.

Sources: Efficient Trace for RISC-V 2.0; the v0.8 extensions "Standard Support Packet" and "Implicit Return".
"""

from dataclasses import dataclass, field
from enum import Enum, IntEnum

from decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout


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

    parameters     what it is built with
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
    shortest: bool = True

    def __post_init__(self) -> None:
        parameters, modes = self.parameters, self.modes
        if self.itype_width not in (3, 4):
            raise ValueError(f"itype_width is 3 or 4, not {self.itype_width}")
        if not 0 <= self.sync_max <= 31:
            raise ValueError(f"sync_max is 0 to 31, not {self.sync_max}")
        if self.hcontext_at is not None and self.hcontext_at < 0:
            raise ValueError(f"hcontext_at is a bit, not {self.hcontext_at}")
        if modes.implicit_return and not (parameters.return_stack_size or parameters.call_counter_size):
            raise ValueError("implicit_return needs a return_stack_size or a call_counter_size")
        if modes.implicit_return and self.itype_width == 3:
            raise ValueError("implicit_return needs itype_width 4: with 3, calls and returns are not known")
        if modes.branch_prediction and not parameters.bpred_size:
            raise ValueError("branch_prediction needs a bpred_size")
        if modes.jump_target_cache and not parameters.cache_size:
            raise ValueError("jump_target_cache needs a cache_size")
        if parameters.f0s_width == 0 and modes.branch_prediction and modes.jump_target_cache:
            raise ValueError("branch_prediction and jump_target_cache together need an f0s_width of at least 1")

    @property
    def decoder(self) -> Options:
        """What a decoder of this encoder's packets is to be told."""
        return Options(self.parameters, self.modes, support=self.support, dialect=self.dialect)

    @property
    def period(self) -> int:
        """Units between synchronizations."""
        return 1 << self.sync_max + 4
