"""The register block of a component, by the name of its type and the version of its interface."""

from collections.abc import Mapping

from rvtrace_gdb.controlregs import sifive_v0
from rvtrace_gdb.controlregs.atb_bridge import ATB_BRIDGE
from rvtrace_gdb.controlregs.common import VERSION
from rvtrace_gdb.controlregs.encoder import ENCODER
from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.controlregs.funnel import FUNNEL
from rvtrace_gdb.controlregs.pib import PIB_SINK
from rvtrace_gdb.controlregs.ram_sink import RAM_SINK
from rvtrace_gdb.support.errors import RvtraceError

RATIFIED: Mapping[str, RegisterBlock] = {
    "encoder": ENCODER,
    "funnel": FUNNEL,
    "ram_sink": RAM_SINK,
    "pib_sink": PIB_SINK,
    "atb_bridge": ATB_BRIDGE,
}
PRE_RATIFIED: Mapping[str, RegisterBlock] = {"encoder": sifive_v0.ENCODER, "funnel": sifive_v0.FUNNEL}
"""Major version 0: sinks are part of the encoder or funnel."""
KINDS = tuple(RATIFIED)


class NoSuchBlock(RvtraceError):
    """There are no registers for this type of component in this version of the interface."""

    def __init__(self, kind: str, major: int, known: Mapping[str, RegisterBlock]) -> None:
        self.kind, self.major = kind, major
        super().__init__(
            f"version {major} of the trace control interface has no component of type {kind!r}; "
            f"use one of {', '.join(known)}"
        )


def major(impl: int) -> int:
    """The major version in a value of tr??Impl: bits 3:0 in every version of the interface, of before 1.0 as well."""
    return impl & 0xF


def block(kind: str, major: int = VERSION[0]) -> RegisterBlock:
    """The registers of a component of type *kind*, whose tr??Impl says version *major*. Raises NoSuchBlock.

    Versions newer than the one known here are taken for that one: whether to accept them is decided elsewhere.
    """
    known = RATIFIED if major else PRE_RATIFIED
    if kind not in known:
        raise NoSuchBlock(kind, major, known)
    return known[kind]
