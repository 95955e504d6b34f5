"""What loads and stores tell of each other, of the memory at both edges, and when they tell nothing."""

from collections.abc import Iterator, Sequence

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import AccessNote, MemoryAccess
from rvtrace_gdb.decode.reconstruction.facts import KnownState, KnownValue, StopState
from rvtrace_gdb.decode.reconstruction.window.edges import EdgeMemory, WindowEdge, edge_of_stop
from rvtrace_gdb.support.errors import Cancelled
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.window.by_hand import BASE, DATA, RAM, edge, encoded, stored, window

A, B, C, P, Q = 10, 11, 12, 3, 4
POINTER = {P: DATA}


def edge_of_state(state: KnownState) -> WindowEdge:
    """Return an edge of which registers, and some pieces of memory, are known."""
    pieces = sorted(state.memory)

    def read(address: int, size: int) -> Sequence[KnownValue]:
        found: list[KnownValue] = [None] * size
        for begin, content in pieces:
            for at in range(max(begin, address), min(begin + len(content), address + size)):
                found[at - address] = content[at - begin]
        return found

    return WindowEdge(state.x, state.f, state.csrs, read)


def _addi(rd: int, imm: int) -> int:
    return encoded("addi", rd=rd, rs1=rd, imm=imm)


def test_a_load_has_what_was_stored() -> None:
    """A byte was stored, and part of a word that was stored before."""
    words = [
        encoded("sw", rs1=P, rs2=A), encoded("sb", rs1=P, rs2=B, imm=1), encoded("lw", rd=C, rs1=P),
        encoded("lhu", rd=5, rs1=P, imm=2), encoded("lb", rd=6, rs1=P, imm=1),
    ]  # fmt: skip
    found = window(words, begin=edge(POINTER | {A: 0x1122_3344, B: 0xFE}))
    assert [found.x(5, number) for number in (C, 5, 6)] == [0x1122_FE44, 0x1122, (1 << 64) - 2]
    assert found.memory(2, DATA, 5) == [0x44, 0xFE, 0x22, 0x11, None]
    assert found.memory(1, DATA, 2) == [0x44, 0x33] and found.memory(0, DATA, 2) == [None, None]


def test_what_is_loaded_tells_what_was_stored() -> None:
    words = [encoded("sd", rs1=P, rs2=A), _addi(A, 1), encoded("ld", rd=B, rs1=P)]
    found = window(words, end=edge(POINTER | {B: 77}))
    assert found.x(0, A) == 77 and found.x(3, A) == 78


def test_memory_at_the_end_tells_what_was_stored_and_loaded() -> None:
    words = [encoded("lw", rd=A, rs1=P), encoded("sw", rs1=P, rs2=B, imm=4)]
    words += [encoded("addi", rd=A), encoded("addi", rd=B)]
    found = window(words, end=edge(POINTER, stored(DATA, 8, 0xFFFF_FFFF_8000_0000)))
    assert found.x(1, A) == 0xFFFF_FFFF_8000_0000
    assert found.x(1, B) is None  # only its low half was stored
    assert found.memory(0, DATA, 8) == [0, 0, 0, 0x80, None, None, None, None]
    assert found.memory(2, DATA, 8) == [0, 0, 0, 0x80, 255, 255, 255, 255]


def test_memory_at_the_beginning() -> None:
    state = KnownState(x=edge(POINTER).x, memory=[(DATA, b"\1\2\3\4")])
    found = window([encoded("lw", rd=A, rs1=P), encoded("lw", rd=B, rs1=P, imm=2)], begin=edge_of_state(state))
    assert (found.x(2, A), found.x(2, B)) == (0x0403_0201, None)
    assert found.memory(1, DATA, 5) == [1, 2, 3, 4, None]


def test_a_store_to_an_unknown_address_may_have_hit_anything() -> None:
    """Whether its address follows from what comes later, or not at all."""
    words = [encoded("sd", rs1=P, rs2=A), encoded("sd", rs1=Q, rs2=B), encoded("ld", rd=C, rs1=P)]
    begin = edge(POINTER | {A: 5, B: 6})
    assert window(words, begin=begin).x(3, C) is None
    assert window(words, begin=begin, end=edge({Q: DATA})).x(3, C) == 6
    assert window(words, begin=begin, end=edge({Q: DATA + 4})).x(3, C) == 6 << 32 | 5
    assert window(words, begin=begin, end=edge({Q: DATA + 8})).x(3, C) == 5
    found = window(words, begin=begin, end=edge({}, stored(DATA, 8, 9)))
    assert found.x(3, C) == 9 and found.memory(1, DATA, 1) == [5] and found.memory(2, DATA, 1) == [9]
    assert found.accesses().unknown == [(1, "store")]


@pytest.mark.parametrize(("distance", "is_known"), [(0, False), (255, False), (256, True), (-8, True), (-4, False)])
def test_a_store_to_an_unknown_element_of_a_table_hits_only_the_table(distance: int, is_known: bool) -> None:
    """Its index is a byte; each element has one."""
    words = [
        encoded("sd", rs1=P, rs2=A), encoded("lbu", rd=5, rs1=6), encoded("add", rd=5, rs1=5, rs2=Q),
        encoded("sb", rs1=5, rs2=B), encoded("ld", rd=C, rs1=P), encoded("addi", rd=5),
    ]  # fmt: skip
    found = window(words, begin=edge({P: DATA + distance, Q: DATA, A: 5}))
    assert found.x(5, C) == (5 if is_known else None)
    assert found.byte(5, DATA + distance) == (None if 0 <= distance < 256 else 5)
    assert found.accesses().unknown == [(1, "load"), (3, "store")]
    backward = window(words, end=edge({P: DATA + distance, Q: DATA}, stored(DATA + distance, 8, 7)))
    assert backward.x(0, A) == (7 if is_known else None)


def test_a_store_to_an_element_whose_index_was_checked_hits_only_the_table() -> None:
    words = [
        encoded("sd", rs1=P, rs2=A), encoded("bgeu", rs1=6, rs2=7, imm=8), encoded("slli", rd=5, rs1=6, imm=3),
        encoded("add", rd=5, rs1=5, rs2=Q), encoded("sd", rs1=5, rs2=B), encoded("ld", rd=C, rs1=P),
    ]  # fmt: skip
    for distance, known in ((8 * 16, 5), (8 * 16 - 1, None), (-8, 5), (-7, None)):
        assert window(words, begin=edge({P: DATA + distance, Q: DATA, A: 5, 7: 16})).x(6, C) == known


def test_addresses_that_become_known_one_after_the_other() -> None:
    """Backward: each pointer is stored behind what is stored to where it points, and then forgotten."""
    words: list[int] = []
    memory: dict[int, int] = {}
    for number in range(8):
        words += [encoded("sd", rs1=8 + number), encoded("sd", rs1=P, rs2=8 + number, imm=8 * number)]
        words.append(encoded("addi", rd=8 + number))
        memory |= stored(DATA + 8 * number, 8, DATA + 512 + 8 * number)
    found = window(words, end=edge(POINTER, memory))
    assert [found.x(0, 8 + number) for number in range(8)] == [DATA + 512 + 8 * number for number in range(8)]
    assert not found.accesses().unknown and found.byte(len(words), DATA + 512) == 0


def test_what_is_not_declared_is_not_believed() -> None:
    words = [encoded("sd", rs1=P, rs2=A), encoded("ld", rd=C, rs1=P)]
    found = window(words, begin=edge(POINTER | {A: 5}, stored(DATA, 8, 5)), end=edge({}, stored(DATA, 8, 5)), rams=())
    assert found.x(2, C) is None and found.memory(1, DATA, 1) == [None]


@pytest.mark.parametrize("offset", [-4, 0x1000 - 4])
def test_an_access_at_the_edge_of_ram_is_no_access_of_ram(offset: int) -> None:
    """It may have changed the bytes that are RAM."""
    words = [encoded("sw", rs1=Q, rs2=A), encoded("sd", rs1=P, rs2=B), encoded("lw", rd=C, rs1=Q)]
    inner, rams = DATA + offset + (4 if offset < 0 else 0), [Extent(DATA, 0x1000)]
    begin = edge({P: DATA + offset, Q: inner, A: 1, B: 2})
    assert window(words, begin=begin, rams=rams).x(3, C) is None
    assert window(words, begin=edge({P: DATA + 8, Q: inner, A: 1, B: 2}), rams=rams).x(3, C) == 1


def _with_constants(code: bytes) -> Image:
    """A program whose code, and some bytes behind it, are constants."""
    content = code + bytes(20)

    class _Image(Image):
        def constants(self, addr: int, size: int) -> Iterator[tuple[int, bytes]]:
            yield from [(BASE, content)] if addr <= BASE < addr + size else []

    image = _Image(64)
    image.add_code(BASE, content)
    return image


def test_constants_that_memory_at_the_stop_contradicts_are_none() -> None:
    """riscv-tests' rvc stores to its own .text, before the window: what the file says is not what was there."""
    code = [encoded("lw", rd=A, rs1=P), encoded("addi", rd=A)]
    image, rams = _with_constants(b"".join(word.to_bytes(4, "little") for word in code)), [Extent(BASE, 0x1000)]
    for stored_value, known in ((0, 0), (7, 7)):
        stop = edge({P: BASE + 16}, stored(BASE + 16, 4, stored_value))
        found = window(code, image=image, begin=edge({P: BASE + 16}), end=stop, rams=rams)
        assert found.x(1, A) == known and found.memory(0, BASE + 16, 1) == [known] and not found.contradicted
    only_asked = window(code[1:], image=image, end=stop, rams=rams)
    assert only_asked.memory(0, BASE + 16, 1) == [7]


def test_constants_are_known_until_one_is_written() -> None:
    """The first fault of the prototype: what the file says is constant is what the program writes."""
    code = [encoded("lw", rd=A, rs1=P), encoded("sw", rs1=Q, rs2=B), encoded("lw", rd=C, rs1=P)]
    content = b"".join(word.to_bytes(4, "little") for word in code)

    image = _with_constants(content)
    assert window(code, image=image, begin=edge({P: BASE, Q: DATA})).x(1, A) == code[0]
    found = window(code, image=image, begin=edge({P: BASE + 16, Q: BASE + 16, B: 7}))
    assert (found.x(1, A), found.x(3, C)) == (None, 7) and not found.contradicted
    assert found.memory(0, BASE, 1) == [None]


def test_where_code_that_ran_is_written_nothing_is_known() -> None:
    code = [encoded("sw", rs1=P, rs2=A), encoded("addi", rd=B, imm=3)]
    found = window(code, begin=edge({P: BASE + 4, A: encoded("addi", rd=B, imm=4)}))
    assert found.x(2, B) is None and {error.position for error in found.contradicted} == {0}
    assert window(code, begin=edge({P: BASE + 8})).x(2, B) == 3


SC = [
    encoded("sw", rs1=P, rs2=A), encoded("sc.w", rd=5, rs1=P, rs2=B), encoded("lw", rd=C, rs1=P),
    encoded("bne", rs1=5, imm=8), encoded("addi"), encoded("addi", rd=5),
]  # fmt: skip


@pytest.mark.parametrize(("order", "loaded"), [((0, 1, 2, 5), None), ((0, 1, 2, 3, 4, 5), 2), ((0, 1, 2, 3, 5), None)])
def test_a_store_conditional_may_have_stored_or_not(order: tuple[int, ...], loaded: int | None) -> None:
    """The second fault of the prototype: as long as that is not known, neither is what was stored before. A branch
    shows that it did.
    """
    found = window(SC, order=order, begin=edge(POINTER | {A: 1, B: 2}))
    assert found.x(3, C) == loaded and found.memory(2, DATA, 1) == [loaded and 2]


def test_a_store_conditional_that_failed() -> None:
    sc = [*SC[:3], encoded("addi")]
    found = window(sc, begin=edge(POINTER | {A: 1, B: 2}), end=edge({5: 1}))
    assert found.x(3, C) == 1 and found.memory(2, DATA, 1) == [1]
    assert found.accesses().nearest(1, DATA, 1, forward=True, stores=True, loads=False) is None
    unknown = window([SC[1]], begin=edge({A: 1, B: 2}), end=edge({5: 1}))
    assert not unknown.accesses().unknown


@pytest.mark.parametrize(
    ("name", "stored_value"),
    [("amoadd.d", 12), ("amoswap.d", 7), ("amomax.d", 7), ("amoand.d", 5), ("amoxor.d", 2)],
)
def test_atomic_operations(name: str, stored_value: int) -> None:
    words = [encoded(name, rd=A, rs1=P, rs2=B), encoded("ld", rd=C, rs1=P)]
    found = window(words, begin=edge(POINTER | {B: 7}, stored(DATA, 8, 5)))
    assert (found.x(2, A), found.x(2, C)) == (5, stored_value)
    backward = window(words, begin=edge(POINTER | {B: 7}), end=edge({C: stored_value}))
    expected = 5 if name in ("amoadd.d", "amoxor.d") else None
    assert backward.x(1, A) == expected and not backward.contradicted


def test_fences_forget_what_others_may_have_written() -> None:
    words = [encoded("sd", rs1=P, rs2=A), encoded("fence"), encoded("ld", rd=C, rs1=P)]
    assert window(words, begin=edge(POINTER | {A: 5})).x(3, C) == 5
    found = window(words, begin=edge(POINTER | {A: 5}), shared=True)
    assert found.x(3, C) is None and not found.accesses().unknown


def test_an_access_over_two_granules() -> None:
    """Of what was stored there first, something else is stored over the second part."""
    words = [encoded("sw", rs1=P, rs2=A, imm=6), encoded("sb", rs1=P, rs2=B, imm=8), encoded("lw", rd=C, rs1=P, imm=6)]
    found = window(words, begin=edge(POINTER | {A: 0x1122_3344, B: 0xFF}))
    assert found.x(3, C) == 0x11FF_3344
    end = window(words[:1], end=edge(POINTER, stored(DATA, 16, 0x1122_3344 << 48)))
    assert end.memory(1, DATA + 6, 4) == [0x44, 0x33, 0x22, 0x11]


def test_a_load_of_which_only_a_part_is_known() -> None:
    """What was stored before it is still known to those that load that part."""
    words = [encoded("sb", rs1=P, rs2=A), encoded("lw", rd=B, rs1=P), encoded("lbu", rd=C, rs1=P)]
    assert window(words, begin=edge(POINTER | {A: 9})).x(3, C) == 9


def test_translated_addresses_are_not_those_of_ram() -> None:
    """satp is written, with something unknown; or it was not zero."""
    words = [encoded("csrrw", rs1=A, imm=0x180), encoded("sd", rs1=P, rs2=B), encoded("ld", rd=C, rs1=P)]
    assert window(words, begin=edge(POINTER | {B: 5})).x(3, C) is None
    assert window([encoded("csrrw", imm=0x180), *words[1:]], begin=edge(POINTER | {B: 5})).x(3, C) == 5
    assert window(words[1:], begin=edge(POINTER | {B: 5}, csrs={0x180: 8 << 60})).x(2, C) is None


def test_a_contradiction_with_memory_leaves_the_registers() -> None:
    """Something else has written the memory at the end. Nothing that followed from memory is said."""
    words = [encoded("sd", rs1=P, rs2=A), encoded("ld", rd=C, rs1=P), encoded("addi", rd=B, imm=3)]
    found = window(words, begin=edge(POINTER | {A: 5}), end=edge({}, stored(DATA, 8, 6)))
    assert [(error.position, error.pc) for error in found.contradicted] == [(1, BASE + 4)]
    assert (found.x(3, A), found.x(3, B), found.x(3, C)) == (5, 3, None)
    assert found.memory(1, DATA, 1) == [None]


def test_a_contradiction_without_memory_leaves_nothing() -> None:
    found = window([encoded("addi", rd=B, imm=3), encoded("addi")], end=edge({B: 4, A: 1}))
    assert [error.position for error in found.contradicted] == [0, 0, 0]
    assert (found.x(2, A), found.x(2, B), found.f(0, 1), found.memory(0, DATA, 1)) == (None, None, None, [None])
    assert found.accesses().unknown == [(0, "store"), (1, "store")]


def test_a_branch_that_cannot_have_been_taken_contradicts() -> None:
    words = [encoded("ld", rd=A, rs1=P), encoded("blt", rs1=A, rs2=0, imm=8), 0, encoded("addi")]
    found = window(words, order=[0, 1, 3], begin=edge(POINTER), end=edge({}, stored(DATA, 8, 6)))
    assert [error.position for error in found.contradicted] == [0]  # it is the load that does not fit
    assert found.x(1, A) is None


def test_the_memory_of_a_stop_is_read_in_few_pieces() -> None:
    """What cannot be read is unknown, and what is behind it is read nevertheless."""
    asked: list[tuple[int, int]] = []

    def read(address: int, size: int) -> bytes:
        asked.append((address, size))
        return b"" if address == DATA else bytes([7]) * size

    stop = StopState(BASE, edge().x, edge().f, {}, read)
    memory = EdgeMemory(edge_of_stop(stop).memory, [RAM])
    assert [memory.byte(DATA + 0x300 + k) for k in range(0x100)] == [7] * 0x100 and len(asked) == 1
    assert memory.byte(DATA) is None and memory.byte(DATA + 1) == 7 and memory.byte(DATA + 0xFF) == 7
    assert memory.byte(RAM[0] - 1) is None and isinstance(edge_of_stop(stop), WindowEdge)


def test_work_can_be_interrupted() -> None:
    """And what was known before is still known."""

    def interrupt(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    found = window([encoded("addi", rd=A, imm=1)])
    with pytest.raises(Cancelled):
        found.solve(interrupt)
    assert found.x(1, A) == 1


def test_what_the_trace_says_of_accesses() -> None:
    """Addresses tell the registers that they come from; values, what was loaded or stored. What is uncertain in the
    trace, and which of the two values of an atomic operation it is, are no facts.
    """
    words = [
        encoded("lb", rd=A, rs1=P, imm=4), encoded("sw", rs1=Q, rs2=B), encoded("amoadd.d", rd=5, rs1=6, rs2=7),
        encoded("lw", rd=C, rs1=8), encoded("lw", rd=C, rs1=9),
    ]  # fmt: skip
    traced = [
        MemoryAccess("load", 1, address=DATA + 4, value=0xFE, position=0),
        MemoryAccess("store", 4, address=DATA, value=5, position=1),
        MemoryAccess("atomic", 8, "add", address=DATA + 8, value=3, position=2),
        MemoryAccess("load", 4, address=DATA, value=3, position=3, notes=(AccessNote.AMBIGUOUS,)),
        MemoryAccess("load", 8, address=DATA, value=3, position=4),
    ]  # fmt: skip
    found = window(words, traced=traced)
    assert (found.x(0, P), found.x(1, A), found.x(0, Q)) == (DATA, (1 << 64) - 2, DATA)
    assert found.x(0, B) is None and found.memory(2, DATA, 4) == [5, 0, 0, 0]
    assert (found.x(0, 6), found.x(3, 5), found.x(0, 8), found.x(0, 9)) == (DATA + 8, None, None, None)


def test_accesses_with_their_addresses() -> None:
    words = [encoded("sd", rs1=P, rs2=A), encoded("lb", rd=C, rs1=P, imm=5), encoded("lw", rd=C, rs1=Q)]
    log = window(words, end=edge(POINTER)).accesses()
    assert log.nearest(0, DATA + 5, 1, forward=True, stores=False, loads=True) == (1, DATA + 5)
    assert log.nearest(3, DATA + 5, 1, forward=False, stores=True, loads=False) == (0, DATA + 5)
    assert log.unknown == [(2, "load")]
