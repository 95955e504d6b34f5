"""The trace components of a board with what is known of them, and the text of their description.

Each key of a component has its value and where that comes from, which becomes the comment of its line.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs.graph import CORESIGHT
from rvtrace_gdb.controlregs.trace_control.discovery import ProbeAnswer, ProbedComponent
from rvtrace_gdb.session.description.model import (
    AnyComponent,
    AnyFunnelDescription,
    AtbLinkDescription,
    EncoderDescription,
    FunnelDescription,
    RamSinkDescription,
    SourceDescription,
    TmcLinkDescription,
    TmcSinkDescription,
    host_of,
    power_of,
)
from rvtrace_gdb.session.description.tables import quoted
from rvtrace_gdb.session.survey.questions import SurveySetting
from rvtrace_gdb.support.text import printable

PREFIXES = {"encoder": "encoder", "funnel": "funnel", "ram_sink": "ram", "pib_sink": "pib", "atb_bridge": "atb"}
CHOSEN = "chosen by rvtrace init, any other will do"
PROBED = "answered at this address"


@dataclass
class SurveyedComponent:
    """A component. *storage*: the modes of a RAM sink, () if they are not known; *buffer*: its present buffer."""

    name: str
    kind: str
    base: int
    settings: dict[str, SurveySetting] = field(default_factory=dict)
    storage: tuple[str, ...] = ()
    buffer: tuple[int, int] | None = None

    def set(self, key: str, value: object, source: str) -> None:
        self.settings[key] = SurveySetting(value, source)


def probed(seen: Iterable[ProbedComponent]) -> list[SurveyedComponent]:
    """Return the components that were found by probing, named by kind and address."""
    parts: list[SurveyedComponent] = []
    for found in sorted((each for each in seen if each.answer is ProbeAnswer.COMPONENT), key=lambda each: each.base):
        number = sum(part.kind == found.kind for part in parts)
        part = SurveyedComponent(f"{PREFIXES[found.kind]}{number}", found.kind, found.base)
        part.storage, part.buffer = found.storage, found.buffer
        part.set("name", part.name, CHOSEN)
        part.set("type", part.kind, f"found: tr??Impl reads {found.impl or 0:#010x}")
        part.set("base", part.base, f"found by probing: {PROBED}")
        parts.append(part)
    return parts


def of_tree(components: Iterable[AnyComponent], nodes: Mapping[str, str]) -> list[SurveyedComponent]:
    """Return the components of a device tree. *nodes*: the path of each one's node, by its name."""
    return [_of_tree(component, nodes.get(component.name, "")) for component in components]


def _of_tree(component: AnyComponent, node: str) -> SurveyedComponent:
    source = f"device tree{f', node {node}' if node else ''}"
    part = SurveyedComponent(component.name, component.kind, component.base)
    part.set("name", component.name, CHOSEN)
    part.set("type", component.kind, source)
    inside = host_of(component)
    if isinstance(component, EncoderDescription | FunnelDescription) and not component.version:
        part.set("version", component.version, source)
    part.set("inside", inside, source) if inside else part.set("base", component.base, source)
    if power_of(component) is not None:
        part.set("hart", power_of(component), source)
    if isinstance(component, SourceDescription):
        part.set("to", component.to, source)
    if isinstance(component, AnyFunnelDescription) and component.inputs:
        part.set("inputs", component.inputs, source)
    if isinstance(component, AtbLinkDescription):
        part.set("id", component.id, CHOSEN)
    if isinstance(component, RamSinkDescription) and component.start is not None:
        part.buffer = component.start, component.size or 0
    if isinstance(component, TmcLinkDescription | TmcSinkDescription):
        _set_tmc(part, component, source)
    return part


def _set_tmc(part: SurveyedComponent, tmc: TmcLinkDescription | TmcSinkDescription, source: str) -> None:
    part.set("mode", tmc.mode, source)
    if isinstance(tmc, TmcSinkDescription):
        for key, value in (("start", tmc.start), ("size", tmc.size)):
            if value is not None:
                part.set(key, value, source)


def checked(parts: Sequence[SurveyedComponent], seen: Iterable[ProbedComponent]) -> Iterator[str]:
    """Correct the components of a device tree by what their registers say. Yield a line for each difference."""
    found = {each.base: each for each in seen}
    for part in parts:
        here = found.get(part.base)
        if here is None or "inside" in part.settings or "version" in part.settings or part.kind in CORESIGHT:
            continue
        if here.answer is not ProbeAnswer.COMPONENT:
            yield f"{part.name} at {part.base:#x}: is in the device tree, but no trace component answers there"
            continue
        part.storage, part.buffer = here.storage, part.buffer or here.buffer
        if here.kind != part.kind:
            yield f"{part.name} at {part.base:#x}: {part.kind} by the device tree, but it says that it is {here.kind}"
        part.kind = here.kind
        part.set("type", here.kind, f"found: tr??Impl reads {here.impl or 0:#010x}")
    known = {part.base for part in parts}
    for each in found.values():
        if each.answer is ProbeAnswer.COMPONENT and each.base not in known:
            yield f"{each.base:#x}: {each.kind} is not in the device tree, which is believed; left out"


SettingsTable = tuple[str, Mapping[str, SurveySetting]]
"""A table's head, "[target]", and its keys."""


def text(header: Iterable[str], tables: Iterable[SettingsTable]) -> str:
    """Return the text of a description, in which each line has a comment with its source."""
    lines = [f"# {printable(line)}".rstrip() for line in header]
    for head, settings in tables:
        lines += ["", head]
        rows = [(f"{key} = {_toml(key, setting.value)}", setting.source) for key, setting in settings.items()]
        width = max((len(row) for row, _ in rows), default=0)
        lines += [f"{row:<{width}}  # {printable(source)}" for row, source in rows]
    return "\n".join(lines) + "\n"


_ADDRESSES = ("base", "start", "size", "address")


def _toml(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value:#x}" if key in _ADDRESSES else str(value)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{quoted(name)} = {number}' for name, number in value.items())}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(quoted(str(each)) for each in value)}]"
    return quoted(str(value))
