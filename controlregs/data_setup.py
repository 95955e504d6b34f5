"""Data trace of an encoder: what is traced of loads and stores, and what of it was not granted.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, trTeDataControl; E-Trace 2.0, "Encoder Control" (fields
marked MD and OD).
"""

from collections.abc import Iterable

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder import CONTROL, DATA_CONTROL, DataAddrCompress, Format
from rvtrace_gdb.controlregs.request import TraceRequest

_COMPRESSIONS: dict[int, str] = {
    DataAddrCompress.FULL: "sends data addresses in full",
    DataAddrCompress.XOR: "compresses data addresses by XOR",
    DataAddrCompress.DIFFERENTIAL: "sends differences of data addresses",
    DataAddrCompress.PROTOCOL_DEFINED: "compresses data addresses in its own way",
}


def configure_data(component: Component, request: TraceRequest) -> list[str]:
    """Write what data trace is to hold; it begins with `begin_data`. Returns a line per thing not granted."""
    if not request.data:
        return []
    value = component.set(
        DATA_CONTROL,
        trTeDataNoValue=int(request.data_no_value),
        trTeDataNoAddr=int(request.data_no_address),
        trTeDataAddrCompress=int(request.data_addr_compress),
    )
    if not DATA_CONTROL.get(value, "trTeDataImplemented"):
        other = ", which N-Trace has not" if component.get(CONTROL, "trTeFormat") == Format.N_TRACE else ""
        return [f"{component.name} has no data trace{other}"]
    return list(_notes(component.name, DATA_CONTROL.unpack(value), request))


def begin_data(component: Component, wanted: bool) -> list[str]:
    """Let data be traced as soon as instructions are, if *wanted* and there is data trace. Returns notes."""
    if not wanted or not component.get(DATA_CONTROL, "trTeDataImplemented"):
        return []
    value = component.set(DATA_CONTROL, trTeDataTracing=1)
    if not DATA_CONTROL.get(value, "trTeDataTracing"):
        return [f"{component.name}: data trace is not on yet (trTeDataTracing reads 0)"]
    return []


def _notes(name: str, got: dict[str, int], request: TraceRequest) -> Iterable[str]:
    for field, asked, what in (
        ("trTeDataNoValue", request.data_no_value, "values"),
        ("trTeDataNoAddr", request.data_no_address, "addresses"),
    ):
        if bool(got[field]) != asked:
            yield f"{name} cannot leave out data {what}" if asked else f"{name} never tells data {what}"
    compression = got["trTeDataAddrCompress"]
    if compression != request.data_addr_compress and not got["trTeDataNoAddr"]:
        yield f"{name} {_COMPRESSIONS[compression]} (trTeDataAddrCompress stays {compression})"
