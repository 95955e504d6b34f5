"""The settings of an E-Trace stream, in one table: options of the command line, keys of captures and descriptions.

A setting is a field of `Parameters`, `Modes`, `Options` or `Encapsulation`, and has its name. Values are JSON's:
numbers, true and false, names, and addresses as "0x..." text. docs/etrace.md explains each.

`EtraceTraceOptions` contains the same in the form that the decoder takes; `etrace_of` creates it from settings.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, NamedTuple

from rvtrace_gdb.controlregs.encoder_features import ETRACE
from rvtrace_gdb.decode.etrace.encapsulation import NAMES, Encapsulation
from rvtrace_gdb.decode.etrace.options import Dialect, Modes, Options, Parameters, SupportLayout, TrapHandlers
from rvtrace_gdb.support.text import value_text

SettingValue = int | bool | str | Mapping[str, str]
SettingValues = Mapping[str, SettingValue]

_HEX = re.compile(r"0x[0-9a-fA-F]{1,16}")
_TRAP = re.compile(r"i?[0-9]{1,19}")


class Owner(Enum):
    """The part of `session.capture.etrace_settings.EtraceTraceOptions` that has a setting as a field."""

    PARAMETERS = Parameters
    MODES = Modes
    OPTIONS = Options
    ENCAPSULATION = Encapsulation
    NOTHING = None
    """The setting belongs to one encoder among several with the same settings."""


class SettingKind(Enum):
    """The types of settings' values."""

    NUMBER = "number"
    FLAG = "flag"
    CHOICE = "choice"
    ADDRESS = "address"
    HANDLERS = "handlers"
    """{"2": "0x80000100", "i7": ...}: handlers by cause, of interrupts after an i."""


class EtraceSetting(NamedTuple):
    """*allowed*: the numbers or names; *source*: the discovery parameter or register field that contains it."""

    owner: Owner
    kind: SettingKind
    meaning: str
    source: str = ""
    allowed: range | tuple[str, ...] = ()


LONGEST_PERIOD = 1 << 19
"""The greatest number of packets between synchronizations (trTeInstSyncMax has 4 bits)."""


def _integer(owner: Owner, most: int, meaning: str, source: str = "", least: int = 0) -> EtraceSetting:
    return EtraceSetting(owner, SettingKind.NUMBER, meaning, source, range(least, most + 1))


def _flag(owner: Owner, meaning: str, source: str = "") -> EtraceSetting:
    return EtraceSetting(owner, SettingKind.FLAG, meaning, source)


_P, _M, _O, _E = Owner.PARAMETERS, Owner.MODES, Owner.OPTIONS, Owner.ENCAPSULATION

SETTINGS: Mapping[str, EtraceSetting] = {
    "iaddress_width": _integer(_P, 64, "bits of an instruction address", "iaddress_width_p", least=2),
    "iaddress_lsb": _integer(_P, 2, "low bits of an address that are not sent: 1 with compressed instructions",
                            "iaddress_lsb_p"),
    "privilege_width": _integer(_P, 3, "bits of privilege", "privilege_width_p", least=1),
    "ecause_width": _integer(_P, 64, "bits of ecause", "ecause_width_p", least=1),
    "context_width": _integer(_P, 64, "bits of context; 0: it is not sent", "context_width_p, nocontext_p"),
    "time_width": _integer(_P, 64, "bits of time in packets; 0: it is not sent", "time_width_p, notime_p"),
    "bpred_size": _integer(_P, 16, "the branch predictor has 2**N entries; 0: there is none", "bpred_size_p"),
    "cache_size": _integer(_P, 16, "the jump target cache has 2**N entries; 0: there is none", "cache_size_p"),
    "return_stack_size": _integer(_P, 16, "the return stack has 2**N entries; 0: there is none",
                                 "return_stack_size_p"),
    "call_counter_size": _integer(_P, 16, "bits of the call counter; 0: there is none", "call_counter_size_p"),
    "f0s_width": _integer(_P, 2, "bits of subformat in format 0; default: 1 with predictor and cache, else 0",
                         "f0s_width_p"),
    "iret_ext": _flag(_P, "implicit returns are counted in irets (Implicit Return extension), not irdepth", "iret_ext"),
    "ecall_retires": _flag(_P, "ecall and ebreak are reported as retired before their trap"),
    "data_width": _integer(_P, 512, "bits of the data of an access", "data_width_p", least=8),
    "daddress_width": _integer(_P, 64, "bits of the address of an access", "daddress_width_p", least=2),
    "lrid_width": _integer(_P, 16, "bits of the ID of a split load; 0: loads are unified", "lrid_width_p"),
    "data_format_width": _integer(
        _P, 3, "bits of format in data packets: 2 if there are only unified loads and stores"
    ),
    "data_diff_width": _integer(_P, 2, "bits of diff in data packets, where it may be 1 or 2", least=1),
    "data_difference": _flag(_P, "where diff has one bit, compressed data is a difference, not XOR"),
    "data_reference": _flag(_P, "data packets are as the reference model sends them"),
    "csr_width": _integer(_P, 64, "bits of a CSR in data packets; 0: as many as for other data"),
    "mmacas_ext": _flag(_P, "data packets are those of the Multi-Memory Access and Compare and Swap extension",
                        "mmacas_ext"),
    **{feature.etrace: _flag(_M, feature.meaning, feature.field) for feature in ETRACE},
    "resync_disabled": _flag(_M, "predictor, cache and return stack outlive synchronization", "trTeInstSyncMode 0"),
    "data_no_address": _flag(_M, "data packets have no address", "trTeDataNoAddr"),
    "data_no_data": _flag(_M, "data packets have no data", "trTeDataNoValue"),
    "data_full_address": _flag(_M, "addresses of data are sent in full", "trTeDataAddrCompress 0"),
    "data_full_data": _flag(_M, "data is sent in full", "trTeDataAddrCompress 0"),
    "unfiltered": _flag(_O, "everything that runs is traced: tracing stops only while the hart is halted",
                        "trTeInstFilters 0, trTeInstTrigEnable 0"),
    "sync_packets": _integer(_O, LONGEST_PERIOD, "number of packets after which the encoder synchronizes; 0: not known",
                            "trTeInstSyncMode 1, trTeInstSyncMax"),
    "branch_count_bits": _integer(_O, 32, "bits of the greatest branch_count that is believed; one with more is noise",
                                 "trTeInstSyncMode 2 or 3, trTeInstSyncMax", least=1),
    "pinned": _flag(_O, "support packets are ignored: the modes apply to the whole trace"),
    "support": EtraceSetting(_O, SettingKind.CHOICE, "layout of support packets", "",
                       tuple(one.value for one in SupportLayout)),
    "dialect": EtraceSetting(_O, SettingKind.CHOICE, "the kind of encoder that sent the packets", "",
                       tuple(one.value for one in Dialect)),
    "trap_vector": EtraceSetting(_O, SettingKind.ADDRESS, "where traps lead if their addresses are omitted",
                           "mtvec or stvec"),
    "trap_handlers": EtraceSetting(_O, SettingKind.HANDLERS, "the same for individual causes"),
    "encapsulation": EtraceSetting(_E, SettingKind.CHOICE, "how the packets are encapsulated", "", NAMES),
    "src_bits": _integer(_E, 16, "width of srcID", "trTeSrcBits"),
    "timestamp_bytes": _integer(_E, 8, "bytes of a timestamp before packets", "trTsWidth"),
    "type_bits": _integer(_E, 8, "width of the type of a packet; 0: all are te_inst"),
    "instruction_type": _integer(_E, 255, "the type of te_inst packets"),
    "data_type": _integer(_E, 255, "the type of te_data packets"),
    "extend_bit": _integer(_E, 7, "the bit of a header that announces a timestamp", least=5),
    "atb_bytes": _integer(_E, 16, "bytes of ATDATA in a record", least=1),
    "bit_packed": _flag(_E, "payloads end at any bit, not at whole bytes"),
    "block_size": _integer(_E, 1 << 30, "no packet straddles blocks of this many bytes; 0: there are none"),
    "block_start": _integer(_E, 1 << 30, "bytes of the trace before the first block, in a ring that has wrapped"),
    "src_id": _integer(Owner.NOTHING, (1 << 16) - 1, "srcID of this encoder, if trTeSrcID cannot hold it", "trTeSrcID"),
}  # fmt: skip
"""The settings by name, in the order of the help."""


class BadSetting(ValueError):
    """A setting that does not exist or has no usable value; *key* is its name."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key} {problem}")
        self.key, self.problem = key, problem


def check_settings(values: Mapping[str, Any], *, known_only: bool = True) -> dict[str, SettingValue]:
    """Return *values*, from a file, as settings. *known_only*: others are errors, else ignored. Raises `BadSetting`."""
    found: dict[str, SettingValue] = {}
    for key, value in values.items():
        if key in SETTINGS:
            if value is not None:
                found[key] = _checked(key, value)
        elif known_only:
            raise BadSetting(key, f"is unknown; known settings: {', '.join(SETTINGS)}")
    return found


def _checked(key: str, value: Any) -> SettingValue:
    setting = SETTINGS[key]
    if setting.kind is SettingKind.FLAG:
        if isinstance(value, bool):
            return value
        raise BadSetting(key, f"is {value_text(value)}, must be true or false")
    if setting.kind is SettingKind.NUMBER:
        if isinstance(value, int) and not isinstance(value, bool) and value in setting.allowed:
            return value
        assert isinstance(setting.allowed, range)
        raise BadSetting(
            key, f"is {value_text(value)}, must be a number from {setting.allowed[0]} to {setting.allowed[-1]}"
        )
    if setting.kind is SettingKind.CHOICE:
        if isinstance(value, str) and value in setting.allowed:
            return value
        raise BadSetting(key, f"is {value_text(value)}, must be one of {', '.join(map(str, setting.allowed))}")
    return _address_setting(key, value) if setting.kind is SettingKind.ADDRESS else _handlers(key, value)


def _address_setting(key: str, value: Any) -> str:
    """Return an address as text. A number is also accepted in files that can hold all of them."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64:
        return f"{value:#x}"
    if isinstance(value, str) and _HEX.fullmatch(value):
        return f"{int(value, 16):#x}"
    raise BadSetting(key, f'is {value_text(value)}, must be an address, as in "0x80000100"')


def _handlers(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise BadSetting(
            key, f"is {value_text(value)}, must be a table of addresses by cause, as in"
            ' {"2": "0x80000100", "i7": "0x80000200"}'
        )
    for cause in value:
        if not isinstance(cause, str) or not _TRAP.fullmatch(cause):
            raise BadSetting(key, f"has {cause!r}, which is not a cause: 2 is an exception, i7 an interrupt")
    return {cause: _address_setting(key, address) for cause, address in value.items()}


_FIELD = {"encapsulation": "name"}
"""Names of fields, where the setting's name has its owner's in it."""


@dataclass(frozen=True)
class EtraceTraceOptions:
    """The decoder's settings for packets, and for their encapsulation."""

    format: ClassVar = "etrace"

    options: Options = field(default_factory=Options)
    encapsulation: Encapsulation = field(default_factory=lambda: Encapsulation("encap"))

    @property
    def has_sources(self) -> bool:
        """Whether packets contain their source."""
        return self.encapsulation.name in ("smi", "atb") or self.encapsulation.src_bits > 0


_DEFAULTS = EtraceTraceOptions()


def etrace_of(values: SettingValues, base: EtraceTraceOptions = _DEFAULTS) -> EtraceTraceOptions:
    """Return *base* with the settings *values*, which were `checked`. Raises `BadSetting`."""
    parts: dict[Owner, dict[str, Any]] = {owner: {} for owner in Owner}
    for key, value in values.items():
        setting = SETTINGS[key]
        if setting.kind not in (SettingKind.ADDRESS, SettingKind.HANDLERS) and setting.owner is not Owner.NOTHING:
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
        return EtraceTraceOptions(options, replace(base.encapsulation, **parts[Owner.ENCAPSULATION]))
    except ValueError as error:
        raise BadSetting("encapsulation", f"does not fit the other settings: {error}") from None


def values_of(trace_options: EtraceTraceOptions, base: EtraceTraceOptions = _DEFAULTS) -> dict[str, SettingValue]:
    """Return the settings in which *trace_options* differs from *base*; `etrace_of` is the inverse."""
    found: dict[str, SettingValue] = {}
    for key, setting in SETTINGS.items():
        value = _get(trace_options, key, setting)
        if value is not None and value != _get(base, key, setting):
            found[key] = value
    return found


def default(key: str) -> SettingValue | None:
    """Return the value of a setting that is not given."""
    return _get(_DEFAULTS, key, SETTINGS[key])


def _get(trace_options: EtraceTraceOptions, key: str, setting: EtraceSetting) -> SettingValue | None:
    options = trace_options.options
    if setting.owner is Owner.NOTHING:
        return None
    if setting.kind is SettingKind.ADDRESS:
        return None if options.trap_handlers.tvec is None else f"{options.trap_handlers.tvec:#x}"
    if setting.kind is SettingKind.HANDLERS:
        return {
            f"{'i' * interrupt}{cause}": f"{address:#x}"
            for (cause, interrupt), address in options.trap_handlers.handlers.items()
        }
    parts = {
        Owner.PARAMETERS: options.parameters,
        Owner.MODES: options.modes,
        Owner.OPTIONS: options,
        Owner.ENCAPSULATION: trace_options.encapsulation,
    }
    value = getattr(parts[setting.owner], _FIELD.get(key, key))
    return value.value if isinstance(value, Enum) else value  # type: ignore[no-any-return]


def _typed(key: str, value: SettingValue) -> Any:
    if key == "support":
        return SupportLayout(value)
    return Dialect(value) if key == "dialect" else value


def _trap_handlers(values: SettingValues, before: TrapHandlers) -> TrapHandlers:
    vector, handlers = values.get("trap_vector"), values.get("trap_handlers")
    return TrapHandlers(
        before.tvec if vector is None else int(str(vector), 16),
        before.handlers
        if not isinstance(handlers, Mapping)
        else {(int(cause.lstrip("i")), cause.startswith("i")): int(text, 16) for cause, text in handlers.items()},
    )
