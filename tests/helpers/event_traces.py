"""Traces of events without a flow, of the program median.elf of the reference encoder's streams.

Messages are put together field by field, as IEEE-ISTO 5001 and SiFive's captures have them; places are those that
objdump shows: main at 0x800017c8 calls median (0x80001048) at 0x800017de and setStats (0x8000142c) at 0x800017e4, and
returns at 0x80001838.
"""

from tests.decode.ntrace.messages import groups
from tests.helpers import reference_streams

ELF = str(reference_streams.FOLDER / "median.elf")
MAIN, CALL, MEDIAN, RETURN = 0x8000_17C8, 0x8000_17DE, 0x8000_1048, 0x8000_1838


def in_circuit(cksrc: int, *data: int, full: bool = False, tstamp: int | None = None) -> bytes:
    """An InCircuitTrace (WS if *full*) with CKDATA0, and CKDATA1 if it is given."""
    fields = [(34 + full, 6), (cksrc, 4), (len(data) - 1, 2), *((value, 0) for value in data)]
    return groups(*fields, *([] if tstamp is None else [(tstamp, 0)]))


def sample(pc: int) -> bytes:
    """A PC sample with a whole address."""
    return in_circuit(15, pc >> 1, full=True)


def written(channel: int, data: bytes, tstamp: int | None = None) -> bytes:
    """What a program writes to a channel in as few writes as possible: words, then two bytes, then one."""
    out, at = b"", 0
    while at < len(data):
        size = next(size for size in (4, 2, 1) if size <= len(data) - at)
        value = int.from_bytes(data[at : at + size], "little")
        fields = [(7, 6), (4 * channel + 4 - size, 0), (value, 0)]
        out += groups(*fields, *([] if tstamp is None else [(tstamp, 0)]))
        at += size
    return out


EVENTS = b"".join(
    (
        in_circuit(0, MAIN >> 1, 2, full=True),
        in_circuit(9, (MAIN ^ CALL) >> 1),
        *(sample(MEDIAN + offset) for offset in (0, 0, 0, 6)),
        sample(MAIN),
        in_circuit(9, (MAIN ^ RETURN) >> 1, (RETURN ^ CALL) >> 1),
    )
)
"""Tracing goes on, main calls median, four samples in median, one in main, main returns (to anywhere)."""
