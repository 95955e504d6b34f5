"""One component from its reset until it is disabled: reset, identification, enabling, disabling.

`reset` and `identify` check that it is what the target description says. A component is left disabled only when its
registers report that it is done. `check_settings`, `changed_encoder` and `moved_buffer` find out whether components are
still set up as they were when tracing began: a component that was reset loses its settings, and what is then read from
it does not concern this trace.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery", "Enabling and Disabling", and the
section on versioning.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight import lifecycle as coresight
from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.settings import TmcSettings
from rvtrace_gdb.controlregs.errors import (
    ComponentError,
    SettingRefused,
    SettingsChanged,
    UnsupportedVersion,
    WasReset,
    WrongComponent,
)
from rvtrace_gdb.controlregs.fields import FieldAccess, Register
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.trace_control import component_registers, encoder_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import (
    ANY_COMP_TYPE,
    MISSTATED_VERSIONS,
    VERSION,
    VERSION_EXPERIMENTAL,
    CompType,
    RamMode,
)
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    DATA_CONTROL,
    ENCODER_CONTROL,
    INST_FEATURES,
    INST_FILTERS,
)
from rvtrace_gdb.controlregs.trace_control.encoder_setup import begin_data
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import data_follows
from rvtrace_gdb.controlregs.trace_control.request import (
    BridgeSettings,
    EncoderSettings,
    FunnelSettings,
    GraphSettings,
    PibSettings,
    SinkSettings,
)
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

UNANSWERED_READS = (0x0000_0000, 0xFFFF_FFFF)  # what tr??Impl reads where nothing answers, on buses that give no error
READS_UNTIL_STABLE = 32


@dataclass(frozen=True)
class Identity:
    """The content of tr??Impl. *notes*: facts that the user should know although they stop nothing."""

    impl: int
    version: tuple[int, int]
    notes: tuple[str, ...] = ()


def reset(component: Component, progress: Progress = silent) -> Identity:
    """Reset the component, wake it, and check its identity. All its settings are lost, Enable is 0 afterwards.

    Raises ComponentTimeout, WrongComponent, UnsupportedVersion, SettingRefused, ComponentAccess. Anything that is not
    this component keeps its content: a wrong base address may lie in the program's memory.
    """
    if isinstance(component, CoresightComponent):
        notes = coresight.take_over(component, progress)
        return Identity(0, VERSION, tuple(notes))
    control, active = component.block.control, component.block.prefix + "Active"
    before = read_stable(component, control)
    if control.get(before, active):
        identify(component)
    try:
        for state in (0, 1):
            component.write(control, state)
            value = component.wait(control, progress, **{active: state})
        component.forget()
        identity = identify(component)
    except (WrongComponent, UnsupportedVersion):
        with suppress(RvtraceError):  # what went wrong is already known
            component.write(control, before & ~1)
        raise
    if control.get(value, component.block.prefix + "Enable"):
        text = f"is on right after its reset ({control.name} reads {value:#010x}), so it cannot be set up"
        raise SettingRefused(component.name, component.base, f"{text}; check the component, and the base address")
    return identity


def identify(component: Component) -> Identity:
    """Return version and kind of an active component. Raises WrongComponent, UnsupportedVersion, ComponentAccess."""
    register, prefix = component.block.impl, component.block.prefix
    impl = read_stable(component, register)
    version = register.get(impl, prefix + "VerMajor"), register.get(impl, prefix + "VerMinor")
    if impl in UNANSWERED_READS:
        raise WrongComponent(component.name, component.base, impl, component.block.name, None)
    found = register.get(impl, prefix + "CompType")
    is_of_type = found == component.block.comp_type
    if version in MISSTATED_VERSIONS and is_of_type:
        return Identity(impl, VERSION, (_misstated(component, version, impl),))
    if version[0] != VERSION[0]:
        raise UnsupportedVersion(component.name, component.base, impl, version, VERSION)
    if not is_of_type and component.block.comp_type != ANY_COMP_TYPE:
        raise WrongComponent(component.name, component.base, impl, component.block.name, _type_name(found))
    return Identity(impl, version, _version_notes(component, version, impl))


def _misstated(component: Component, version: tuple[int, int], impl: int) -> str:
    """Return the note on a version that stands for 1.0, which the target description says it is."""
    return (
        f"{component.name} at {component.base:#x}: trace control interface {version[0]}.{version[1]} is used as "
        f"{VERSION[0]}.{VERSION[1]}: it is {MISSTATED_VERSIONS[version]} (tr??Impl reads {impl:#010x})"
    )


def read_stable(component: Component, register: Register) -> int:
    """Read the register until two reads agree, and return its value.

    OpenOCD 0.12 answers the first reads over a slow system bus with the previous word, until it has learned the delay.
    """
    value = component.read(register)
    for _ in range(READS_UNTIL_STABLE):
        previous, value = value, component.read(register)
        if value == previous:
            break
    return value


def _type_name(code: int) -> str:
    names = {int(kind): kind.name.lower().replace("_", " ") for kind in CompType}
    return names.get(code, f"component of unknown type {code:#x}")


def _version_notes(component: Component, version: tuple[int, int], impl: int) -> tuple[str, ...]:
    if version[1] <= VERSION[1]:
        return ()
    kind = "experimental" if version[1] == VERSION_EXPERIMENTAL else "a newer one"
    return (
        f"{component.name} at {component.base:#x}: trace control interface {version[0]}.{version[1]} is {kind}, "
        f"used as {VERSION[0]}.{VERSION[1]} (tr??Impl reads {impl:#010x})",
    )


def start_tracing(component: Component, *, data: bool, on: bool = True) -> list[str]:
    """Let an enabled encoder trace, *data* too; if not *on*, a trigger will switch it on. Return a line for what does
    not start. Raises WasReset, NoAnswer, ComponentAccess.
    """
    check_active(component)
    notes = begin_data(component, data) if on or not data_follows(component) else []
    if not on:
        return notes
    control = component.set(encoder_registers.ENCODER_CONTROL, trTeInstTracing=1)
    if not encoder_registers.ENCODER_CONTROL.get(control, "trTeInstTracing"):
        notes.append(f"{component.name}: tracing is not on yet (trTeInstTracing reads 0)")
    return notes


def check_active(component: Component) -> int:
    """Return tr??Control of a component that was set up.

    A component that was reset in between must not be woken with its old value, as all its other registers are
    undefined. Raises WasReset, NoAnswer, ComponentAccess.
    """
    if isinstance(component, CoresightComponent):
        coresight.check_claim(component)
        return component.read(component.block.control)
    control = component.block.control
    value = component.read_control()
    if not control.get(value, component.block.prefix + "Active"):
        raise WasReset(component.name, component.base, control, value)
    return value


def enable(component: Component, progress: Progress = silent) -> None:
    """Set Enable, the last setting of a component, and wait until it is in force.

    Raises WasReset, SettingRefused for one that is enabled already, and what `Component.wait` raises.
    """
    if isinstance(component, CoresightComponent):
        coresight.enable(component, progress)
        return
    control, bit = component.block.control, component.block.prefix + "Enable"
    value = check_active(component)
    if control.get(value, bit):
        text = f"is on before it was switched on ({control.name} reads {value:#010x}): does it answer at the address of"
        raise SettingRefused(component.name, component.base, f"{text} also another component?")
    component.set(control, **{bit: 1})
    component.wait(control, progress, **{bit: 1})


def disable(component: Component, progress: Progress = silent) -> bool:
    """Clear Enable and wait until the component has passed on all trace. Return False if it was in reset; it is left
    there.
    """
    if isinstance(component, CoresightComponent):
        return coresight.disable(component, progress)
    control, prefix = component.block.control, component.block.prefix
    if not control.get(component.read_control(), prefix + "Active"):
        return False
    fields = {prefix + "Enable": 0}
    if component.block is encoder_registers.ENCODER:
        fields["trTeInstTracing"] = 0
    component.set(control, **fields)
    component.wait(control, progress, **{prefix + "Enable": 0, prefix + "Empty": 1})
    return True


def disable_all(enabled: Sequence[Component]) -> None:
    """Disable these components, the last one first, after something failed. Components that cannot be reached are
    skipped.
    """
    for component in enabled[::-1]:
        try:
            disable(component)
        except ComponentError:
            continue
        except RvtraceError:
            return


_SENT: Mapping[Register, tuple[str, ...]] = {
    ENCODER_CONTROL: (
        "trTeInstMode", "trTeFormat", "trTeContext", "trTeInstSyncMode", "trTeInstSyncMax", "trTeInhibitSrc",
    ),
    INST_FEATURES: tuple(INST_FEATURES.by_name),
    component_registers.TS_CONTROL: ("trTsMode", "trTsPrescale", "trTsEnable"),
    DATA_CONTROL: ("trTeDataNoValue", "trTeDataNoAddr", "trTeDataAddrCompress"),
}  # fmt: skip
"""The fields that decide what an encoder sends."""


def moved_buffer(sink: Component, before: SinkSettings) -> str | None:
    """Return the name of the register that shows that a RAM sink's buffer is not where it was, or None. Raises
    ComponentAccess.
    """
    if isinstance(before, TmcSettings):
        return None  # `drain` checks the claim
    if before.mode is not RamMode.SMEM or not sink.get(component_registers.RAM_CONTROL, "trRamActive"):
        return None
    if sink.read(component_registers.RAM_START_LOW) == before.start & 0xFFFF_FFFF:
        return None
    return component_registers.RAM_START_LOW.name


def changed_encoder(graph: Graph, before: GraphSettings) -> tuple[str, str] | None:
    """Return an encoder that no longer sends what it did, and the register that shows it, or None. Raises
    ComponentAccess.
    """
    was = {encoder.name: encoder for encoder in before.encoders}
    for component in graph.encoders:
        values = _sent_values(was[component.name])
        for (register, fields), value in zip(_SENT.items(), values, strict=True):
            if (component.read(register) ^ value) & register.mask(*fields):
                return component.name, register.name
    return None


def _sent_values(encoder: EncoderSettings) -> tuple[int, ...]:
    """Return the values of the registers of `_SENT`."""
    return encoder.control, encoder.features, encoder.ts_control, encoder.data_control


_AnySettings = EncoderSettings | SinkSettings | PibSettings | BridgeSettings | FunnelSettings


class _RegisterSetting(NamedTuple):
    """A register, its *value* as read when it was set, and a *mask* of the bits that only software changes."""

    register: Register
    value: int
    mask: int


def check_settings(components: Iterable[Component], before: GraphSettings) -> None:
    """Raise SettingsChanged for a component that is not set up as it was, or ComponentAccess.

    Components that *before* does not contain are not checked.
    """
    known: dict[str, _AnySettings] = {}
    for of_kind in (before.encoders, before.ram_sinks, before.pib_sinks, before.bridges, before.funnels):
        known |= {each.name: each for each in of_kind}
    for component in components:
        was = known.get(component.name)
        if isinstance(was, TmcSettings):
            coresight.check_settings(component, was)
            continue
        for register, value, mask in _settings(was):
            now = component.read(register)
            if (now ^ value) & mask:
                raise SettingsChanged(component.name, component.base, register.name, value & mask, now & mask)


def _settings(before: _AnySettings | None) -> list[_RegisterSetting]:
    if isinstance(before, EncoderSettings):
        return [
            _set(ENCODER_CONTROL, before.control, "trTeInstTracing"),  # triggers change what is traced
            _set(INST_FEATURES, before.features),
            _set(component_registers.TS_CONTROL, before.ts_control),
            _set(DATA_CONTROL, before.data_control, "trTeDataTracing"),
            *([] if before.inst_filters is None else [_set(INST_FILTERS, before.inst_filters)]),
        ]
    if isinstance(before, SinkSettings):
        return [_set(component_registers.RAM_CONTROL, before.control), *_buffer(before)]
    if isinstance(before, PibSettings):
        return [_set(component_registers.PIB_CONTROL, before.control)]
    if isinstance(before, BridgeSettings):
        identity = component_registers.ATB_BRIDGE_CONTROL.mask("trAtbBridgeID")
        return [
            _RegisterSetting(component_registers.ATB_BRIDGE_CONTROL, before.control, identity),
            _set(component_registers.ATB_BRIDGE_IMPL, before.impl),
        ]
    if isinstance(before, FunnelSettings):
        return [
            _set(component_registers.FUNNEL_DIS_INPUT, before.dis_input),
            _set(component_registers.TS_CONTROL, before.ts_control),
        ]
    return []


def _set(register: Register, value: int, *but: str) -> _RegisterSetting:
    return _RegisterSetting(register, value, register.mask_of(FieldAccess.WARL) & ~register.mask(*but))


def _buffer(sink: SinkSettings) -> Iterable[_RegisterSetting]:
    """Return the settings of a sink's buffer. SRAM needs no high words."""
    word = 0xFFFF_FFFF
    for low, high, address in (
        (component_registers.RAM_START_LOW, component_registers.RAM_START_HIGH, sink.start),
        (component_registers.RAM_LIMIT_LOW, component_registers.RAM_LIMIT_HIGH, sink.limit),
    ):
        yield _RegisterSetting(low, address & word, low.mask_of(FieldAccess.WARL))
        if sink.mode is RamMode.SMEM:
            yield _RegisterSetting(high, address >> 32, word)
