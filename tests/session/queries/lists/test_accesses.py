"""Pages of accesses: which are shown, how they are numbered, what is said when there are none."""


from rvtrace_gdb.decode.program.instructions import CSR, LOAD, STORE, MemoryAccess
from rvtrace_gdb.session.queries.lists.pages import PageSelection
from rvtrace_gdb.session.queries.lists.search import Accesses
from tests.views.test_access_lines import ACCESSES, history, program

TWENTY = tuple(MemoryAccess(STORE, 4, "", 0x100 + 4 * number, number, position=number % 3) for number in range(20))


def shown(*accesses: MemoryAccess, where: tuple[int, int] | None = None) -> Accesses:
    return Accesses(history(*accesses), program(), where)


def test_rows() -> None:
    rows = shown(*ACCESSES).rows(1, 5)
    assert [(row.number, row.position, row.pc, row.offset, row.text) for row in rows] == [
        (1, 1, 0x8000_0000, 0, "load 4 bytes at 0x80000108 <buffer+8> = 0x0000002a"),
        (2, 3, 0x8000_0008, 0, "store 1 byte at 0x80000300 = 0x07"),
        (
            3, None, None, 0x1F0, "store 8 bytes at 0x800000fc = 0x0000000000000001"
            " # its place is not known: more than one instruction may have made it",
        ),
        (4, None, None, 0x200, "load 4 bytes = 0x00000003 # no response in the trace"),
    ]  # fmt: skip


def test_only_those_that_are_there_can_be_asked_for() -> None:
    assert [row.number for row in shown(*TWENTY).rows(0, 3)] == [1, 2]
    assert [row.number for row in shown(*TWENTY).rows(19, 99)] == [19, 20]


def test_nothing_there() -> None:
    accesses = shown(*TWENTY, where=(0x500, 1))
    assert accesses.select("", 8) == PageSelection(1, 1, "No access to 1 byte at 0x500 is in the trace.")
    some = shown(*TWENTY, MemoryAccess(LOAD, 4), MemoryAccess(CSR, 8, "rw", 0x500), where=(0x500, 4))
    text = "No access to 4 bytes at 0x500 is in the trace. The address of 1 access is not known."
    assert some.select("", 8) == PageSelection(1, 1, text)


def test_whether_they_are_those_asked_for() -> None:
    of = history(*TWENTY)
    accesses = Accesses(of, program(), (0x100, 4))
    assert accesses.is_for(of, (0x100, 4)) and not accesses.is_for(of, None)
    assert not accesses.is_for(history(*TWENTY), (0x100, 4))
