"""Support packets: format 3, subformat 3.

What they say was left to implementations by 2.0 ("Format 3 subformat 3 - Support"), so there are tables: of the
reference flow's encoder model, the Standard Support Packet extension v0.8, rv_tracer, Espressif's ET20 and PT10.
"""

from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, NamedTuple

from rvtrace_gdb.decode.etrace.fields import Packet
from rvtrace_gdb.decode.etrace.layout import Field, f0s_width, fixed
from rvtrace_gdb.decode.etrace.options import Modes, Options, Parameters, SupportLayout


class QualStatus(IntEnum):
    """qual_status: what became of the instructions before."""

    NO_CHANGE = 0
    ENDED_REP = 1
    """Tracing ended; the packet before was sent for that."""
    TRACE_LOST = 2
    """One or more packets of instruction trace are lost."""
    ENDED_NTR = 3
    """Tracing ended; the packet before would have been sent anyway, for its updiscon."""


class Said(NamedTuple):
    """One field of a layout, and what of Parameters or Modes it tells; "": nothing of them."""

    name: str
    bits: int
    tells: str = ""


class SupportTable(NamedTuple):
    """A layout. *units*: of parameters that are not sent as they are."""

    said: tuple[Said, ...]
    units: Mapping[str, int] = {}

    @property
    def fields(self) -> tuple[Field, ...]:
        """In order of transmission."""
        return tuple(Field(one.name, fixed(one.bits)) for one in self.said)


class Support(NamedTuple):
    """What a support packet says.

    ienable       instruction trace is on
    encoder_mode  the algorithm; 0: branch trace, the only one there is
    denable       data trace is on
    dloss         packets of data trace are lost
    parameters, modes   that hold from here on
    """

    ienable: bool
    encoder_mode: int
    qual_status: QualStatus
    denable: bool
    dloss: bool
    parameters: Parameters
    modes: Modes


_STATUS = (Said("ienable", 1), Said("encoder_mode", 1), Said("qual_status", 2))

LAYOUTS: Mapping[SupportLayout, SupportTable] = {
    SupportLayout.REFERENCE: SupportTable(
        (
            *_STATUS,
            Said("implicit_return", 1, "implicit_return"),
            Said("implicit_exception", 1, "implicit_exception"),
            Said("full_address", 1, "full_address"),
            Said("jump_target_cache", 1, "jump_target_cache"),
            Said("branch_prediction", 1, "branch_prediction"),
            Said("denable", 1),
            Said("dloss", 1),
            Said("no_address", 1, "data_no_address"),
            Said("no_data", 1, "data_no_data"),
            Said("full_daddress", 1, "data_full_address"),
            Said("full_data", 1, "data_full_data"),
        )
    ),
    SupportLayout.STANDARD: SupportTable(
        (
            Said("ienable", 1),
            Said("encoder_mode", 2),
            Said("qual_status", 2),
            Said("sijump", 1, "sijump"),
            Said("implicit_return", 1, "implicit_return"),
            Said("branch_predictor", 1, "branch_prediction"),
            Said("jump_target_cache", 1, "jump_target_cache"),
            Said("implicit_except", 1, "implicit_exception"),
            Said("full_iaddress", 1, "full_address"),
            Said("resync_disabled", 1, "resync_disabled"),
            Said("iret_ext", 1, "iret_ext"),
            Said("time_width", 3, "time_width"),
            Said("f0s_width", 2, "f0s_width"),
            Said("return_stack_size", 3, "return_stack_size"),
            Said("call_counter_size", 4, "call_counter_size"),
            Said("bpred_size", 3, "bpred_size"),
            Said("cache_size", 3, "cache_size"),
            Said("denable", 1),
            Said("dloss", 1),
            Said("mmacas_ext", 1, "mmacas_ext"),
            Said("noaddr", 1, "data_no_address"),
            Said("nodata", 1, "data_no_data"),
            Said("full_daddress", 1, "data_full_address"),
            Said("full_data", 1, "data_full_data"),
        ),
        {"time_width": 16},
    ),
    SupportLayout.PULP: SupportTable(
        (
            *_STATUS,
            Said("jump_target_cache", 1, "jump_target_cache"),
            Said("branch_prediction", 1, "branch_prediction"),
            Said("implicit_return", 1, "implicit_return"),
            Said("sijump", 1, "sijump"),
            Said("implicit_exception", 1, "implicit_exception"),
            Said("full_address", 1, "full_address"),
            Said("delta_address", 1),
        )
    ),
    SupportLayout.ET20: SupportTable(
        (
            *_STATUS,
            Said("implicit_return", 1, "implicit_return"),
            Said("implicit_exception", 1, "implicit_exception"),
            Said("full_address", 1, "full_address"),
            Said("jump_target_cache", 1, "jump_target_cache"),
            Said("branch_prediction", 1, "branch_prediction"),
            Said("sijump", 1, "sijump"),
        )
    ),
    SupportLayout.PT10: SupportTable((Said("ienable", 1), Said("qual_status", 2))),
}

_MODES = frozenset(Modes.__dataclass_fields__)
_PARAMETERS = frozenset(Parameters.__dataclass_fields__)


def read(packet: Packet, options: Options) -> Support:
    """What *packet* says to a decoder that was told *options*: of what it does not say, these hold."""
    fields, table = packet.fields, LAYOUTS[options.support]
    modes: dict[str, bool] = {}
    parameters: dict[str, Any] = {}
    if not options.pinned:
        for name, bits, tells in table.said:
            if tells in _MODES:
                modes[tells] = bool(fields[name])
            elif tells in _PARAMETERS:
                parameters[tells] = fields[name] * table.units.get(tells, 1) if bits > 1 else bool(fields[name])
    return Support(
        bool(fields["ienable"]),
        fields.get("encoder_mode", 0),
        QualStatus(fields["qual_status"]),
        bool(fields.get("denable", 0)),
        bool(fields.get("dloss", 0)),
        replace(options.parameters, **parameters),
        replace(options.modes, **modes),
    )


def apply(packet: Packet, options: Options) -> tuple[Parameters, Modes]:
    """Parameters and modes that hold after *packet*."""
    said = read(packet, options)
    return said.parameters, said.modes


def fields_of(
    layout: SupportLayout,
    parameters: Parameters,
    modes: Modes,
    *,
    ienable: bool = True,
    qual_status: QualStatus = QualStatus.NO_CHANGE,
    denable: bool = False,
    dloss: bool = False,
) -> dict[str, int]:
    """The fields of a support packet of an encoder in *modes*, for `decode.etrace.packet.build`.

    Raises ValueError where *layout* cannot say what the parameters are.
    """
    table = LAYOUTS[layout]
    known = {
        "ienable": int(ienable),
        "encoder_mode": 0,
        "qual_status": int(qual_status),
        "denable": int(denable),
        "dloss": int(dloss),
        "delta_address": int(not modes.full_address),
    }
    fields: dict[str, int] = {}
    for name, bits, tells in table.said:
        value = known[name] if not tells else _value(tells, parameters, modes)
        unit = table.units.get(tells, 1)
        if value % unit or value // unit >> bits:
            raise ValueError(f"{tells} {value} cannot be said in {bits} bits of a support packet ({layout.value})")
        fields[name] = value // unit
    return fields


def _value(tells: str, parameters: Parameters, modes: Modes) -> int:
    if tells in _MODES:
        return int(getattr(modes, tells))
    if tells == "f0s_width":
        return f0s_width(parameters)
    return int(getattr(parameters, tells))
