"""Whether components are still set up as they were when tracing began: what is read from others is not about our trace.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery": a component that was reset forgets.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rvtrace_gdb.controlregs import atb_bridge, funnel, pib, ram_sink, timestamp
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder import CONTROL, DATA_CONTROL, INST_FEATURES, INST_FILTERS
from rvtrace_gdb.controlregs.errors import SettingsChanged
from rvtrace_gdb.controlregs.fields import Access, Register
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.graph_request import BridgeInForce, FunnelInForce, GraphInForce, PibInForce
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import EncoderInForce, SinkInForce

_SENT: Mapping[Register, tuple[str, ...]] = {
    CONTROL: (
        "trTeInstMode", "trTeFormat", "trTeContext", "trTeInstSyncMode", "trTeInstSyncMax", "trTeInhibitSrc",
    ),
    INST_FEATURES: tuple(INST_FEATURES.by_name),
    timestamp.CONTROL: ("trTsMode", "trTsPrescale", "trTsEnable"),
    DATA_CONTROL: ("trTeDataNoValue", "trTeDataNoAddr", "trTeDataAddrCompress"),
}  # fmt: skip
"""The fields that decide what an encoder sends."""


def moved(sink: Component, before: SinkInForce) -> str | None:
    """The register that shows that a RAM sink's buffer is not where it was. Raises ComponentAccess."""
    if before.mode is not RamMode.SMEM or not sink.get(ram_sink.CONTROL, "trRamActive"):
        return None
    if sink.read(ram_sink.START_LOW) == before.start & 0xFFFF_FFFF:
        return None
    return ram_sink.START_LOW.name


def changed(graph: Graph, before: GraphInForce) -> tuple[str, str] | None:
    """An encoder that would send something else than it did, and the register that shows it. Raises ComponentAccess."""
    was = {encoder.name: encoder for encoder in before.encoders}
    for component in graph.encoders:
        values = _values(was[component.name])
        for (register, fields), value in zip(_SENT.items(), values, strict=True):
            if (component.read(register) ^ value) & register.mask(*fields):
                return component.name, register.name
    return None


def _values(encoder: EncoderInForce) -> tuple[int, ...]:
    """Of the registers of `_SENT`."""
    return encoder.control, encoder.features, encoder.ts_control, encoder.data_control


_InForce = EncoderInForce | SinkInForce | PibInForce | BridgeInForce | FunnelInForce


class _Setting(NamedTuple):
    """*value*: as the register was read when it was set; *mask*: the bits that only software changes."""

    register: Register
    value: int
    mask: int


def check_settings(components: Iterable[Component], before: GraphInForce) -> None:
    """Raises SettingsChanged for a component that is not set up as it was, and ComponentAccess. Those that *before*
    does not tell of are not looked at.
    """
    known: dict[str, _InForce] = {}
    for of_kind in (before.encoders, before.ram_sinks, before.pib_sinks, before.bridges, before.funnels):
        known |= {each.name: each for each in of_kind}
    for component in components:
        for register, value, mask in _settings(known.get(component.name)):
            now = component.read(register)
            if (now ^ value) & mask:
                raise SettingsChanged(component.name, component.base, register.name, value & mask, now & mask)


def _settings(before: _InForce | None) -> list[_Setting]:
    if isinstance(before, EncoderInForce):
        return [
            _set(CONTROL, before.control, "trTeInstTracing"),  # triggers change what is traced
            _set(INST_FEATURES, before.features),
            _set(timestamp.CONTROL, before.ts_control),
            _set(DATA_CONTROL, before.data_control, "trTeDataTracing"),
            *([] if before.inst_filters is None else [_set(INST_FILTERS, before.inst_filters)]),
        ]
    if isinstance(before, SinkInForce):
        return [_set(ram_sink.CONTROL, before.control), *_buffer(before)]
    if isinstance(before, PibInForce):
        return [_set(pib.CONTROL, before.control)]
    if isinstance(before, BridgeInForce):
        identity = atb_bridge.CONTROL.mask("trAtbBridgeID")
        return [_Setting(atb_bridge.CONTROL, before.control, identity), _set(atb_bridge.IMPL, before.impl)]
    if isinstance(before, FunnelInForce):
        return [_set(funnel.DIS_INPUT, before.dis_input), _set(timestamp.CONTROL, before.ts_control)]
    return []


def _set(register: Register, value: int, *but: str) -> _Setting:
    return _Setting(register, value, register.mask_of(Access.WARL) & ~register.mask(*but))


def _buffer(sink: SinkInForce) -> Iterable[_Setting]:
    """Its own memory needs no high words."""
    word = 0xFFFF_FFFF
    for low, high, address in (
        (ram_sink.START_LOW, ram_sink.START_HIGH, sink.start),
        (ram_sink.LIMIT_LOW, ram_sink.LIMIT_HIGH, sink.limit),
    ):
        yield _Setting(low, address & word, low.mask_of(Access.WARL))
        if sink.mode is RamMode.SMEM:
            yield _Setting(high, address >> 32, word)
