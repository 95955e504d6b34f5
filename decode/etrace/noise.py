"""What no encoder says: a synchronization that tells it is none, but damaged bytes that look like one.

Sources: Efficient Trace for RISC-V 2.0, table "Privilege level encoding"; the privileged architecture, tables of the
causes in mcause, where a cause that is designated for custom or platform use may come.
"""

from rvtrace_gdb.decode.etrace.packet import Packet
from rvtrace_gdb.decode.events import Loss, LossCause

_PRIVILEGES = (2, 7)
_EXCEPTIONS = frozenset({14, 17, *range(32, 48)})
_LAST_EXCEPTION = 63
_LAST_INTERRUPT = 4095


def noise(packet: Packet, name: str) -> Loss | None:
    """What of a format 3 packet cannot be, None for nothing. *name*: what the packet is called."""
    fields = packet.fields
    if fields.get("privilege") in _PRIVILEGES:
        return Loss(LossCause.RESERVED, (name, "privilege", fields["privilege"]))
    if "ecause" in fields and _is_reserved(fields["ecause"], interrupt=bool(fields["interrupt"])):
        return Loss(LossCause.RESERVED, (name, "ecause", fields["ecause"]))
    if fields.get("address", 0) & 1:
        return Loss(LossCause.IMPOSSIBLE, (f"{name}: an instruction at the odd address 0x{fields['address']:x}",))
    return None


def _is_reserved(cause: int, *, interrupt: bool) -> bool:
    if interrupt:
        return cause > _LAST_INTERRUPT
    return cause in _EXCEPTIONS or cause > _LAST_EXCEPTION
