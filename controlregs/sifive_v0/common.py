"""What encoder and funnel of version 0 have in common, and the sinks they choose from.

Ref: see the package; proposal, "Register Map" and teImpl, tfImpl
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.fields import Access, Field, Reset, reserved

NO_COMP_TYPE = 0
"""teImpl and tfImpl do not say what kind of component it is."""


class SinkType(IntEnum):
    """Codes of teSink and tfSink. Where there is one sink only, 0 may stand for it (P550)."""

    DEFAULT = 0
    SRAM = 4
    ATB = 5
    PIB = 6
    SBA = 7  # system memory
    FUNNEL = 8


class SinkBytes(IntEnum):
    """Width of the sink (P550): how its addresses are aligned."""

    BITS_32 = 0
    BITS_64 = 1
    BITS_128 = 2
    BITS_256 = 3


def active(prefix: str) -> Field:
    return Field(prefix + "Active", 1, Access.RW, 0, "0 holds the component in reset, its other registers unspecified")


def empty(prefix: str) -> Field:
    return Field(prefix + "Empty", 1, Access.RO, 1, "all trace has been sent on")


def sink_choice(prefix: str) -> tuple[Field, Field]:
    """Bits 31:27 of teControl and tfControl. The flag is the P550's."""
    return (
        Field(prefix + "SinkError", 1, Access.RW1C, 0, "the sink refused trace: bad address, or what it feeds is off"),
        Field(prefix + "Sink", 4, reset=Reset.CONSTANT, doc="where trace goes", values=SinkType),
    )


def version_and_sinks(version: int | Reset) -> tuple[Field, ...]:
    """Bits 17:0 of teImpl and tfImpl. The width is the P550's."""
    return (
        Field("version", 4, Access.RO, version, "version of the interface; 0 is this one"),
        _has("SRAM", "SRAM; all ones written to teSinkWP read back as its size"),
        _has("ATB", "ATB"),
        _has("PIB", "pins (Pin Interface Block)"),
        _has("SBA", "system memory"),
        _has("Funnel", "a funnel"),
        reserved(7),
        Field("sinkBytes", 2, Access.RO, Reset.CONSTANT, "width of the sink", SinkBytes),
    )


def _has(kind: str, doc: str) -> Field:
    return Field(f"has{kind}Sink", 1, Access.RO, Reset.CONSTANT, f"can send trace to {doc}")
