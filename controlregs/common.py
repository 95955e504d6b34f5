"""What every trace component has in common: the first bits of tr??Control, the layout of tr??Impl, the component types.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: registers common to all components; tr??Control and tr??Impl
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.fields import Access, Field, Reset

CONTROL_OFFSET = 0x000
IMPL_OFFSET = 0x004
VENDOR_RANGE = range(0xE00, 0x1000)

VERSION = (1, 0)
VERSION_EXPERIMENTAL = 15  # as a minor version: not final; as a major version: an encoding nobody can know


class CompType(IntEnum):
    ENCODER = 0x1
    FUNNEL = 0x8
    RAM_SINK = 0x9
    PIB_SINK = 0xA
    ATB_BRIDGE = 0xE


def active(prefix: str) -> Field:
    return Field(prefix + "Active", 1, Access.RW, 0, "0 holds the component in reset, its other registers unspecified")


def empty(prefix: str) -> Field:
    return Field(prefix + "Empty", 1, Access.RO, 1, "nothing is left in the component's internal buffers")


def version_and_type(prefix: str, comp_type: CompType) -> tuple[Field, ...]:
    """Bits 11:0 of tr??Impl."""
    return (
        Field(prefix + "VerMajor", 4, Access.RO, VERSION[0], "interface major version; 0: a layout of before 1.0"),
        Field(prefix + "VerMinor", 4, Access.RO, VERSION[1], "interface minor version; 15: experimental"),
        Field(prefix + "CompType", 4, Access.RO, int(comp_type), "kind of component", CompType),
    )


def async_freq(prefix: str) -> Field:
    """How often alignment synchronisation packets are sent; what the levels mean is up to the protocol."""
    return Field(
        prefix + "AsyncFreq",
        3,
        doc="alignment synchronisation packets: 0 off, 1 most frequent; not for N-Trace",
        reading=lambda value: "" if value else "off",
    )


def vendor(prefix: str) -> Field:
    """Bits 31:24 of tr??Impl, which the document leaves unnamed."""
    return Field(prefix + "Vendor", 8, Access.RO, Reset.CONSTANT, "vendor-specific identification")
