"""Encoders of TACIT, with their sinks, in `trace regs` and `trace info`."""

from rvtrace_gdb.controlregs import dump
from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.controlregs.tacit.procedures import TacitAccess, sink_of
from rvtrace_gdb.controlregs.tacit.registers import ENCODER
from rvtrace_gdb.controlregs.tacit.sinks import TacitSinkAccess
from rvtrace_gdb.session.description.model import TacitDescription
from rvtrace_gdb.session.target.link import Link
from rvtrace_gdb.support.text import counted


def register_lines(link: Link, tacit: TacitDescription, *, everything: bool = False) -> list[str]:
    """Return the registers of the encoder and of its sink, a line each, below a title for both. Raises the transport's
    errors.
    """
    sink = _sink_access(link, tacit).registers
    return [
        f"{tacit.name} at {tacit.base:#x}: {ENCODER.name}, hart {tacit.hart}",
        *_block_lines(link, tacit.base, ENCODER, everything=everything),
        f"its sink at {tacit.sink:#x}: {sink.name}",
        *_block_lines(link, tacit.sink, sink, everything=everything),
    ]


def _sink_access(link: Link, tacit: TacitDescription) -> TacitSinkAccess:
    return sink_of(link, tacit.sink, tacit.name, limited=tacit.limited)


def _block_lines(link: Link, base: int, block: RegisterBlock, *, everything: bool) -> list[str]:
    values = {register.offset: link.read32(base + register.offset) for register in block.registers}
    return [f"  {line}" for line in dump.dump(block, values, everything)]


def place_lines(tacit: TacitDescription) -> tuple[str, str]:
    """Return where it is, and where its buffer is."""
    buffer = f"buffer {tacit.start:#x} to {tacit.start + tacit.size - 1:#x}"
    return f"TACIT at {tacit.base:#x}, hart {tacit.hart}", f"DMA sink at {tacit.sink:#x}, {buffer}"


def state_text(link: Link, tacit: TacitDescription) -> str:
    """Return what it does, and how much its sink has written. Raises the transport's errors."""
    now = TacitAccess(link, tacit.base, _sink_access(link, tacit), tacit.name).status()
    if not now.plausible:
        return f"not an encoder of TACIT: TR_TE_CTRL reads {now.control:#x}"
    return f"{'tracing' if now.is_on else 'off'}, {counted(now.written, 'byte')} written"
