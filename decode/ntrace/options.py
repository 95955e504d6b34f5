"""How a trace was made, as far as a decoder must know it to read the messages."""

from dataclasses import dataclass
from enum import IntEnum

from rvtrace_gdb.decode.ntrace.dialect import RATIFIED, Dialect


class ImplicitReturn(IntEnum):
    """trTeInstImplicitReturnMode while trTeInstEnImplicitReturn is set, else OFF.

    A decoder reads all but OFF alike: it keeps all return addresses, and I-CNT says which returns were not reported.
    """

    OFF = 0
    COUNTER = 1
    PARTIAL_STACK = 2
    FULL_STACK = 3


@dataclass(frozen=True)
class Options:
    """Settings of the encoder as read back from its registers. Defaults: everything off, N-Trace 1.0.

    src_bits         width of SRC (trTeSrcBits), 0 when trTeInhibitSrc is set
    src_id           only messages of this SRC are decoded; None: all of them
    timestamps       messages may end with TSTAMP (trTsEnable)
    timestamp_bits   width of the timestamp counter (trTsWidth), for its wrap-around; 0: it does not wrap
    btm              Branch Trace Messaging (trTeInstMode 3) in place of HTM (6)
    implicit_return  trTeInstImplicitReturnMode
    sequential_jump  trTeInstEnSequentialJump
    all_jumps        trTeInstEnAllJumps
    extend_addr_msb  trTeInstExtendAddrMSB
    address_bits     significant bits of an address where an encoder sends fewer than XLEN; None: as the dialect has it
    sync_period      messages after which it synchronizes (trTeInstSyncMode 1, trTeInstSyncMax); None: not known
    dialect          which generation of encoders
    stop_at_error    give up at the first loss instead of going on at the next synchronizing message
    """

    src_bits: int = 0
    src_id: int | None = None
    timestamps: bool = False
    timestamp_bits: int = 0
    btm: bool = False
    implicit_return: ImplicitReturn = ImplicitReturn.OFF
    sequential_jump: bool = False
    all_jumps: bool = False
    extend_addr_msb: bool = False
    address_bits: int | None = None
    sync_period: int | None = None
    dialect: Dialect = RATIFIED
    stop_at_error: bool = False

    @property
    def sent_address_bits(self) -> int:
        """As `address_bits`, 0 for full addresses."""
        return self.dialect.address_bits if self.address_bits is None else self.address_bits
