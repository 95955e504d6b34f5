"""The options of E-Trace: what a decoder must know to read packets, and an encoder to make them.

Sources: Efficient Trace for RISC-V 2.0, "Parameters and Discovery" (names, without `_p`), "Optional and run-time
configurable modes"; the v0.8 extensions "Standard Support Packet" and "Implicit Return".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

BRANCH_COUNT_BITS = 28
"""The bits of the greatest branch_count that is believed unless told otherwise: in the quickest loops, those that
poll a flag, this is a good part of a second without any other packet.
"""


class Dialect(Enum):
    """The dialect of packets, for encoders that differ from the document in more than the support packet."""

    STANDARD = "standard"
    """The packets of the document, version 2.0; with `Parameters.iret_ext`, those of its implicit return extension."""
    PULP = "pulp"
    """rv_tracer: addresses are compressed separately, to 8k + 1 bits, and the flags after them relate to the MSB."""
    PT10 = "pt10"
    """Espressif's "Processor Trace v1.0": full addresses of 31 bits, fields of whole bytes."""
    ET20 = "et20"
    """Espressif's "Efficient Trace v2.0": the flags of formats 1 and 2 precede a byte-aligned address."""
    QEMU = "qemu"
    """QEMU's trace encoder: never compressed, padded to four bytes."""


class SupportLayout(Enum):
    """The fields after format and subformat in support packets, which 2.0 leaves to implementations (`packet`)."""

    REFERENCE = "reference"
    STANDARD = "standard"
    PULP = "pulp"
    ET20 = "et20"
    PT10 = "pt10"


@dataclass(frozen=True)
class Parameters:
    """The parameters of an encoder: the discoverable attributes, without `_p`.

    iaddress_width, iaddress_lsb   bits of an instruction address; number of low bits that are not transmitted
    privilege_width, ecause_width  bits of these fields
    context_width, time_width      bits of these fields; 0: the field is absent (nocontext, notime)
    bpred_size, cache_size         branch predictor and jump target cache have 2**this entries; 0: there is none
    return_stack_size              the implicit return stack has 2**this entries; 0: there is none
    call_counter_size              bits of the call counter; 0: there is none
    f0s_width                      bits of subformat in format 0; None: 1 with both predictor and cache, else 0
    iret_ext                       irets instead of irdepth (Implicit Return extension v0.8)
    ecall_retires                  ecall and ebreak are reported as retired before their trap
    data_width, daddress_width     bits of the data and address of a data access
    lrid_width                     bits of a load request ID (split loads); 0: loads are unified
    data_format_width              bits of format in data packets: 2 with only unified loads and stores, else 3
    data_diff_width                bits of diff where it may be 1 or 2
    data_difference                if diff has one bit, compressed data is a difference, not an XOR
    data_reference                 data packets are those of the reference model: diff is fixed, the first values of a
                                   size after a support packet are full whatever diff is, 01 is a difference
    csr_width                      bits of a CSR in data packets; 0: data_width
    mmacas_ext                     data packets of the Multi-Memory Access and Compare and Swap extension v0.8
    """

    iaddress_width: int = 32
    iaddress_lsb: int = 1
    privilege_width: int = 2
    ecause_width: int = 4
    context_width: int = 0
    time_width: int = 0
    bpred_size: int = 0
    cache_size: int = 0
    return_stack_size: int = 0
    call_counter_size: int = 0
    f0s_width: int | None = None
    iret_ext: bool = False
    ecall_retires: bool = False
    data_width: int = 64
    daddress_width: int = 64
    lrid_width: int = 0
    data_format_width: int = 3
    data_diff_width: int = 2
    data_difference: bool = False
    data_reference: bool = False
    csr_width: int = 0
    mmacas_ext: bool = False


@dataclass(frozen=True)
class Modes:
    """The modes that are enabled: ioptions and doptions of support packets, trTeInstFeatures.

    full_address         trTeInstNoAddrDiff
    implicit_exception   trTeInstNoTrapAddr
    sijump               trTeInstEnSequentialJump
    implicit_return      trTeInstEnImplicitReturn
    branch_prediction    trTeInstEnBranchPrediction
    jump_target_cache    trTeInstEnJumpTargetCache
    resync_disabled      predictor, cache and return stack are kept at a synchronization (trTeInstSyncMode 0)
    data_no_address, data_no_data, data_full_address, data_full_data   the modes of data packets
    """

    full_address: bool = False
    implicit_exception: bool = False
    sijump: bool = False
    implicit_return: bool = False
    branch_prediction: bool = False
    jump_target_cache: bool = False
    resync_disabled: bool = False
    data_no_address: bool = False
    data_no_data: bool = False
    data_full_address: bool = False
    data_full_data: bool = False


@dataclass(frozen=True)
class TrapHandlers:
    """The addresses of trap handlers, for packets without them (implicit exception mode).

    tvec      the value of mtvec or stvec: base and, in its low bits, 0 for direct or 1 for vectored; None: not known
    handlers  handlers by (cause, interrupt); they take precedence over *tvec*
    """

    tvec: int | None = None
    handlers: Mapping[tuple[int, bool], int] = field(default_factory=dict)

    def handler_of(self, cause: int, interrupt: bool) -> int | None:
        """Return the address of the handler, None if it is not known."""
        known = self.handlers.get((cause, interrupt))
        if known is not None or self.tvec is None:
            return known
        return (self.tvec & ~3) + (4 * cause if interrupt and self.tvec & 3 == 1 else 0)


class Setup(NamedTuple):
    """The parameters and modes of an encoder, as far as they are known."""

    parameters: Parameters
    modes: Modes

    def __hash__(self) -> int:
        return hash(self.modes.full_address)  # that of all fields takes 2 us, for each packet; setups are few


@dataclass(frozen=True)
class Options:
    """The options of a decoder.

    parameters     the encoder's parameters
    modes          the encoder's modes until a support packet reports others
    pinned         whether to ignore the modes in support packets: *modes* apply to the whole trace
    support        the layout of support packets
    dialect        the dialect of packets
    trap_handlers  the addresses of trap handlers
    unfiltered     whether everything that runs is traced: an enabled encoder stops only when the hart halts. Else
                   filters or triggers may have left something out wherever tracing stops
    sync_packets   number of packets after which the encoder synchronizes (trTeInstSyncMode 1, trTeInstSyncMax); 0: not
                   known
    branch_count_bits  a branch_count of more bits is taken for noise: in a loop any number fits, so that nothing could
                       contradict it. The field has 32
    stop_at_error  whether to stop at the first loss instead of resuming at the next synchronizing packet
    """

    parameters: Parameters = field(default_factory=Parameters)
    modes: Modes = field(default_factory=Modes)
    pinned: bool = False
    support: SupportLayout = SupportLayout.REFERENCE
    dialect: Dialect = Dialect.STANDARD
    trap_handlers: TrapHandlers = field(default_factory=TrapHandlers)
    unfiltered: bool = False
    sync_packets: int = 0
    branch_count_bits: int = BRANCH_COUNT_BITS
    stop_at_error: bool = False
