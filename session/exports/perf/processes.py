"""Which process ran, for perf: that of the context where the trace reports contexts, else the hart."""

from pathlib import PurePath
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.session.capture.model import CapturedImage
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.support.text import printable

_LARGEST_PID = (1 << 31) - 1


class ExportedProcess(NamedTuple):
    """A process. Its threads have contexts of their own, and count as processes. *comm*: its name, without blanks."""

    pid: int
    comm: str


class ExportedProcesses:
    """The processes of a hart. Without contexts the hart is one: process 0 would be the idle one of Linux."""

    def __init__(self, trace: ExportedTrace) -> None:
        self._hart = ExportedProcess(trace.hart + 1, f"hart{trace.hart}")
        self._images = trace.session.capture().images
        self._known: dict[ProgramContext, ExportedProcess] = {}

    def process_of(self, context: ProgramContext) -> ExportedProcess:
        """Return the process that runs in a context."""
        found = self._known.get(context)
        if found is None:
            found = self._known[context] = self._new(context)
        return found

    def _new(self, context: ProgramContext) -> ExportedProcess:
        chosen = [it for it in self._images if _covers(it, context)]
        names = {_comm(it.name) for it in chosen}
        comm = names.pop() if len(names) == 1 else None
        number = context.scontext
        if number is None or not 0 < number <= _LARGEST_PID:
            return self._hart._replace(comm=comm or self._hart.comm)
        return ExportedProcess(number, comm or f"context{number}")


def _covers(image: CapturedImage, context: ProgramContext) -> bool:
    pairs = (
        (image.scontext, context.scontext),
        (image.hcontext, context.hcontext),
        (image.virtual, context.virtual),
    )
    return all(own in (None, other) for own, other in pairs)


def _comm(name: str) -> str:
    return "-".join(printable(PurePath(name).name).split()) or "process"
