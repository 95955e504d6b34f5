"""The groups of a tandem trace as `trace dump` has them: what the line says, and which number and bytes it has."""

import random
from collections.abc import Iterator

import pytest

from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import (
    AdditionalState,
    Element,
    Ending,
    Group,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    StateId,
    TandemParameters,
)
from rvtrace_gdb.session.capture.model import CapturedPort
from rvtrace_gdb.session.formats.tandem import GroupItem, GroupItemizer, GroupWording, NumberedGroups
from tests.decode.tandem.corpus import RV64, trace_bytes
from tests.decode.tandem.groups import INIT, NOP, RESET, csr, group, pc, priv, x

PORT = CapturedPort("tandem0", TandemParameters())


def items_of(groups: list[Group], parameters: TandemParameters = PORT.parameters) -> list[GroupItem]:
    found = NumberedGroups(encode(groups, parameters), CapturedPort("t", parameters))
    return [item for _, item in found.items(1, len(found) + 1)]


def text(*elements: Element, parameters: TandemParameters = PORT.parameters) -> str:
    """The line of a group that other groups follow."""
    items = items_of([Group(elements), *[group(NOP, pc(4 * i)) for i in range(4)]], parameters)
    return GroupWording(parameters).text(items[0])


@pytest.mark.parametrize(
    ("elements", "line"),
    [
        ((IncrementPc(), Instr(0x6281B3, 4), x(3, 0x1234)), "Group pc=+4 instr=0x006281b3 gp=0x1234"),
        ((pc(0x80000004), Instr(0x405, 2), x(8, 1)), "Group pc=0x80000004 instr=0x0405 s0=0x1"),
        (
            (pc(8), NOP, AdditionalState(StateId.STORE_DATA_32, 7), AdditionalState(StateId.EFFECTIVE_ADDRESS, 0x1000)),
            "Group pc=0x8 instr=0x00000013 store32=0x7 eaddr=0x1000",
        ),
        ((IncrementPc(), NOP, IncrementalRegister(0x1002, -16), IncrementalRegisterOr(1, 2)),
         "Group pc=+4 instr=0x00000013 sp=-16 fflags=|0x2"),
        ((RESET,), "Group # hart reset"),
        ((INIT, csr(0x344, 8)), "Group mip=0x8 # state initialization"),
        (
            (pc(0x100), priv(3), csr(0x342, 1 << 63 | 7), csr(0x341, 0x80)),
            "Group pc=0x100 prv=3 mcause=0x8000000000000007 mepc=0x80 # interrupt 7 (machine timer interrupt)",
        ),
        (
            (pc(0x100), NOP, priv(1), csr(0x142, 2), csr(0x141, 0x80)),
            "Group pc=0x100 instr=0x00000013 prv=1 scause=0x2 sepc=0x80 # exception 2 (illegal instruction)",
        ),
        ((pc(4), NOP, csr(0x342, 2)), "Group pc=0x4 instr=0x00000013 mcause=0x2"),  # csrw
        ((pc(4), NOP, csr(0x7C1, 2)), "Group pc=0x4 instr=0x00000013 csr-0x7c1=0x2"),
        (
            (IncrementPc(), NOP, MemoryRequest(0x80, MemoryOp.AMO_ADD, 2, 5), MemoryResponse(2, 0, 6)),
            "Group pc=+4 instr=0x00000013 request=amo_add32,0x80,0x5 response=success32,0x6",
        ),
        ((pc(4), pc(8), NOP, NOP), "Group pc=0x4 pc-2=0x8 instr=0x00000013 instr-2=0x00000013 # two instructions in one"
                                   " group"),
    ],
)  # fmt: skip
def test_what_a_group_tells_is_columns(elements: tuple[Element, ...], line: str) -> None:
    assert text(*elements) == line


def test_an_interrupt_of_rv32_is_known_by_bit_31() -> None:
    found = text(pc(0x100), priv(3), csr(0x342, 1 << 31 | 3), csr(0x341, 0x80), parameters=TandemParameters(32))
    assert found.endswith("# interrupt 3 (machine software interrupt)")


def test_how_it_ends() -> None:
    groups = [Group((pc(4), NOP), Ending.IMPLIED), group(NOP, pc(8)), Group((csr(0x344, 1),), Ending.LOOSE)]
    lines = [GroupWording(PORT.parameters).text(item) for item in items_of(groups)]
    assert lines == [
        "Group pc=0x4 instr=0x00000013 # its end is implied",
        "Group instr=0x00000013 pc=0x8",
        "Loose mip=0x1 # outside of groups",
    ]


def damaged() -> tuple[bytes, list[tuple[int, int]]]:
    """A real trace with bytes that are none in three places, and where these are."""
    data, random_ = bytearray(trace_bytes("flute_rv64ui-p-add")[:6000]), random.Random(7)
    junk = bytes(random_.choice(b"\x20\x33\x7f\xee") for _ in range(40))
    places = []
    for at in (27 * 100, 27 * 30, 0):
        begin = data.find(b"\x02\x01\x07\x0a", at) + 1 if at else 0
        data[begin:begin] = junk
        places.append(begin)
    places = sorted(places)
    return bytes(data), [(place + 40 * i, place + 40 * i + 40) for i, place in enumerate(places)]


def each(found: NumberedGroups) -> Iterator[GroupItem]:
    return (item for _, item in found.items(1, len(found) + 1))


def test_all_bytes_are_shown_and_groups_keep_their_numbers() -> None:
    data, junk = damaged()
    items = list(each(NumberedGroups(data, CapturedPort("t", RV64))))
    assert b"".join(item.raw for item in items) == data
    assert [item.offset for item in items] == [sum(len(one.raw) for one in items[:n]) for n in range(len(items))]
    lost = [item for item in items if item.group is None]
    assert [(item.offset, item.end) for item in lost[:3]] == junk
    assert [item.number for item in items if item.group] == list(range(1, len(items) - len(lost) + 1))
    for item in lost[:3]:
        assert item.number == next(one.number for one in items if one.offset == item.end)
        assert GroupWording(RV64).text(item).startswith(f"NoGroup BYTES=40 RAW={item.raw.hex()} # ")
        assert GroupWording(RV64).is_odd(item)


def test_what_is_at_a_byte() -> None:
    data, _ = damaged()
    found = NumberedGroups(data, CapturedPort("t", RV64))
    for item in each(found):
        assert {found.number_at(offset) for offset in range(item.offset, item.end)} == {item.number}
    assert found.number_at(len(data)) == found.number_at(1 << 40) == len(found) + 1


@pytest.mark.parametrize("size", [1, 13, 4096])
def test_any_pieces(size: int) -> None:
    data, _ = damaged()
    taker = GroupItemizer(RV64)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = [item for piece in pieces for item in taker.feed(piece)] + list(taker.finish())
    assert found == list(each(NumberedGroups(data, CapturedPort("t", RV64))))


def test_memory_does_not_grow() -> None:
    taker = GroupItemizer(RV64)
    data = trace_bytes("flute_rv64ui-p-add")[:5000]
    count = 0
    for piece in [data] * 20 + [b"\xee" * 5000] * 20:
        count += sum(1 for item in taker.feed(piece) if item.group)
        assert len(taker._trace.data) < 1000
    assert count > 20 * 150
    [rest] = taker.finish()
    assert (rest.group, rest.end) == (None, 40 * 5000)
    assert rest.size >= 20 * 5000
    assert rest.raw == (data[len(data) - (rest.size - 100000) :] + b"\xee" * 96)[:96]
