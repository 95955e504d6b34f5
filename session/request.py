"""What `trace start` asks of the trace components: the user's options."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from rvtrace_gdb.controlregs.encoder import DataAddrCompress, Format, ImplicitReturnMode, InstMode, SyncMode
from rvtrace_gdb.controlregs.request import TraceRequest
from rvtrace_gdb.controlregs.timestamp import TsMode, TsPrescale
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.session import filtering, triggering
from rvtrace_gdb.session.errors import BadOption

_T = TypeVar("_T")
# Switches (true or false): the fields of the request each sets.
_SWITCHES: Mapping[str, Mapping[str, Any]] = {
    "stop_on_wrap": {"stop_on_wrap": True},
    "stall": {"stall": True},
    "btm": {"inst_mode": InstMode.BTM},
    "timestamps": {"timestamps": True},
    "context": {"context": True},
    "data": {"data": True},
    "no_data_values": {"data": True, "data_no_value": True},
    "no_data_addresses": {"data": True, "data_no_address": True},
    "full_data_addresses": {"data": True, "data_addr_compress": DataAddrCompress.FULL},
}
# Switches that are one field of trTeInstFeatures.
_FEATURES = {
    "repeated_history": "trTeInstEnRepeatedHistory",
    "sequential_jumps": "trTeInstEnSequentialJump",
    "all_jumps": "trTeInstEnAllJumps",
    "address_compression": "trTeInstExtendAddrMSB",
    "full_addresses": "trTeInstNoAddrDiff",
    "implicit_exceptions": "trTeInstNoTrapAddr",
    "branch_prediction": "trTeInstEnBranchPrediction",
    "jump_target_cache": "trTeInstEnJumpTargetCache",
}
_IMPLICIT_RETURN = "trTeInstEnImplicitReturn"
_RETURN_MODES = {
    "off": ImplicitReturnMode.UNREPORTED,
    "on": ImplicitReturnMode.UNREPORTED,
    "counter": ImplicitReturnMode.DEPTH_COUNTER,
    "partial": ImplicitReturnMode.PARTIAL_ADDRESS_STACK,
    "full": ImplicitReturnMode.FULL_ADDRESS_STACK,
}
_FORMATS = {"ntrace": Format.N_TRACE, "etrace": Format.E_TRACE}
_TIME_SOURCES = {
    "system": TsMode.INTERNAL_SYSTEM,
    "core": TsMode.INTERNAL_CORE,
    "external": TsMode.EXTERNAL,
    "shared": TsMode.SHARED,
}
_PRESCALES = {1: TsPrescale.DIV1, 4: TsPrescale.DIV4, 16: TsPrescale.DIV16, 64: TsPrescale.DIV64}
_CHOICES = ("to", "harts")
_SYNC_MAX = range(16)  # trTeInstSyncMax: a period of 2**(n + 4) units
_LONGEST = 1 << _SYNC_MAX.stop - 1 + 4  # halfwords


def chosen(options: Mapping[str, Any]) -> tuple[list[str], list[int]]:
    """The sinks and the harts that the options `to` and `harts` name; none: not chosen. Raises `BadOption`."""
    return _list_of(str, "to", options), _list_of(int, "harts", options)


def _list_of(kind: type[_T], name: str, options: Mapping[str, Any]) -> list[_T]:
    value = options.get(name, [])
    if not isinstance(value, list) or not all(isinstance(one, kind) and not isinstance(one, bool) for one in value):
        raise BadOption(f"{name} is {value!r}, it must be a list of {'names' if kind is str else 'numbers'}")
    return value


def trace_request(options: Mapping[str, Any], image: Image | None = None) -> TraceRequest:
    """What each encoder is to do for *options*. *image*: the program, for what is asked of its functions.

    Switches, true or false: stop_on_wrap, stall, btm, timestamps, context, repeated_history, sequential_jumps,
    all_jumps, address_compression, full_addresses, implicit_exceptions, branch_prediction, jump_target_cache, data,
    no_data_values, no_data_addresses, full_data_addresses (each of these three: data, too). With a value: format
    (ntrace, etrace), implicit_return (off, on, counter, partial or full), sync_period (halfwords of code),
    timestamp_source (system, core, external, shared) and timestamp_prescale (1, 4, 16, 64; both: timestamps, too), the
    filters of `session.filtering`, the triggers of `session.triggering`, and what `chosen` reads. Raises `BadOption`.
    """
    wanted: dict[str, Any] = {
        "features": (),
        "filter": filtering.filter_of(options, image),
        "triggers": triggering.triggers_of(options),
    }
    for name, value in options.items():
        if name in _VALUES:
            wanted |= _VALUES[name](value)
            wanted["features"] += (_IMPLICIT_RETURN,) if (name, value) == ("implicit_return", "on") else ()
        elif name not in _SWITCHES and name not in _FEATURES:
            raise BadOption(f"trace start has no option {name}; it has {', '.join((*_SWITCHES, *_FEATURES, *_VALUES))}")
        elif value:
            wanted |= _SWITCHES.get(name, {})
            wanted["features"] += (_FEATURES[name],) if name in _FEATURES else ()
    return TraceRequest(**wanted)


def not_possible(options: Mapping[str, Any]) -> list[str]:
    """What of the options no trace encoder can do, for the user."""
    asked = options.get("sync_period", 0)
    if asked <= _LONGEST:
        return []
    return [f"a sync period of {asked} halfwords is not possible, {_LONGEST} is the longest"]


def _implicit_return(value: Any) -> Mapping[str, Any]:
    if value not in tuple(_RETURN_MODES):
        raise BadOption(f"implicit_return is {value!r}, it must be off, on, counter, partial or full")
    return {"implicit_return": _RETURN_MODES[value]}


def _format(value: Any) -> Mapping[str, Any]:
    if value not in tuple(_FORMATS):
        raise BadOption(f"format is {value!r}, it must be ntrace or etrace")
    return {"format": _FORMATS[value]}


def _timestamp_source(value: Any) -> Mapping[str, Any]:
    if value not in tuple(_TIME_SOURCES):
        raise BadOption(f"timestamp_source is {value!r}, it must be one of {', '.join(_TIME_SOURCES)}")
    return {"timestamps": True, "ts_mode": _TIME_SOURCES[value]}


def _timestamp_prescale(value: Any) -> Mapping[str, Any]:
    if value not in tuple(_PRESCALES) or isinstance(value, bool):
        raise BadOption(f"timestamp_prescale is {value!r}, it must be one of {', '.join(map(str, _PRESCALES))}")
    return {"timestamps": True, "ts_prescale": _PRESCALES[value]}


def _sync_period(halfwords: Any) -> Mapping[str, Any]:
    """The shortest period that is not shorter than asked for, or else the longest there is."""
    if not isinstance(halfwords, int) or isinstance(halfwords, bool) or halfwords < 1:
        raise BadOption(f"sync_period is {halfwords!r}, it must be a number of halfwords from 1 on")
    exponent = (halfwords - 1).bit_length() - 4
    sync_max = min(max(exponent, _SYNC_MAX.start), _SYNC_MAX.stop - 1)
    return {"sync_mode": SyncMode.HALFWORDS, "sync_max": sync_max}


_VALUES: Mapping[str, Callable[[Any], Mapping[str, Any]]] = {
    "format": _format,
    "implicit_return": _implicit_return,
    "sync_period": _sync_period,
    "timestamp_source": _timestamp_source,
    "timestamp_prescale": _timestamp_prescale,
    **dict.fromkeys((*filtering.OPTIONS, *triggering.OPTIONS, *_CHOICES), lambda value: {}),  # read on their own
}
