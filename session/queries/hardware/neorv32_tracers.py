"""TRACERs of NEORV32 in `trace regs` and `trace info`. DELTA_SRC and DELTA_DST are not read: that takes entries out."""

from rvtrace_gdb.controlregs import dump
from rvtrace_gdb.controlregs.neorv32.procedures import TracerAccess
from rvtrace_gdb.controlregs.neorv32.registers import CTRL, STOP_ADDR, TRACER
from rvtrace_gdb.session.description.model import TracerDescription
from rvtrace_gdb.session.target.link import Link


def register_lines(link: Link, tracer: TracerDescription, *, everything: bool = False) -> list[str]:
    """Return its registers, a line each, below a title. Raises the transport's errors."""
    now = TracerAccess(link, tracer.base, tracer.name).status()
    values = {CTRL.offset: now.ctrl, STOP_ADDR.offset: now.stop_addr}
    lines = dump.dump(TRACER, values, everything)
    return [f"{tracer.name} at {tracer.base:#x}: {TRACER.name}, hart {tracer.hart}", *(f"  {line}" for line in lines)]


def state_text(link: Link, tracer: TracerDescription) -> str:
    """Return how many entries it has room for, and what it does. Raises the transport's errors."""
    now = TracerAccess(link, tracer.base, tracer.name).status()
    if not now.plausible:
        return f"not a TRACER: CTRL reads {now.ctrl:#x}"
    more = ", more to read" if now.available else ""
    return f"{now.depth} entries, {'tracing' if now.running else 'off'}{more}"
