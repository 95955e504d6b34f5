"""The messages of a version-0 encoder: N-Trace as SiFive's encoders spoke it before the standard.

Sources: see `controlregs.sifive_v0` and `decode.ntrace.dialect`. What teInstruction 7 optimises, and how full I-CNT is
told, is seen in SiFive's captures.
"""

import dataclasses
from collections.abc import Callable
from sys import maxsize

from rvtrace_gdb.controlregs.sifive_v0.encoder import SYNC_OFF, Instruction
from rvtrace_gdb.controlregs.sifive_v0.timestamp import TsBranch
from rvtrace_gdb.decode.ntrace.dialect import SIFIVE
from rvtrace_gdb.decode.ntrace.encoder import EncoderOptions, SyncMode
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn
from rvtrace_gdb.transport.simulated.timestamp_unit import BITS
from rvtrace_gdb.transport.simulated.trace_ingress import TracedHart
from rvtrace_gdb.transport.simulated.trace_ntrace import NTrace
from rvtrace_gdb.transport.simulated.trace_protocol import Settings

_RETURN_DEPTH = 1023  # the P550's counter of calls
_ICNT_LIMIT = 1 << 16


class V0Trace(NTrace):
    """As `NTrace`, with the fields of teControl, teImpl and tsControl."""

    def __init__(self, hart: TracedHart, out: Callable[[bytes], None]) -> None:
        super().__init__(hart, out, EncoderOptions(dialect=SIFIVE, timestamp_bits=BITS, return_depth=_RETURN_DEPTH))

    def _options(self, settings: Settings) -> EncoderOptions:
        field = settings.field
        optimized = field("teInstruction") == Instruction.HTM_OPTIMIZED
        bits = 0 if field("teInhibitSrc") else field("nSrcBits")
        mode, period = _sync(field("teSyncMaxBTM"), field("teSyncMaxInst"))
        branches = field("tsBranch") != TsBranch.NONE
        return dataclasses.replace(
            self._built_with,
            src_bits=bits,
            src_id=field("srcID") & (1 << bits) - 1,
            sync_mode=mode,
            sync_max=period,
            icnt_limit=_ICNT_LIMIT if field("teSyncMaxInst") == SYNC_OFF else 1 << field("teSyncMaxInst") + 4,
            btm=field("teInstruction") == Instruction.BTM,
            implicit_return=ImplicitReturn.COUNTER if optimized else ImplicitReturn.OFF,
            repeated_history=optimized,
            timestamps=settings.timestamps.enabled,
            timestamp_sparse=1 if branches else maxsize,
            xlen=self._hart.xlen,
        )


def _sync(messages: int, halfwords: int) -> tuple[SyncMode, int]:
    """2**(teSyncMaxBTM + 5) messages; with that off 2**(teSyncMaxInst + 4) halfwords."""
    if messages != SYNC_OFF:
        return SyncMode.MESSAGES, messages + 1
    return (SyncMode.OFF, 0) if halfwords == SYNC_OFF else (SyncMode.HALFWORDS, halfwords)
