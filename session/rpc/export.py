"""The methods of the session protocol for exports, see `session.exports.export`.

    exports {} -> {rows: [[name, help], ...]}
    export {context, name, path} -> {lines}

*name*: that of an export; *path*: the file to write, which exists as a whole afterwards, or not at all.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.session.exports import export as session_export
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.files import atomic_output, protect_inputs


def exports(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the exports that there are, see the module."""
    return {"rows": [(row.name, row.help) for row in session_export.EXPORTS]}


def export(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Write an export, see the module. Raises NoSuchExport, OutputError, what the writer and `Session.selected` do."""
    name, path = params.text("name"), params.path("path")
    session_export.named(name)  # before the trace is read out
    selected = session.selected(params.context(), progress)
    protect_inputs(path, [session.opened, *(elf.path for elf, _ in selected.program.base.elves)])
    with atomic_output(path) as file:
        written = session_export.write(name, ExportedTrace(session, selected), file, progress)
    return {"lines": [*selected.lines, *written.summary(name, path)]}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"export": export, "exports": exports}
