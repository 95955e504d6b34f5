"""The sinks inside encoders and funnels of version 0, as components of their own: registers of their host's block.

Ref: see the package. A sink is chosen, and stops, by bits of its host's teControl or tfControl; it has none of its own.
"""

from collections.abc import Mapping

from rvtrace_gdb.controlregs.fields import Register, RegisterBlock
from rvtrace_gdb.controlregs.sifive_v0 import encoder, funnel, sinks
from rvtrace_gdb.controlregs.sifive_v0.common import NO_COMP_TYPE

_HOSTS = {"encoder": encoder.ENCODER, "funnel": funnel.FUNNEL}


def _inside(name: str, registers: tuple[Register, ...]) -> Mapping[str, RegisterBlock]:
    """By the kind of the host."""
    blocks = {}
    for kind, host in _HOSTS.items():
        of_both = (host.control, host.impl, *registers)
        blocks[kind] = RegisterBlock(f"{name} in a {host.name}", host.prefix, NO_COMP_TYPE, of_both)
    return blocks


MEMORY = _inside("RAM sink", sinks.MEMORY)
PINS = _inside("PIB sink", (sinks.PIB_CONTROL,))
ATB = _inside("ATB sink", (sinks.ATB_CONTROL,))
_KINDS = {"ram_sink": MEMORY, "pib_sink": PINS, "atb_bridge": ATB}


def inside(host: str, sink: str) -> RegisterBlock:
    """The registers of a *sink* ("ram_sink", "pib_sink", "atb_bridge") inside of a *host* ("encoder", "funnel")."""
    return _KINDS[sink][host]
