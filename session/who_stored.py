"""Who stored to some memory last, of a data trace: it does not tell the addresses of all stores, and no registers."""

from rvtrace_gdb.decode.access_wording import touches
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.memory_access import ATOMIC, CAS_FAILURE, STORE, STORE_FAILURE
from rvtrace_gdb.decode.tandem.memory import Store
from rvtrace_gdb.session.who_wrote import INSTRUCTION, Written

_NO_PLACE = "Which instruction it was is not known: one from this one on."


def stored(history: History, position: int, address: int, size: int) -> tuple[Written | None, int]:
    """Who stored last to some bytes before a position, by the accesses of a data trace; and how many stores before it
    and since, of which the address is not known.
    """
    unknown = 0
    accesses = history.accesses
    for i in range(len(accesses) - 1, -1, -1):
        access = accesses[i]
        if access.kind not in (STORE, ATOMIC) or access.operation in (CAS_FAILURE, STORE_FAILURE):
            continue
        at = access.position if access.position is not None else access.after
        if at >= position:
            continue
        if access.address is None:
            unknown += 1
        elif touches(access, address, size):
            value = access.value if access.kind == STORE else None
            store = Store(0, access.address, access.size, value)
            doubts = () if access.position is not None else (_NO_PLACE,)
            return Written(
                INSTRUCTION, max(at, 0), None, store=store, new=_part(store, address, size), doubts=doubts
            ), unknown
    return None, unknown


def _part(store: Store, address: int, size: int) -> int | None:
    """The bytes of a store that were asked about."""
    if store.value is None:
        return None
    data = store.value.to_bytes(store.size, "little")
    return int.from_bytes(data[max(address - store.address, 0) : address + size - store.address], "little")
