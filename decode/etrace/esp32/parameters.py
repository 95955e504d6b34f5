"""What a snapshot tells of an encoder: how its packets are to be read.

Source: ESP-IDF, esp_riscv_trace_snapshot.h, esp_riscv_trace_encoder_params_t.
"""

from collections.abc import Mapping
from typing import Any

from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.esp32.descriptors import (
    PARAMETERS_SIZE,
    AddressMode,
    BadSnapshot,
    Core,
    PacketFormat,
    Snapshot,
)
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout

_PARAMETERS = (
    "params_version", "params_size", "arch", "bpred_size", "cache_size", "call_counter_size", "ctype_width",
    "context_width", "ecause_width", "ecause_choice", "f0s_width", "filter_context", "filter_excint",
    "filter_privilege", "filter_tval", "iaddress_lsb", "iaddress_width", "iretire_width", "ilastsize_width",
    "itype_width", "nocontext", "notime", "privilege_width", "retires", "return_stack_size", "sijump",
    "taken_branches", "impdef_width",
)  # fmt: skip
"""esp_riscv_trace_encoder_params_t: a byte each, without `_p`."""
_LIMITS = {
    "iaddress_width": range(8, 65),
    "iaddress_lsb": range(3),
    "privilege_width": range(1, 4),
    "ecause_width": range(1, 17),
    "bpred_size": range(17),
    "cache_size": range(17),
    "return_stack_size": range(11),
    "call_counter_size": range(17),
    "f0s_width": range(2),
    "context_width": range(65),
}
"""What a decoder must know, and what it can be."""
_DIALECTS = {
    PacketFormat.PT10: (Dialect.PT10, SupportLayout.PT10),
    PacketFormat.ET20: (Dialect.ET20, SupportLayout.ET20),
}


def parameters_of(raw: bytes, packet_format: PacketFormat) -> Parameters:
    """The encoder's parameters; where the firmware does not tell them, those its packet format is known to have.

    Raises `BadSnapshot` for what no encoder can have, and for one that sends what ESP-IDF has no field for.
    """
    told = dict(zip(_PARAMETERS, raw, strict=False))
    if len(raw) < PARAMETERS_SIZE or told["params_version"] != 1 or not told["iaddress_width"]:
        built = DEFAULTS[_DIALECTS[packet_format][0]]
        known: Mapping[str, Any] = {name: built[name] for name in _LIMITS if name in built}
        return Parameters(**known)
    if not told["notime"]:
        raise BadSnapshot("the encoder sends the time in its packets, and the snapshot does not say how wide it is")
    wanted: Mapping[str, Any] = {name: told[name] for name in _LIMITS} | {
        "context_width": 0 if told["nocontext"] else told["context_width"]
    }
    for name, value in wanted.items():
        if value not in _LIMITS[name]:
            raise BadSnapshot(f"the trace snapshot is damaged: {name}_p is {value}")
    return Parameters(**wanted)


def options_of(snapshot: Snapshot, core: Core) -> Options:
    """How to read the packets of *core*. Raises `BadSnapshot`."""
    if core.packet_format not in tuple(PacketFormat):
        raise BadSnapshot(f"core {core.core_id}: packet format {core.packet_format} is not known")
    packet_format = PacketFormat(core.packet_format)
    dialect, support = _DIALECTS[packet_format]
    return Options(
        parameters=parameters_of(snapshot.parameters, packet_format),
        modes=Modes(full_address=core.address_mode == AddressMode.FULL),
        support=support,
        dialect=dialect,
    )
