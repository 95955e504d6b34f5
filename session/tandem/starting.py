"""`trace start` where the target description has tandem ports."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rvtrace_gdb.session import beginning, report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import Description, Tandem
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.reading import Reading
from rvtrace_gdb.session.request import chosen, trace_request
from rvtrace_gdb.session.tandem.live import TandemTrace

if TYPE_CHECKING:
    from rvtrace_gdb.session.session import Session

_CHOICES = ("to", "harts")


def wanted(description: Description, options: Mapping[str, Any]) -> bool:
    """Whether a tandem port is to be read: the description has some, and *options* name no sinks but ports.

    Raises BadOption.
    """
    names, _ = chosen(options)
    ports = {port.name for port in description.tandem}
    if description.encoders and ports & set(names) and set(names) - ports:
        raise BadOption(f"-to {','.join(names)}: tandem ports and sinks of encoders cannot be traced at once")
    return bool(ports) and (ports.issuperset(names) or not description.encoders)


def start(session: "Session", description: Description, context: Context, options: Mapping[str, Any]) -> list[str]:
    """Begin to read; a trace that was there is dropped. What was set up, a line each.

    Raises NoElf, BadElf, WrongXlen, BadOption, Busy, PortFileError.
    """
    program = beginning.program_of(context.elf)
    image = program.image()
    beginning.check_xlen(image, description)
    trace_request(options, image)  # says what is wrong with them
    ports = _ports(description, options)
    session.check_free(TandemTrace)
    trace = TandemTrace(ports, image)
    if session.live is not None:
        session.live.abandon()
    trace.notes += _without_effect(options)
    return session.begin(trace, Reading(beginning.begun(description.name, image), program), report.target(description))


def _ports(description: Description, options: Mapping[str, Any]) -> list[Tandem]:
    names, harts = chosen(options)
    known = [port.name for port in description.tandem]
    for name in names:
        if name not in known:
            raise BadOption(f"there is no tandem port {name!r} in the target description, it has {', '.join(known)}")
    ports = [port for port in description.tandem if not names or port.name in names]
    there = {port.hart for port in ports}
    for hart in harts:
        if hart not in there:
            raise BadOption(f"there is no tandem port of hart {hart}: there are those of {_listed(sorted(there))}")
    return [port for port in ports if not harts or port.hart in harts]


def _listed(harts: list[int]) -> str:
    return f"hart {harts[0]}" if len(harts) == 1 else f"harts {', '.join(map(str, harts))}"


def _without_effect(options: Mapping[str, Any]) -> list[str]:
    """What only encoders do."""
    asked = [name for name, value in options.items() if name not in _CHOICES and value]
    if not asked:
        return []
    return [f"a tandem port tells everything, without effect: {', '.join(name.replace('_', '-') for name in asked)}"]
