"""Records in words."""

from collections.abc import Mapping

from rvtrace_gdb.decode.ctr.record import Record
from rvtrace_gdb.decode.instructions import IType

TYPE_NAMES: Mapping[IType, str] = {
    IType.NONE: "unknown",
    IType.EXCEPTION: "exception",
    IType.INTERRUPT: "interrupt",
    IType.TRAP_RETURN: "trap return",
    IType.NOT_TAKEN: "not-taken branch",
    IType.TAKEN: "taken branch",
    IType.UNINFERABLE_JUMP: "unknown",
    IType.UNINFERABLE_CALL: "indirect call",
    IType.INFERABLE_CALL: "direct call",
    IType.UNINFERABLE_TAIL_CALL: "indirect jump",
    IType.INFERABLE_TAIL_CALL: "direct jump",
    IType.COROUTINE_SWAP: "co-routine swap",
    IType.RETURN: "function return",
    IType.OTHER_UNINFERABLE: "other indirect jump",
    IType.OTHER_INFERABLE: "other direct jump",
}
"""ctrdata.TYPE (1.0, table "Control Transfer Type Definitions"). Codes 0, 6 and 7 name no transfer."""


def text(record: Record) -> str:
    """The line for a record: columns first, the meaning after " # "."""
    source, target = (_address(address) for address in (record.source, record.target))
    code = record.reserved or int(record.kind)
    line = f"Record source={source} target={target} TYPE={code} MISP={int(record.mispredicted)}"
    if record.cycles is not None:
        line += f" cycles={record.cycles} saturated={int(record.saturated)}"
    name = "reserved type" if record.reserved else TYPE_NAMES[record.kind]
    return f"{line} # {name}{', mispredicted' if record.mispredicted else ''}"


def _address(address: int | None) -> str:
    return "?" if address is None else f"{address:#x}"
