"""The packets of an E-Trace encoder for instructions, and how they are built and counted.

`Branches` has the branches that were not reported yet: as a map, or as a count while all are predicted correctly.
`PacketOutput` builds packets with differences of addresses. `LocationFields` has the fields privilege, time and
context.

Source: Efficient Trace for RISC-V 2.0, "Format selection", "Format 0 packets", "Format 1 packets", "Format 3 packets".
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.decode.etrace.encoder.options import BranchPredictor, EncoderOptions
from rvtrace_gdb.decode.etrace.layout import (
    BRANCH_COUNT_BITS,
    LEAST_BRANCH_COUNT,
    MAP_BITS,
    BranchFmt,
    Ext,
    SyncSubformat,
    TeInstFormat,
)
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.decode.etrace.packet import QualStatus, codec, support_fields
from rvtrace_gdb.decode.program.csrs import ProgramContext

_OPT_EXT = int(TeInstFormat.OPT_EXT)
_DIFF_DELTA = int(TeInstFormat.DIFF_DELTA)
_ADDR_ONLY = int(TeInstFormat.ADDR_ONLY)
_COUNT = int(Ext.BRANCH_COUNT)
_TARGET = int(Ext.JUMP_TARGET)
_NO_ADDR = int(BranchFmt.NO_ADDR)
_ADDR = int(BranchFmt.ADDR)
_ADDR_FAIL = int(BranchFmt.ADDR_FAIL)
FULL_MAP = 31
"""The number of branches in a full map."""
MAX_BRANCH_COUNT = LEAST_BRANCH_COUNT + (1 << BRANCH_COUNT_BITS) - 1
"""The number of correctly predicted branches at which they are reported in any case."""

PacketFields = tuple[int, int | None, Mapping[str, int]]
"""The format, subformat and fields of a packet."""


class Branches:
    """The outcomes of branches that were not reported yet.

    map     the outcomes, the oldest one in bit 0; 1 is not taken
    count   the number of branches, or of those predicted correctly if they are too many for a map
    is_due  whether they must be reported now (rpt_br, or a count at its maximum)
    """

    def __init__(self, options: EncoderOptions) -> None:
        self._predictor = BranchPredictor(options.parameters) if options.modes.branch_prediction else None
        self.clear()

    def clear(self) -> None:
        """Clear the branches after a report."""
        self.map = self.count = 0
        self.is_due = False
        self._correct = self._predictor is not None  # all were predicted correctly
        self._failed = False  # the last one was mispredicted, with too many before it for a map

    def follow(self, pc: int, taken: bool) -> None:
        """Add the branch at *pc*, which retired."""
        if self._predictor is None:
            if not taken:
                self.map |= 1 << self.count
            self.count += 1
            self.is_due = self.count == FULL_MAP
            return
        predicted = self._predictor.follow(pc, taken)
        if self._correct and self.count >= FULL_MAP:
            self._failed = not predicted
            self.count += predicted
            self.is_due = self._failed or self.count >= MAX_BRANCH_COUNT
            return
        self._correct = self._correct and predicted
        if not taken:
            self.map |= 1 << self.count
        self.count += 1
        self.is_due = self.count == FULL_MAP and not self._correct

    def synchronize(self, pc: int, taken: bool | None, *, reset: bool) -> None:
        """Handle a synchronization packet for the instruction at *pc*. *taken*: its outcome, if it is a branch.

        With *reset* the predictor is reset and then trained with that branch.
        """
        if self._predictor is not None and reset:
            self._predictor.reset()
            if taken is not None:
                self._predictor.follow(pc, taken)
        self.clear()

    @property
    def is_counted(self) -> bool:
        """Whether the branches can only be reported as a count."""
        return self._correct and self.count >= FULL_MAP

    def alone(self) -> PacketFields:
        """Return the packet that reports the branches without an address."""
        if self.is_counted:
            return _OPT_EXT, _COUNT, {"branch_count": self.count - FULL_MAP, "branch_fmt": _NO_ADDR}
        return _DIFF_DELTA, None, {"branches": 0, "branch_map": self.map}

    def indexed(self, index: int, fields: Mapping[str, int]) -> PacketFields:
        """Return the packet that reports the branches with an *index* of the jump target cache and further *fields*."""
        branches = {"branches": self.count, "branch_map": self.map} if self.count else {"branches": 0}
        return _OPT_EXT, _TARGET, {"index": index, **branches, **fields}

    def addressed(self, fields: Mapping[str, int]) -> PacketFields:
        """Return the packet that reports the branches with an address, which is one of *fields*."""
        if self.is_counted:
            branch_fmt = _ADDR_FAIL if self._failed else _ADDR
            return _OPT_EXT, _COUNT, {"branch_count": self.count - FULL_MAP, "branch_fmt": branch_fmt, **fields}
        if self.count:
            return _DIFF_DELTA, None, {"branches": self.count, "branch_map": self.map, **fields}
        return _ADDR_ONLY, None, fields


_SYNC = int(TeInstFormat.SYNC)
_SUPPORT = int(SyncSubformat.SUPPORT)


class PacketOutput:
    """Builds and sends packets.

    count      the number of packets since the last synchronization
    reference  the address that was reported last
    """

    def __init__(self, options: EncoderOptions, emit: Callable[[bytes], None]) -> None:
        self._options = options
        self.emit = emit
        self._build = codec(options.decoder, options.modes).build
        self._compress = options.compress
        self._is_short = options.compress and options.dialect is Dialect.STANDARD
        self._full = options.modes.full_address
        self._low = options.parameters.iaddress_lsb
        self._sign = 1 << options.parameters.iaddress_width - 1
        self._mask = 2 * self._sign - (1 << self._low)
        self.reference = 0
        self.count = 0

    def send(self, format: int, subformat: int | None, fields: Mapping[str, int]) -> None:
        """Send a packet."""
        self.emit(self._build(format, subformat, fields, compress=self._compress))
        self.count += 1

    def report(self, branches: Branches, pc: int, fields: Mapping[str, int], index: int | None) -> None:
        """Report the instruction at *pc* and *branches*.

        *fields*: further fields; *index*: in the jump target cache.
        """
        pc &= self._mask
        payload = self._addressed(branches, pc if self._full else pc - self.reference & self._mask, fields)
        if index is not None:
            indexed = self._payload(branches.indexed(index, fields))
            if len(indexed) <= len(payload) or not self._options.shortest:
                payload = indexed
        self.reference = pc
        self.emit(payload)
        self.count += 1

    def _addressed(self, branches: Branches, address: int, fields: Mapping[str, int]) -> bytes:
        if fields or branches.is_counted or not self._is_short:
            return self._payload(branches.addressed({"address": address, **fields}))
        # Sign based compression removes flags that are not set: the packet is a number in two's complement.
        difference = (address ^ self._sign) - self._sign >> self._low
        count = branches.count
        if count:
            bits = difference << 7 + MAP_BITS[count] | branches.map << 7 | count << 2 | _DIFF_DELTA
        else:
            bits = difference << 2 | _ADDR_ONLY
        return bits.to_bytes((bits if bits >= 0 else ~bits).bit_length() // 8 + 1, "little", signed=True)

    def _payload(self, described: PacketFields) -> bytes:
        format, subformat, fields = described
        return self._build(format, subformat, fields, compress=self._compress)

    def sync(self, subformat: int, fields: Mapping[str, int], pc: int) -> None:
        """Send a synchronization packet for the instruction at *pc*."""
        self.reference = pc & self._mask
        self.send(_SYNC, subformat, {**fields, "address": self.reference})
        self.count = 0

    def support(self, qual_status: QualStatus, *, ienable: bool, denable: bool, dloss: bool = False) -> None:
        """Send a support packet."""
        options = self._options
        fields = support_fields(
            options.support,
            options.parameters,
            options.modes,
            ienable=ienable,
            qual_status=qual_status,
            denable=denable,
            dloss=dloss,
        )
        self.send(_SYNC, _SUPPORT, fields)


class LocationFields:
    """The fields privilege, time and context of synchronizing packets, with the widths that an encoder has."""

    def __init__(self, options: EncoderOptions) -> None:
        parameters = options.parameters
        self._privilege_width = parameters.privilege_width
        self._time_mask = (1 << parameters.time_width) - 1
        self._context_mask = (1 << parameters.context_width) - 1
        self._hcontext_at = options.hcontext_at

    def fields_at(self, context: ProgramContext, time: int) -> dict[str, int]:
        """Return the fields for this context and time."""
        value = context.scontext or 0
        if self._hcontext_at is not None:
            value |= (context.hcontext or 0) << self._hcontext_at
        masked = {"time": time & self._time_mask, "context": value & self._context_mask}
        return {"privilege": privilege(context, self._privilege_width), **masked}


def privilege(context: ProgramContext, width: int) -> int:
    """Return the value of the field privilege ("Privilege level encoding"); for an unknown mode, that of M-mode.

    Fields of fewer than 3 bits cannot represent guests: VU and VS have the values of U and S.
    """
    mode = 3 if context.prv is None else context.prv
    if context.virtual and width > 2:
        mode += 5
    return mode & (1 << width) - 1
