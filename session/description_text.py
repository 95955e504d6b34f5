"""A target description as the text of its file, for programs that write one. What `parse` makes of it is the same."""

from collections.abc import Iterator, Mapping

from rvtrace_gdb.session import description_tandem
from rvtrace_gdb.session.description import RATIFIED, AnyComponent, Description, Encoder, Funnel, PibSink, RamSink
from rvtrace_gdb.session.etrace_settings import Value
from rvtrace_gdb.support.text import printable

NOTHING: Mapping[str, str] = {}


def text(description: Description, header: str = "", comments: Mapping[str, str] = NOTHING) -> str:
    """TOML. *header*: comment lines at its beginning; *comments*: one for the component of that name."""
    lines = [f"# {printable(line)}" for line in header.splitlines()]
    lines += ["[target]", f"name = {quoted(description.name)}"]
    lines += [f"xlen = {description.xlen}"] if description.xlen else []
    if description.qemu:
        return "\n".join([*lines, "", "[qemu]", f"folder = {quoted(description.qemu)}"]) + "\n"
    lines += ["", *_way(description)]
    for component in description.components:
        comment = comments.get(component.name)
        lines += ["", *([f"# {printable(comment)}"] if comment else []), "[[component]]", *_component(component)]
    for port in description.tandem:
        lines += ["", "[[tandem]]", *(f"{key} = {_value(value)}" for key, value in description_tandem.lines(port))]
    return "\n".join(lines) + "\n"


def _way(description: Description) -> Iterator[str]:
    """How the target is reached."""
    if description.usb is None:
        openocd = description.openocd
        yield from ("[openocd]", f"host = {quoted(openocd.host)}", f"tcl_port = {openocd.tcl_port}")
        return
    yield "[usb]"
    for key, value in vars(description.usb).items():
        if isinstance(value, tuple):
            yield f"{key} = [{', '.join(map(str, value))}]"
        elif value is not None and (value or key not in ("tap", "interface")):
            yield f"{key} = {_value(value)}"


def quoted(text: str) -> str:
    """A TOML string of printable text."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _component(component: AnyComponent) -> Iterator[str]:
    yield f"name = {quoted(component.name)}"
    yield f"type = {quoted(component.kind)}"
    if isinstance(component, Encoder | Funnel):
        if component.version != RATIFIED:
            yield f"version = {component.version}"
        yield f"base = {component.base:#x}"
        yield from _feeding(component)
    else:
        yield f"inside = {quoted(component.inside)}" if component.inside else f"base = {component.base:#x}"
        if isinstance(component, RamSink):
            yield from _ram_sink(component)
        elif isinstance(component, PibSink):
            yield from _pib_sink(component)
        elif component.id is not None:
            yield f"id = {component.id:#x}"


def _feeding(source: Encoder | Funnel) -> Iterator[str]:
    if isinstance(source, Encoder):
        yield f"hart = {source.hart}"
    yield f"to = [{', '.join(map(quoted, source.to))}]"
    if isinstance(source, Encoder):
        if source.etrace:
            yield "[component.etrace]"
        yield from (f"{key} = {_value(value)}" for key, value in source.etrace.items())
    elif source.inputs:
        yield f"inputs = {{{', '.join(f'{quoted(name)} = {number}' for name, number in source.inputs.items())}}}"


def _ram_sink(sink: RamSink) -> Iterator[str]:
    yield f"mode = {quoted(sink.mode)}"
    if sink.start is not None:
        yield f"start = {sink.start:#x}"
    if sink.size is not None:
        yield f"size = {sink.size:#x}"


def _pib_sink(sink: PibSink) -> Iterator[str]:
    if sink.mode is not None:
        yield f"mode = {quoted(sink.mode)}"
    if sink.divider is not None:
        yield f"divider = {sink.divider}"
    if sink.clk_center is not None:
        yield f"clk_center = {_value(sink.clk_center)}"


def _value(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{quoted(key)} = {quoted(text)}' for key, text in value.items())}}}"
    return str(value) if isinstance(value, int) else quoted(value)
