"""What `trace start` asks of the trace components: the user's options and the buffer of the target description."""

from collections.abc import Mapping
from typing import Any

from controlregs.encoder import SyncMode
from controlregs.ram_sink import RamMode
from controlregs.request import TraceRequest
from session.description import RamSink
from session.errors import BadOption

_SWITCHES = ("stop_on_wrap", "stall")
_SYNC_MAX = range(16)  # trTeInstSyncMax: a period of 2**(n + 4) units


def trace_request(sink: RamSink, options: Mapping[str, Any]) -> TraceRequest:
    """The request for *options*: stop_on_wrap and stall (true or false), sync_period (halfwords of code).

    Raises `BadOption`.
    """
    wanted: dict[str, Any] = {"buffer_size": sink.size}
    if sink.mode == RamMode.SMEM.name:
        wanted["buffer_start"] = sink.start
    for name, value in options.items():
        if name in _SWITCHES:
            wanted[name] = bool(value)
        elif name == "sync_period":
            wanted |= {"sync_mode": SyncMode.HALFWORDS, "sync_max": _sync_max(value)}
        else:
            raise BadOption(f"trace start has no option {name}; it has {', '.join(_SWITCHES)}, sync_period")
    return TraceRequest(**wanted)


def _sync_max(halfwords: Any) -> int:
    """trTeInstSyncMax for the shortest period that is not shorter than asked for, or else the longest there is."""
    if not isinstance(halfwords, int) or isinstance(halfwords, bool) or halfwords < 1:
        raise BadOption(f"sync_period is {halfwords!r}, it must be a number of halfwords from 1 on")
    exponent = (halfwords - 1).bit_length() - 4
    return min(max(exponent, _SYNC_MAX.start), _SYNC_MAX.stop - 1)
