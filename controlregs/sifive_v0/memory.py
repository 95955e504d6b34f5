"""The RAM sink inside of an encoder or a funnel of version 0: choosing it, and setting its buffer to what that can be.

Ref: see the package; proposal, teSink*, hasSRAMSink. Scripts and riscv-trace-umd: the width of the sink's words is the
lowest bit of its addresses that can be 1 (P550: 8 bytes, as sinkBytes says), Limit is the address of the last one; all
addresses have the upper bits of teSinkBaseHigh.
"""

from typing import NamedTuple

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import BufferRefused, SettingRefused
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.graph_request import Buffer
from rvtrace_gdb.controlregs.sifive_v0 import encoder, sinks
from rvtrace_gdb.controlregs.sifive_v0.common import SinkType
from rvtrace_gdb.controlregs.sifive_v0.in_force import SinkInForce
from rvtrace_gdb.controlregs.sifive_v0.switching import update

WORD_MASK = 0xFFFF_FFFC
ONES = 0xFFFF_FFFF
_HIGH = 32
_KINDS = {SinkType.SRAM: "SRAM", SinkType.SBA: "system memory", SinkType.PIB: "pins", SinkType.ATB: "ATB"}
_FLAGS = {
    SinkType.SRAM: "hasSRAMSink",
    SinkType.ATB: "hasATBSink",
    SinkType.PIB: "hasPIBSink",
    SinkType.SBA: "hasSBASink",
    SinkType.FUNNEL: "hasFunnelSink",
}


class Space(NamedTuple):
    """A buffer: addresses of its first byte and of its last word, and the width of its words in bytes."""

    start: int
    limit: int
    width: int


def sinks_of(impl: int) -> list[SinkType]:
    """Where a component can send its trace, by its teImpl or tfImpl, whose bits are at the same places."""
    return [kind for kind, flag in _FLAGS.items() if encoder.IMPL.get(impl, flag)]


def choose(host: Component, wanted: SinkType) -> bool:
    """Let *host* send its trace there. False: it cannot. Its teSink may stay 0 if it is the only one there is."""
    field = host.block.prefix + "Sink"
    got = host.block.control.get(update(host, **{field: wanted}), field)
    return got == wanted or (got == SinkType.DEFAULT and sinks_of(host.read(host.block.impl)) == [wanted])


def cannot_send(host: Component, where: str) -> SettingRefused:
    """The error for a host that cannot send its trace to *where*."""
    field, control = host.block.prefix + "Sink", host.read(host.block.control)
    can = ", ".join(kind.name.lower() for kind in sinks_of(host.read(host.block.impl))) or "nothing"
    text = f"cannot send trace to {where} ({field} reads {host.block.control.get(control, field)}; it has {can})"
    return SettingRefused(host.name, host.base, f"{text}; correct the target description")


def configure_memory(
    sink: Component, host: Component, kind: str, buffer: Buffer, *, stop_on_wrap: bool
) -> tuple[SinkInForce, list[str]]:
    """Set the sink inside of *host*, which was just reset, and empty it: pointers at Base, wrap flag clear.

    *kind*: of the host, "encoder" or "funnel". The sink is never let loose on memory outside of the buffer.
    Returns what is in force and what was not granted. Raises SettingRefused, BufferRefused, ComponentAccess.
    """
    notes = []
    in_memory = buffer.start is not None
    if not choose(host, SinkType.SBA if in_memory else SinkType.SRAM):
        if not in_memory or not choose(host, SinkType.SRAM):
            raise cannot_send(host, _KINDS[SinkType.SBA if in_memory else SinkType.SRAM])
        notes.append(f"{sink.name} cannot use system memory; using its own SRAM")
        in_memory = False
    control = update(host, **{host.block.prefix + "StopOnWrap": int(stop_on_wrap)})
    space = _set_system(sink, buffer) if in_memory else _set_sram(sink)
    _rewind(sink, space, in_memory=in_memory)
    impl = sink.read(sink.block.impl)
    found = SinkInForce(sink.name, sink.base, control, impl, *space, host=kind)
    return found, notes + _notes(found, buffer, stop_on_wrap=stop_on_wrap)


def _notes(sink: SinkInForce, buffer: Buffer, *, stop_on_wrap: bool) -> list[str]:
    notes = []
    if buffer.size is not None and sink.size != buffer.size:
        notes.append(f"{sink.name}: the buffer has {sink.size} bytes, not {buffer.size}")
    if sink.stop_on_wrap != stop_on_wrap:
        notes.append(
            f"{sink.name} has no stop-on-wrap; the oldest trace will be overwritten"
            if stop_on_wrap
            else f"{sink.name} always stops when the buffer is full"
        )
    return notes


def _set_system(sink: Component, buffer: Buffer) -> Space:
    """A buffer in system memory."""
    if buffer.start is None or buffer.size is None:
        text = "stores trace in system memory: give a buffer (start, size) in the target description"
        raise SettingRefused(sink.name, sink.base, text)
    asked = buffer.start, buffer.start + buffer.size
    if asked[0] >> _HIGH != asked[1] - 1 >> _HIGH:
        text = (
            f"its buffer {asked[0]:#x} to {asked[1]:#x} crosses a multiple of 4 GiB, and teSinkBaseHigh "
            "has the bits from 32 up of all its addresses; give one that does not"
        )
        raise SettingRefused(sink.name, sink.base, text)
    high = sink.write(sinks.BASE_HIGH, asked[0] >> _HIGH)
    grain, width = _words(sink)
    base = asked[0] & ONES
    start = high << _HIGH | sink.write(sinks.BASE, -(-base // grain) * grain & ONES) & WORD_MASK
    last = (asked[1] // grain * grain - width) & ONES
    limit = high << _HIGH | sink.write(sinks.LIMIT, last) & WORD_MASK
    if not asked[0] <= start <= limit or limit + width > asked[1]:
        raise BufferRefused(sink.name, sink.base, asked, (start, limit + width))
    return Space(start, limit, width)


def _set_sram(sink: Component) -> Space:
    """All of its own memory: the write pointer says how large it is, and Limit need not exist or mean anything."""
    start = sink.write(sinks.BASE, 0) & WORD_MASK
    highest = sink.write(sinks.WP, WORD_MASK) & WORD_MASK
    width = max(_lowest(highest), _declared(sink))
    if highest < start or not highest:
        text = f"its SRAM ends ({highest:#x}) where it starts ({start:#x}): its size cannot be found out"
        raise SettingRefused(sink.name, sink.base, text)
    limit = sink.write(sinks.LIMIT, highest) & WORD_MASK
    return Space(start, limit or highest, width)


def _words(sink: Component) -> tuple[int, int]:
    """What the ends of the buffer have to be multiples of, and the width of the words that are stored, in bytes."""
    probed = [_probe(sink, register) for register in (sinks.BASE, sinks.LIMIT)]
    width = max(min(possible for _, possible in probed), _declared(sink))
    return max(width, *(settable for settable, _ in probed)), width


def _probe(sink: Component, register: Register) -> tuple[int, int]:
    """(lowest settable bit, lowest bit that can be 1) of an address register, as values; restores nothing."""
    zeros = sink.write(register, 0) & WORD_MASK
    ones = sink.write(register, ONES) & WORD_MASK
    return _lowest(zeros ^ ones) or 1, _lowest(ones) or 1


def probed(sink: Component, *, in_memory: bool) -> tuple[int, int]:
    """Address of the last word of a disabled sink's buffer, and the width of its words; its registers keep their
    values.
    """
    register = sinks.LIMIT if in_memory else sinks.WP
    before = sink.read(register)
    if in_memory:
        found = before & WORD_MASK, max(_probe(sink, register)[1], _declared(sink))
    else:
        found = sink.write(register, WORD_MASK) & WORD_MASK, _declared(sink)
    sink.write(register, before)
    return found


def _lowest(value: int) -> int:
    return value & -value


def _declared(sink: Component) -> int:
    """The width of its words as sinkBytes has it."""
    return 4 << encoder.IMPL.get(sink.read(sink.block.impl), "sinkBytes")


def _rewind(sink: Component, space: Space, *, in_memory: bool) -> None:
    """Pointers to Base, which also clears the wrap flag: a stale one would make the next read-out return old trace."""
    low = space.start & ONES
    if not in_memory:
        sink.write(sinks.RP, low)
    got = sink.write(sinks.WP, low)
    if got != low:
        text = f"cannot be emptied: teSinkWP reads {got:#010x}, not {low:#010x}; reset the target"
        raise SettingRefused(sink.name, sink.base, text)
