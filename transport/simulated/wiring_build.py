"""Whether a component can be built as it is wanted: the fields, the registers and the parts it has."""

from collections.abc import Collection, Iterator

from rvtrace_gdb.controlregs.blocks import block
from rvtrace_gdb.controlregs.fields import Access, Field, Register, RegisterBlock
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.transport.simulated.trace_encoder_fields import MAX_SRC_BITS
from rvtrace_gdb.transport.simulated.wiring import AnyPart, EncoderPart, RamSinkPart, Source

_SETTABLE = (Access.RW, Access.WARL, Access.R_OR_RW)
_SAID_BY = {"trTeFormat": "formats", "trPibMode": "modes", "trRamMode": "modes"}
"""Fields whose values are said otherwise, and how; below, those of every component, without the prefix."""
_OF_ALL = {
    "Active": "stuck", "Enable": "stuck", "Empty": "stuck",
    "VerMajor": "version", "VerMinor": "version", "CompType": "comp_type",
}  # fmt: skip

Problem = tuple[str, str]
"""What is wrong: which key says so, and why it cannot be."""


def block_of(part: AnyPart) -> RegisterBlock:
    """The registers of a part that has some of its own."""
    return block(part.kind, part.version if isinstance(part, Source) else 1)


def register_named(part: AnyPart, name: str) -> Register | None:
    return next((register for register in block_of(part).registers if register.name == name), None)


def problems(part: AnyPart) -> Iterator[Problem]:
    """What is wrong with how *part* is built, in the words of the file of `rvtrace sim --devices`."""
    known = {name: field for register in block_of(part).registers for name, field in register.by_name.items()}
    build = part.build
    for name in build.fixed:
        yield from _field(part, f"fixed.{name}", known.get(name), [build.fixed[name]])
        if name in build.allowed:
            yield f"allowed.{name}", "it is fixed, too: say one of both"
    for name, values in build.allowed.items():
        yield from _field(part, f"allowed.{name}", known.get(name), list(values))
    if "Empty" in build.stuck and build.flush_polls:
        yield "flush_polls", f"it never shows: stuck says that Empty is always {build.stuck['Empty']}"
    if isinstance(part, EncoderPart):
        yield from _of_encoder(part)
    elif isinstance(part, RamSinkPart):
        yield from _of_ram_sink(part)


def _field(part: AnyPart, key: str, field: Field | None, values: list[int]) -> Iterator[Problem]:
    """*values* are those of *field*, if there is one of this name."""
    name = key.partition(".")[2]
    instead = _SAID_BY.get(name) or _OF_ALL.get(name.removeprefix(block_of(part).prefix))
    if field is None:
        yield key, f"a component of type {part.kind} has no field of this name"
    elif instead is not None:
        yield key, f"say {instead} instead"
    elif field.access not in _SETTABLE:
        yield key, "it is no field that is written"
    elif not values:
        yield key, "has no value"
    elif not all(value < 1 << field.width for value in values):
        yield key, f"is {max(values)}, and the field has {field.width} bit{'s' * (field.width > 1)}"


def _of_encoder(part: EncoderPart) -> Iterator[Problem]:
    for name in part.absent:
        if part.build.fixed.get(name):
            yield f"fixed.{name}", "the encoder is without this field"
        if name in part.build.allowed:
            yield f"allowed.{name}", "the encoder is without this field"
    for key, values in _said(part, "trTeSrcBits"):
        if max(values) > MAX_SRC_BITS:
            yield key, f"is {max(values)}, and source IDs have up to {MAX_SRC_BITS} bits"
    for key, values in _said(part, "trTeDataNoAddr"):
        if min(values) and part.build.fixed.get("trTeDataNoValue") != 0:
            yield key, "packets must hold something: have trTeDataNoValue fixed to 0"
    if part.filters.comparators and not part.filters.filters:
        yield "comparators", "only filters use them, and there is none"


def _said(part: EncoderPart, name: str) -> Iterator[tuple[str, Collection[int]]]:
    """Which values a field can have, if that is limited, and which key says so."""
    if name in part.build.fixed:
        yield f"fixed.{name}", [part.build.fixed[name]]
    elif name in part.build.allowed:
        yield f"allowed.{name}", part.build.allowed[name]


def _of_ram_sink(part: RamSinkPart) -> Iterator[Problem]:
    standard = RamSinkPart(name="", base=0)
    if RamMode.SMEM not in part.modes:
        if part.access_bytes != standard.access_bytes:
            yield "access_width", "is that of system memory: without the mode SMEM it is 4"
        if part.window:
            yield "window", "is one to system memory, and the mode SMEM is missing"
    if RamMode.SRAM not in part.modes and part.sram_size != standard.sram_size:
        yield "sram_size", "the mode SRAM is missing"
