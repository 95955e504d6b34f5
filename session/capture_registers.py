"""The registers of encoders and RAM sinks in a capture file, by the names that their interface gives them.

docs/capture-format.md is the reference.
"""

from typing import Any

from rvtrace_gdb.controlregs.request import EncoderInForce, SinkInForce
from rvtrace_gdb.controlregs.sifive_v0 import in_force as v0
from rvtrace_gdb.session.json_table import Table

_ENCODER = {
    "control": "trTeControl",
    "impl": "trTeImpl",
    "features": "trTeInstFeatures",
    "ts_control": "trTsControl",
}
_DATA = "trTeDataControl"
"""Of encoders that can trace data."""
_FILTERS = "trTeInstFilters"
"""Where it is known."""
_ENCODER_V0 = {"control": "teControl", "impl": "teImpl", "ts_control": "tsControl"}
_SINK = ("trRamControl", "trRamImpl")
_HOSTS = {"teControl": "encoder", "tfControl": "funnel"}
"""What a sink of version 0 is inside of, by the register that says so."""


def of_encoder(traced: EncoderInForce) -> dict[str, str]:
    """By name, as text."""
    names = _ENCODER if traced.version else _ENCODER_V0
    registers = {name: f"{getattr(traced, field):#010x}" for field, name in names.items()}
    if traced.data_control:
        registers[_DATA] = f"{traced.data_control:#010x}"
    if traced.inst_filters is not None:
        registers[_FILTERS] = f"{traced.inst_filters:#010x}"
    return registers


def read_encoder(table: Table) -> EncoderInForce:
    """Raises `BadDescription`."""
    name, base = table.text("name"), table.address("base")
    if _has(table, _ENCODER_V0["control"]):
        registers = table.registers(_ENCODER_V0.values())
        control, impl, ts_control = (registers[name] for name in _ENCODER_V0.values())
        return v0.EncoderInForce(name, base, control, impl, 0, ts_control)
    registers = table.registers(_ENCODER.values(), (_DATA, _FILTERS))
    values = {field: registers[name] for field, name in _ENCODER.items()}
    filters = registers.get(_FILTERS)
    return EncoderInForce(name, base, **values, data_control=registers.get(_DATA, 0), inst_filters=filters)


def of_sink(stored: SinkInForce) -> dict[str, str]:
    """By name, as text."""
    names = (stored.control_name, stored.impl_name) if isinstance(stored, v0.SinkInForce) else _SINK
    return {name: f"{value:#010x}" for name, value in zip(names, (stored.control, stored.impl), strict=True)}


def read_sink(table: Table) -> SinkInForce:
    """Raises `BadDescription`."""
    place: dict[str, Any] = {key: table.address(key) for key in ("start", "limit")}
    place |= {"name": table.text("name"), "base": table.address("base"), "access_bytes": table.number("access_bytes")}
    for control, host in _HOSTS.items():
        if _has(table, control):
            impl = control.replace("Control", "Impl")
            found = table.registers((control, impl))
            return v0.SinkInForce(control=found[control], impl=found[impl], host=host, **place)
    registers = table.registers(_SINK)
    return SinkInForce(control=registers["trRamControl"], impl=registers["trRamImpl"], **place)


def _has(table: Table, register: str) -> bool:
    registers = table.table("registers")
    return registers is not None and register in registers.fields
