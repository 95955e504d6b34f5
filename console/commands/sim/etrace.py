"""The E-Trace part of the encoder of `rvtrace sim`: its construction, and its settings in the target description."""

import argparse
from collections.abc import Mapping
from dataclasses import fields, replace
from enum import Enum
from typing import Any

from rvtrace_gdb.console.commands.sim.encoder import SWITCH, BadEncoderOption
from rvtrace_gdb.console.commands.sim.request import EncoderBuildRequest
from rvtrace_gdb.console.options.encoder import dashed, in_words
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS, RULES
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions
from rvtrace_gdb.decode.etrace.options import Dialect, Options, Parameters
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions, SettingValue, etrace_of, values_of
from rvtrace_gdb.transport.simulated.devices.etrace import SET_BY_REGISTERS, ETraceBuild

_BUILT = ETraceBuild()
_PARAMETERS = {field.name for field in fields(Parameters)}
_FREEDOMS = {field.name for field in fields(EncoderOptions)} - SET_BY_REGISTERS - {"parameters"}
_BUILDING = {field.name for field in fields(ETraceBuild)} - {"encoder"}
_NAMES = sorted(_PARAMETERS | _FREEDOMS | _BUILDING)


def add_arguments(parser: argparse._ArgumentGroup) -> None:
    """Add the options that `built` reads."""
    parser.add_argument(
        "--etrace-option", action="append", default=[], metavar="NAME=VALUE",
        help="how the E-Trace side of the trace encoder is built: data-trace=off, inst-mode=6, timestamp-sparse=4,"
        " bpred-size=8, context-width=16, support=reference, ... (`rvtrace encode --etrace --help-encoder` explains the"
        " others); may be repeated",
    )  # fmt: skip


def built(request: EncoderBuildRequest) -> ETraceBuild:
    """Return the encoder's construction on the command line. Raises BadEncoderOption."""
    values: dict[str, Any] = {}
    for text in request.etrace_options:
        written, _, value = text.partition("=")
        name = written.replace("-", "_")
        if name not in _NAMES or not value:
            names = ", ".join(map(dashed, _NAMES))
            raise BadEncoderOption(f"--etrace-option {text}: give NAME=VALUE; the names are {names}")
        try:
            values[name] = _parameter_value(_default(name), value)
        except (ValueError, KeyError):
            raise BadEncoderOption(f"--etrace-option {text}: {_range_text(_default(name))}") from None
    try:
        return _built(values)
    except ValueError as error:
        raise BadEncoderOption(f"--etrace-option: {in_words(str(error), set(_NAMES), '')}") from None


def _built(values: Mapping[str, Any]) -> ETraceBuild:
    """Raises ValueError."""
    encoder = _BUILT.encoder
    parameters = replace(encoder.parameters, **{name: values[name] for name in values if name in _PARAMETERS})
    freedoms = {name: values[name] for name in values if name in _FREEDOMS}
    building = {name: values[name] for name in values if name in _BUILDING}
    return replace(_BUILT, encoder=replace(encoder, parameters=parameters, **freedoms), **building)


def _default(name: str) -> Any:
    if name in _PARAMETERS:
        return getattr(_BUILT.encoder.parameters, name)
    return getattr(_BUILT.encoder if name in _FREEDOMS else _BUILT, name)


def _parameter_value(default: Any, text: str) -> Any:
    """Raises ValueError or KeyError."""
    if isinstance(default, bool):
        return SWITCH[text]
    if isinstance(default, Enum):
        return _choices(default)[text]
    return int(text, 0)


def _choices(default: Enum) -> dict[str, Enum]:
    return {dashed(member.name): member for member in type(default)}


def _range_text(default: Any) -> str:
    """Return the text about the possible values."""
    if isinstance(default, bool):
        return "it is on or off"
    return f"it is one of {', '.join(_choices(default))}" if isinstance(default, Enum) else "it is a number"


def described(built: ETraceBuild, values: Mapping[str, SettingValue]) -> ETraceBuild:
    """Return *built* with the settings *values* of a target description."""
    encoder = built.encoder
    before = Options(encoder.parameters, support=encoder.support, dialect=encoder.dialect)
    options = etrace_of(values, EtraceTraceOptions(before)).options
    dialect = options.dialect
    modes = replace(encoder.modes, full_address=bool(DEFAULTS[dialect].get("full_address")))
    encoder = replace(
        encoder, parameters=options.parameters, support=options.support, dialect=dialect, modes=modes,
        compress=encoder.compress and RULES[dialect].compressed,
    )  # fmt: skip
    return replace(built, encoder=encoder, data_trace=built.data_trace and dialect is Dialect.STANDARD)


def settings(options: Options) -> dict[str, SettingValue]:
    """Return the settings in a target description that no register of the encoder has."""
    return values_of(EtraceTraceOptions(Options(options.parameters, support=options.support)))
