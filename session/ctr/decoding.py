"""What a hart ran, from its records: they are given to the decoder with what the registers say of them."""

from collections.abc import Sequence

from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.controlregs.ctr.settings import settings
from rvtrace_gdb.decode.ctr.decoder import Decoded, decode_records
from rvtrace_gdb.decode.ctr.record import Options, Record
from rvtrace_gdb.decode.instructions import IType
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.session.ctr.items import items
from rvtrace_gdb.support.progress import Progress, silent


def options_of(how: CtrInForce, records: Sequence[Record] = ()) -> Options:
    """What the registers say of the records; a kind that occurs was recorded, whatever the registers say now."""
    found = settings(how)
    kinds = frozenset(IType(kind) for kind in found.kinds) | {record.kind for record in records} - {IType.NONE}
    return Options(kinds, found.ras, how.pc if found.recording_at_end else None, found.hidden)


def decode(data: bytes, program: Program, how: CtrInForce, progress: Progress = silent) -> Decoded:
    """The history in the entries *data*, and where in it the stretches between them are."""
    found = list(items(data))
    idle = sum(item.end - item.offset for item in found if item.record is None)
    records = [item.record for item in found if item.record is not None]
    return decode_records(records, program, options_of(how, records), total=len(data), idle=idle, progress=progress)
