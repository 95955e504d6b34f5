"""How an E-Trace stream was made, as settings (`session.etrace_settings`) and as the decoder takes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from rvtrace_gdb.controlregs.encoder import CONTROL, DataAddrCompress, SyncMode
from rvtrace_gdb.controlregs.request import EncoderInForce
from rvtrace_gdb.decode.etrace.encapsulation import Encapsulation
from rvtrace_gdb.decode.etrace.options import Dialect, Options, SupportLayout, TrapHandlers
from rvtrace_gdb.session.decoding import sync_period, undecodable
from rvtrace_gdb.session.etrace_settings import SETTINGS, BadSetting, Kind, Owner, Setting, Value, Values

E_TRACE_MAJOR = 0
"""The trTeProtocolMajor that can be decoded (E-Trace 2.0, "Basic Control")."""

REGISTERED_MODES = (
    "full_address", "implicit_exception", "sijump", "implicit_return", "branch_prediction", "jump_target_cache",
)  # fmt: skip
"""The modes that a field of trTeInstFeatures tells, in the order of its bits."""

_FIELD = {"encapsulation": "name"}
"""Names of fields that are named after their owner here."""


@dataclass(frozen=True)
class ETrace:
    """What the packets say, and what they come in."""

    options: Options = field(default_factory=Options)
    encapsulation: Encapsulation = field(default_factory=lambda: Encapsulation("encap"))

    @property
    def tells_sources(self) -> bool:
        """Whether packets say whose they are."""
        return self.encapsulation.name in ("smi", "atb") or self.encapsulation.src_bits > 0


_NOTHING_SAID = ETrace()


def made(values: Values, base: ETrace = _NOTHING_SAID) -> ETrace:
    """*base* with the settings *values*, which were `checked`. Raises `BadSetting`."""
    parts: dict[Owner, dict[str, Any]] = {owner: {} for owner in Owner}
    for key, value in values.items():
        setting = SETTINGS[key]
        if setting.kind not in (Kind.ADDRESS, Kind.HANDLERS) and setting.owner is not Owner.NOTHING:
            parts[setting.owner][_FIELD.get(key, key)] = _typed(key, value)
    before = base.options
    options = replace(
        before,
        trap_handlers=_trap_handlers(values, before.trap_handlers),
        parameters=replace(before.parameters, **parts[Owner.PARAMETERS]),
        modes=replace(before.modes, **parts[Owner.MODES]),
        **parts[Owner.OPTIONS],
    )
    try:
        return ETrace(options, replace(base.encapsulation, **parts[Owner.ENCAPSULATION]))
    except ValueError as error:
        raise BadSetting("encapsulation", f"cannot be so: {error}") from None


def values_of(how: ETrace, base: ETrace = _NOTHING_SAID) -> dict[str, Value]:
    """The settings in which *how* differs from *base*: `made` of them and *base* is *how* again."""
    found: dict[str, Value] = {}
    for key, setting in SETTINGS.items():
        value = _get(how, key, setting)
        if value is not None and value != _get(base, key, setting):
            found[key] = value
    return found


def default(key: str) -> Value | None:
    """What holds where nothing is said."""
    return _get(_NOTHING_SAID, key, SETTINGS[key])


def all_fields() -> set[tuple[Owner, str]]:
    """The fields that need a setting each: a test holds the table to them."""
    inner = {"parameters", "modes", "trap_handlers", "stop_at_error"}
    names = {new: old for old, new in _FIELD.items()}
    return {
        (owner, names.get(one.name, one.name))
        for owner in Owner
        if owner is not Owner.NOTHING
        for one in fields(owner.value)
        if one.name not in inner
    }


def _get(how: ETrace, key: str, setting: Setting) -> Value | None:
    options = how.options
    if setting.owner is Owner.NOTHING:
        return None
    if setting.kind is Kind.ADDRESS:
        return None if options.trap_handlers.tvec is None else f"{options.trap_handlers.tvec:#x}"
    if setting.kind is Kind.HANDLERS:
        return {
            f"{'i' * interrupt}{cause}": f"{address:#x}"
            for (cause, interrupt), address in options.trap_handlers.handlers.items()
        }
    parts = {
        Owner.PARAMETERS: options.parameters,
        Owner.MODES: options.modes,
        Owner.OPTIONS: options,
        Owner.ENCAPSULATION: how.encapsulation,
    }
    value = getattr(parts[setting.owner], _FIELD.get(key, key))
    return value.value if isinstance(value, Enum) else value  # type: ignore[no-any-return]


def _typed(key: str, value: Value) -> Any:
    if key == "support":
        return SupportLayout(value)
    return Dialect(value) if key == "dialect" else value


def _trap_handlers(values: Values, before: TrapHandlers) -> TrapHandlers:
    vector, handlers = values.get("trap_vector"), values.get("trap_handlers")
    return TrapHandlers(
        before.tvec if vector is None else int(str(vector), 16),
        before.handlers
        if not isinstance(handlers, Mapping)
        else {(int(cause.lstrip("i")), cause.startswith("i")): int(text, 16) for cause, text in handlers.items()},
    )


def of_registers(encoder: EncoderInForce, values: Values) -> ETrace:
    """How to read what *encoder* sends; *values*, which count more, are what its registers do not tell.

    Raises `BadSetting`, `Unsupported`.
    """
    if encoder.protocol_version[0] != E_TRACE_MAJOR:
        raise undecodable(encoder, f"E-Trace {'.'.join(map(str, encoder.protocol_version))}")
    modes = {key: bool(encoder.feature(SETTINGS[key].told_by)) for key in REGISTERED_MODES}
    told: dict[str, Value] = {
        **modes,
        "src_bits": encoder.src_bits,
        "timestamp_bytes": -(-encoder.timestamp_bits // 8) if encoder.timestamps else 0,
    }
    if encoder.base:  # registers that were read, not what somebody said
        told["resync_disabled"] = encoder.sync[0] == SyncMode.OFF
        told["sync_packets"] = sync_period(encoder) or 0
        told["unfiltered"] = encoder.inst_filters == 0 and not CONTROL.get(encoder.control, "trTeInstTrigEnable")
    if encoder.data("trTeDataImplemented"):
        told |= {
            "type_bits": 1,
            "data_no_data": bool(encoder.data("trTeDataNoValue")),
            "data_no_address": bool(encoder.data("trTeDataNoAddr")),
            "data_full_address": encoder.data("trTeDataAddrCompress") == DataAddrCompress.FULL,
        }
    return made({**told, **values})
