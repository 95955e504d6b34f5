"""What `trace start` asks, as the software encoders have it: they are built to have what is asked for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.controlregs.encoder import Format, ImplicitReturnMode, InstMode, SyncMode
from rvtrace_gdb.controlregs.request import TraceRequest
from rvtrace_gdb.decode.etrace import encoder as etrace
from rvtrace_gdb.decode.ntrace import encoder as ntrace
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn, Options
from rvtrace_gdb.session.etrace import REGISTERED_MODES, ETrace, made
from rvtrace_gdb.session.etrace_settings import SETTINGS, Value

_SYNC_MAX = 10  # a period of 16384 halfwords: of a ring that went round, little is lost at its beginning
_STACK = 5  # the implicit return stack has 32 entries
_TABLE = 6  # branch predictor and jump target cache have 64
_NTRACE: Mapping[str, str] = {
    "trTeInstEnRepeatedHistory": "repeated_history",
    "trTeInstEnSequentialJump": "sequential_jump",
    "trTeInstEnAllJumps": "all_jumps",
    "trTeInstExtendAddrMSB": "extend_addr_msb",
}
_ETRACE = {SETTINGS[mode].told_by: mode for mode in REGISTERED_MODES}
_RETURNS = "trTeInstEnImplicitReturn"


@dataclass(frozen=True)
class NTrace:
    """An N-Trace encoder, and how its messages are read."""

    options: ntrace.EncoderOptions
    how: Options


@dataclass(frozen=True)
class Efficient:
    """An E-Trace encoder, and how its packets are read."""

    options: etrace.EncoderOptions
    how: ETrace


Wanted = NTrace | Efficient


def wanted(request: TraceRequest, xlen: int, options: Mapping[str, Any]) -> tuple[Wanted, list[str]]:
    """The encoder for a hart of *xlen* bits, and what of the request (and of *options*, its words) is left out."""
    notes = [f"QEMU does not do that: {text}" for text in _left_out(request, options)]
    if request.format == Format.E_TRACE:
        return _efficient(request, xlen, notes), notes
    return _ntrace(request, xlen, notes), notes


def _left_out(request: TraceRequest, options: Mapping[str, Any]) -> Iterator[str]:
    if request.filter is not None:
        yield "filters; all is traced"
    if request.triggers is not None:
        yield "triggers; tracing is on from the start until it is stopped"
    if request.data:
        yield "data trace"
    if request.stop_on_wrap:
        yield "stopping when the ring is full; the newest is kept (rvtrace qemu --ring makes it larger)"
    if request.stall:
        yield "stalling (rvtrace qemu -o keeps all)"
    if options.get("to"):
        yield "choosing a sink; there is one for each hart"


def _ntrace(request: TraceRequest, xlen: int, notes: list[str]) -> NTrace:
    on: dict[str, Any] = {name: True for field, name in _NTRACE.items() if field in request.features}
    notes += _unknown(request, _NTRACE, "N-Trace")
    returns = request.implicit_return or (ImplicitReturnMode.FULL_ADDRESS_STACK if _RETURNS in request.features else 0)
    htm = request.inst_mode != InstMode.BTM
    if on.get("repeated_history") and not htm:
        notes.append("repeated history needs HTM: it is off")
        del on["repeated_history"]
    mode, period = _sync(request)
    made_so = ntrace.EncoderOptions(
        xlen=xlen, btm=not htm, sync_mode=ntrace.SyncMode(mode), sync_max=period,
        implicit_return=ImplicitReturn(returns), context=request.context, timestamps=request.timestamps,
        timestamp_bits=0, **on,
    )  # fmt: skip
    how = Options(
        src_bits=0, timestamps=request.timestamps, timestamp_bits=0, btm=made_so.btm,
        implicit_return=made_so.implicit_return, sequential_jump=made_so.sequential_jump,
        all_jumps=made_so.all_jumps, extend_addr_msb=made_so.extend_addr_msb, dialect=made_so.dialect,
    )  # fmt: skip
    return NTrace(made_so, how)


def _efficient(request: TraceRequest, xlen: int, notes: list[str]) -> Efficient:
    on = {mode for field, mode in _ETRACE.items() if field in request.features}
    if request.implicit_return:
        on.add("implicit_return")
    if "implicit_exception" in on:
        notes.append("addresses of traps are not left out: nobody could tell them afterwards")
        on.discard("implicit_exception")
    notes += _unknown(request, {**_ETRACE, _RETURNS: ""}, "E-Trace")
    values: dict[str, Value] = {"iaddress_width": xlen, **dict.fromkeys(on, True)}
    values |= {"return_stack_size": _STACK} if "implicit_return" in on else {}
    values |= {"bpred_size": _TABLE} if "branch_prediction" in on else {}
    values |= {"cache_size": _TABLE} if "jump_target_cache" in on else {}
    values |= {"timestamp_bytes": 8} if request.timestamps else {}
    how = made(values)
    mode, period = _sync(request)
    options = etrace.EncoderOptions(
        how.options.parameters, how.options.modes, how.options.dialect, how.options.support,
        sync_mode=etrace.SyncMode(mode), sync_max=period,
    )  # fmt: skip
    return Efficient(options, how)


def _unknown(request: TraceRequest, known: Mapping[str, str], format: str) -> list[str]:
    rest = [field for field in request.features if field not in known and field != _RETURNS]
    return [f"{format} has no {field}" for field in rest]


def _sync(request: TraceRequest) -> tuple[int, int]:
    if request.sync_mode is None:
        return SyncMode.HALFWORDS, _SYNC_MAX
    return request.sync_mode, 0 if request.sync_max is None else request.sync_max
