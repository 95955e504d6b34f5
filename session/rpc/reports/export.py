"""The methods of the session protocol for exports, see `session.exports.export`.

    exports {} -> {rows: [[name, help], ...]}
    export {context, name, path, hart, range, time, resolution, exact, itrace} -> {lines}

*name*: that of an export; *path*: the file to write, which exists as a whole afterwards, or not at all. *hart*: the
hart that is written; without it, all harts of a form that has several, else the context's. The others: see
`session.exports.selection`; they may be missing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from rvtrace_gdb.session.exports import export as session_export
from rvtrace_gdb.session.exports.selection import ExportOptions, exported
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.files import atomic_output, protect_inputs


def exports(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the exports that there are, see the module."""
    return {"rows": [(row.name, row.help) for row in session_export.EXPORTS]}


def export(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Write an export, see the module. Raises NoSuchExport, ExportError, OutputError, what the writer and
    `Session.selected` do.
    """
    path = params.path("path")
    row = session_export.named(params.text("name"))  # before the trace is read out
    texts = (params.text(name) if params.given(name) else None for name in ("range", "time", "exact", "itrace"))
    part, time, exact, itrace = texts
    options = ExportOptions(part, time, params.optional_number("resolution"), exact, itrace)
    context = params.context()
    if params.given("hart"):
        context = replace(context, hart=params.number("hart"))
    elif row.several:
        context = replace(context, hart=None)
    trace = exported(session, context, row, options, progress)
    protect_inputs(path, [session.opened, *(elf.path for elf, _ in trace.program.all_programs.elves)])
    with atomic_output(path) as file:
        written = session_export.write(row.name, trace, file, progress)
    lines = [line for it in trace.harts for line in it.selected.lines]
    return {"lines": [*lines, *written.summary(row.name, path)]}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"export": export, "exports": exports}
