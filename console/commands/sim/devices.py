"""The construction of the trace components of `rvtrace sim`, one by one: the file of --devices.

    [encoder0]                                   # the component's name in the target description
    version = [1, 1]                             # tr??VerMajor and tr??VerMinor
    fixed = {trTeInstMode = 3}                   # fields that are hard-wired
    allowed = {trTeInstSyncMax = [4, 8]}         # the values a field can have
    filters = 4

    [ram0]
    access_width = 8                             # bytes
    flush_polls = 5                              # reads of tr??Control until it says that it is empty

A table `[all.encoder]` is for all components of that type; the table of a component comes before it, key by key.

docs/simulated-target.md has all keys. Misspelt, contradictory or impossible values are refused with one line that names
file, table and key.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rvtrace_gdb.console.commands.sim import coresight
from rvtrace_gdb.console.commands.sim.component_table import BUILD_KEYS, ComponentTable
from rvtrace_gdb.console.commands.sim.encoder import FORMATS
from rvtrace_gdb.console.commands.sim.etrace import described
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.description.tables import Tables
from rvtrace_gdb.support import toml
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.transport.simulated.devices.encoder import MOST as TRIGGERS
from rvtrace_gdb.transport.simulated.devices.encoder import OPTIONAL
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.devices.filters import COMPARATORS, FILTERS
from rvtrace_gdb.transport.simulated.devices.sinks import PinStream, transfers
from rvtrace_gdb.transport.simulated.wiring import (
    PIB_MODES,
    RAM_MODES,
    AnyPart,
    AtbBridgePart,
    AtbLinkPart,
    AxiStreamSinkPart,
    CoresightPart,
    EncoderPart,
    FunnelPart,
    PibSinkPart,
    RamSinkPart,
    SourcePart,
    TacitPart,
    TracerPart,
    Wiring,
    problems,
)

StreamOpener = Callable[[str, str, Path], PinStream]
"""Opens a stream, given the component's name, the destination, and the folder that file names are relative to."""

KEYS: Mapping[str, tuple[str, ...]] = {
    "encoder": (
        "formats", "without", "filters", "comparators", "data_filters", "nesting_bits", "trigger_inputs",
        "trigger_outputs", "overflow_after", "off", "etrace", "context_by_sync",
    ),
    "funnel": ("inputs", "depth", "clocks"),
    "ram_sink": ("modes", "sram_size", "access_width", "address_bits", "window"),
    "pib_sink": ("modes", "divider_bits", "stream"),
    "atb_bridge": ("width", "stream"),
    "axi_stream_sink": ("stream",),
    "tracer": ("depth",),
    "tacit": ("contexts",),
    "coresight_funnel": coresight.KEYS,
    "coresight_replicator": coresight.KEYS,
    "coresight_tmc": coresight.TMC_KEYS,
}  # fmt: skip
"""The keys of each type of component, besides those of all."""
_V0_KEYS: Mapping[str, tuple[str, ...]] = {
    "encoder": ("trigger_inputs", "trigger_outputs"),
    "funnel": ("inputs",),
}
_INSIDE_KEYS: Mapping[str, tuple[str, ...]] = {
    "ram_sink": ("modes", "sram_size", "access_width", "address_bits"),
    "pib_sink": ("stream",),
    "atb_bridge": ("width", "stream"),
}
"""The keys of pre-ratification components, and of sinks inside encoders and funnels."""
_CLOCKS = ("system", "external")
_SRAM_SIZES, _MANY = range(8, (1 << 28) + 1), range(1, 1 << 16)
_PAIRS = range(2, (1 << 15) + 1)  # TRACE_DEPTH of neorv32_tracer.vhd


def built(wiring: Wiring, path: Path, open_stream: StreamOpener) -> Wiring:
    """Return *wiring* with its parts built as in the file at *path*.

    Raises DescriptionError, and what *open_stream* raises.
    """
    read = Tables(str(path))
    tables = dict(_document(path))
    known = {part.name: part for part in wiring.parts}
    of_type = {} if _ALL in known else _tables_of_types(read, tables.pop(_ALL, {}))
    for name, table in tables.items():
        if name not in known:
            raise read.error(f"there is no component of this name; there is {', '.join(known)}", f"[{name}]")
        if not isinstance(table, dict):
            raise read.error("must be a table of a component", name)
    parts = (
        _built(read, part, {**of_type.get(part.kind, {}), **tables.get(part.name, {})}, open_stream)
        for part in wiring.parts
    )
    return Wiring(tuple(parts))


_ALL = "all"


def _tables_of_types(read: Tables, table: object) -> Mapping[str, Mapping[str, object]]:
    """Return the tables that are for all components of a type, by its name."""
    if not isinstance(table, dict):
        raise read.error("must be a table with a table for each type of component", _ALL)
    found: Mapping[str, Mapping[str, object]] = table
    for kind, keys in table.items():
        if kind not in KEYS:
            raise read.error(f"there is no such type of component; there is {', '.join(KEYS)}", f"[{_ALL}.{kind}]")
        if not isinstance(keys, dict):
            raise read.error("must be a table for all components of a type", f"{_ALL}.{kind}")
    return found


def _document(path: Path) -> Mapping[str, Any]:
    try:
        return toml.loads(read_input(path).decode())
    except OSError as error:
        raise DescriptionError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise DescriptionError("is not a TOML file: it is not UTF-8 text", str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"is not a TOML file: {error}", str(path)) from None
    except ValueError:
        raise DescriptionError("is not a TOML file that can be read: a number has too many digits", str(path)) from None
    except RecursionError:
        raise DescriptionError("is nested too deeply", str(path)) from None


def _built(read: Tables, part: AnyPart, table: Mapping[str, object], open_stream: StreamOpener) -> AnyPart:
    """Return a part built as in its table. Streams are opened last."""
    if not table:
        return part
    inside = not isinstance(part, SourcePart) and part.inside
    general = () if inside or isinstance(part, CoresightPart | TracerPart | TacitPart) else BUILD_KEYS
    section = ComponentTable(read, table, part, (*_keys(part), *general))
    part = _changed(section, replace(part, build=section.build()) if general else part)
    for key, problem in problems(part) if general else ():
        raise section.error(key, problem)
    if "stream" not in section:
        return part
    try:
        stream = open_stream(part.name, section.text("stream"), Path(read.file).parent)
    except RvtraceError as error:
        raise section.error("stream", str(error)) from None
    return streaming(part, stream)


def _keys(part: AnyPart) -> tuple[str, ...]:
    if isinstance(part, SourcePart):
        return KEYS[part.kind] if part.version else _V0_KEYS[part.kind]
    return (_INSIDE_KEYS if part.inside else KEYS)[part.kind]


def streaming(part: AnyPart, stream: PinStream) -> AnyPart:
    """Return *part*, which sends trace off the chip, with *stream* as its destination."""
    if isinstance(part, AtbBridgePart):
        return replace(part, transfer=transfers(stream, part.width))
    return replace(part, probe=stream) if isinstance(part, PibSinkPart | AxiStreamSinkPart) else part


def _changed(section: ComponentTable, part: AnyPart) -> AnyPart:
    match part:
        case EncoderPart():
            return _encoder(section, part)
        case FunnelPart():
            return _funnel(section, part)
        case RamSinkPart():
            return _ram_sink(section, part)
        case PibSinkPart():
            return _pib_sink(section, part)
        case AxiStreamSinkPart():
            return part
        case TacitPart():
            return replace(part, contexts=section.switch("contexts", part.contexts))
        case TracerPart():
            return replace(part, depth=section.power("depth", _PAIRS, part.depth))
        case AtbBridgePart():
            return replace(part, width=section.power("width", range(1, 17), part.width))
        case AtbLinkPart():
            return replace(part, width=section.power("width", range(1, 17), part.width))
        case _:
            return coresight.part_built(section, part)


def _encoder(section: ComponentTable, part: EncoderPart) -> EncoderPart:
    if "formats" in section:
        words = section.words("formats", FORMATS)
        if not words:
            raise section.error("formats", f"must name one of {', '.join(FORMATS)}")
        part = replace(part, formats=tuple(FORMATS[word] for word in words))
    if "without" in section:
        part = replace(part, absent=section.words("without", sorted(OPTIONAL)))
    if "etrace" in section:
        part = replace(part, etrace=described(part.etrace or ETraceBuild(), section.etrace()))
    if section.switch("context_by_sync", False):
        part = replace(part, built_with=replace(part.built_with or EncoderOptions(), context_by_sync=True))
    units = part.filters
    filters = section.number("filters", range(FILTERS + 1), units.filters)
    comparators = min(filters, COMPARATORS) if "filters" in section else units.comparators
    return replace(
        part,
        filters=replace(
            units,
            filters=filters,
            comparators=section.number("comparators", range(COMPARATORS + 1), comparators),
            data=section.switch("data_filters", units.data),
            nesting_bits=section.number("nesting_bits", range(1, 17), units.nesting_bits),
        ),
        trigger_inputs=section.number("trigger_inputs", range(TRIGGERS + 1), part.trigger_inputs),
        trigger_outputs=section.number("trigger_outputs", range(TRIGGERS + 1), part.trigger_outputs),
        overflow_after=section.numbers("overflow_after") if "overflow_after" in section else part.overflow_after,
        off=section.switch("off", part.off),
    )


def _funnel(section: ComponentTable, part: FunnelPart) -> FunnelPart:
    used = range(part.input_count, 17)
    count, depth = section.number("inputs", used, part.input_count), section.number("depth", _MANY, part.depth)
    if "clocks" in section:
        clocks = section.words("clocks", _CLOCKS)
        part = replace(part, system_clock="system" in clocks, external_clock="external" in clocks)
    return replace(part, input_count=count, depth=depth)


def _ram_sink(section: ComponentTable, part: RamSinkPart) -> RamSinkPart:
    if "modes" in section:
        part = replace(part, modes=tuple(RAM_MODES[word] for word in _some(section, RAM_MODES)))
    return replace(
        part,
        sram_size=section.power("sram_size", _SRAM_SIZES, part.sram_size),
        access_bytes=section.power("access_width", range(4, 65), part.access_bytes),
        address_bits=section.number("address_bits", range(32, 65), part.address_bits),
        window=section.switch("window", part.window),
    )


def _pib_sink(section: ComponentTable, part: PibSinkPart) -> PibSinkPart:
    if "modes" in section:
        part = replace(part, modes=tuple(PIB_MODES[word] for word in _some(section, PIB_MODES)))
    return replace(part, divider_bits=section.number("divider_bits", range(17), part.divider_bits))


def _some(section: ComponentTable, choices: Mapping[str, object]) -> tuple[str, ...]:
    words = section.words("modes", choices)
    if not words:
        raise section.error("modes", f"must name one of {', '.join(choices)}")
    return words
