"""CTXP: what Spike ran, written as the specification has it by another writer, comes back; and its own sample lines."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.decode.branches.ctxp import EVENT, BadCtxp, history_of, items_of, sources_of
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.branches.test_tacit import executed, pcs_of
from tests.helpers.spike import needs_spike

HEADER = "HDR:format=accemic//ctxp-txt,ver=1\n"
_CALLS = (IType.INFERABLE_CALL, IType.UNINFERABLE_CALL, IType.COROUTINE_SWAP)


def lines_of(items: list[Block | IngressTrap], source: int = 0) -> Iterator[str]:
    """The lines, an event for each branch, jump and trap; the cycle count counts instructions."""
    now = 0
    first = items[0]
    yield f"#{source}:SYNC::0x{first.epc if isinstance(first, IngressTrap) else first.pc:08x} @ 0"
    for at, item in enumerate(items):
        if isinstance(item, IngressTrap):
            origin = item.epc
            if item.interrupt and at and isinstance(items[at - 1], Block):
                before = items[at - 1]
                assert isinstance(before, Block)
                origin = before.fall - 2 * before.lengths[-1]
            yield f"#{source}:INTERRUPT:0x{origin:08x}:0x{item.handler:08x} @ {now}"
            continue
        now += item.instructions
        following = items[at + 1] if at + 1 < len(items) else None
        if item.itype is IType.NONE or following is None:
            continue
        to = following.epc if isinstance(following, IngressTrap) else following.pc
        kind = "BRANCH_TAKEN"
        if item.itype is IType.NOT_TAKEN:
            kind = "BRANCH_NOTTAKEN" if to == item.fall else "BRANCH_TAKEN"
        elif item.itype in _CALLS:
            kind = "CALL"
        elif item.itype is IType.RETURN:
            kind = "RETURN"
        elif item.itype is IType.TRAP_RETURN:
            kind = "RFI"
        yield f"#{source}:{kind}:0x{item.fall - 2 * item.lengths[-1]:08x}:0x{to:08x} @ {now}"


def binary(text: str) -> bytes:
    """The same events in the binary form, from the table of the specification."""
    types = {
        "SYNC": 0b0000000, "BRANCH_TAKEN": 0b0010001, "BRANCH_NOTTAKEN": 0b0010010, "INTERRUPT": 0b0010011,
        "RFI": 0b0010101, "CALL": 0b0010110, "RETURN": 0b0010111,
    }  # fmt: skip
    out = b"CTXP\x08\x00\x01\x00" + b"\x01\x00\x11\x00\x01\x09core_cpu0\x00\x00"
    for line in text.splitlines():
        event, _, cycle = line.partition(" @ ")
        source, kind, first, second = event.removeprefix("#").split(":")
        out += bytes([int(source), types[kind] | 0x80]) + int(first or "0", 16).to_bytes(8, "little")
        out += int(second, 16).to_bytes(8, "little") + int(cycle).to_bytes(8, "little")
    return out


@needs_spike
@pytest.mark.parametrize("march", ["rv64imac", "rv32imac"])
def test_what_spike_ran_comes_back(march: str, tmp_path: Path) -> None:
    elf, items = executed(march, tmp_path)
    items = [item for item in items if not (isinstance(item, IngressTrap) and item.interrupt)][:4000]
    while isinstance(items[-1], IngressTrap) or items[-1].itype is IType.NONE:
        items.pop()
    text = "\n".join(lines_of(items)) + "\n"
    data = sources_of((HEADER + 'META:#0="CPU0"\n' + text).encode())[0]
    assert sources_of(binary(text)) == {0: data}
    program = Image.from_elf(elf)
    history = history_of(data, program).histories[0]
    pcs = list(history.pcs())
    whole = [pc for item in items for pc in tried(item, program)]
    assert history.gaps == 0 and pcs == whole[: len(pcs)] and len(whole) - len(pcs) < 40
    raised = [item for item in items if isinstance(item, IngressTrap)]
    told = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [event.next_pc for event in told] == [trap.handler for trap in raised] != []


def tried(item: Block | IngressTrap, program: Image) -> list[int]:
    """What is listed: an instruction that was tried counts, unless it always traps."""
    if isinstance(item, Block):
        return list(pcs_of([item]))
    return [] if program.instruction(item.epc).itype is IType.EXCEPTION else [item.epc]


SAMPLE = (
    "#0:SYNC::0x80000000                      @  0\n#0:BRANCH_NOTTAKEN:0x80003ca2:0x80003ca6 @  4\n"
    "#1:MEMREAD_1:0x70000064:0x00             @  1\n#0:WALLCLOCK::0x12000                    @ 10\n"
    "#0:MEMWRITE_4::0x2a\n#0:OVERFLOW::\n"
)


def test_lines_of_the_specification() -> None:
    found = sources_of((HEADER + 'META:#0="CPU0",#1="CPU1"\n' + SAMPLE).encode())
    assert sorted(found) == [0, 1]
    assert [item.text for item in items_of(found[0])] == [
        "#0:SYNC::0x80000000 @ 0", "#0:BRANCH_NOTTAKEN:0x80003ca2:0x80003ca6 @ 4", "#0:WALLCLOCK::0x12000 @ 10",
        "#0:MEMWRITE_4::0x2a", "#0:OVERFLOW:0x0:0x0",
    ]  # fmt: skip
    assert found[1] == EVENT.pack(1, 0b1_011_0001, 0x7000_0064, 0, 1)


def program() -> Image:
    """auipc; beqz; nop; ecall; j .; a handler: csrr, mret."""
    image = Image(32)
    image.add_code(0x8000_0000, bytes.fromhex("97020000 63040300 13000000 73000000 6f000000 f3231034 73002030"))
    return image


def history_text(text: str) -> tuple[list[int], list[object]]:
    history = history_of(sources_of((HEADER + text).encode())[0], program()).histories[0]
    return list(history.pcs()), [event.fact for event in history.events]


def test_traps_losses_and_contradictions() -> None:
    pcs, facts = history_text(
        "#0:SYNC::0x80000000\n#0:BRANCH_NOTTAKEN:0x80000004:0x80000008\n#0:INTERRUPT:0x8000000c:0x80000014\n"
        "#0:RFI:0x80000018:0x80000010\n#0:BRANCH_TAKEN:0x80000010:0x80000010\n"
    )
    assert pcs == [0x8000_0000 + at for at in (0, 4, 8, 0x14, 0x18, 0x10)]
    assert Trap(TrapKind.EXCEPTION) in facts
    pcs, _ = history_text(
        "#0:SYNC::0x80000000\n#0:INTERRUPT:0x80000000:0x80000014\n#0:OVERFLOW::\n"
        "#0:SYNC::0x80000008\n#0:INTERRUPT:0x80000008:0x80000014\n"
    )
    assert pcs == [0x8000_0000, GAP, 0x8000_0008]
    pcs, _ = history_text("#0:SYNC::0x80000000\n#0:INTERRUPT:0x80000008:0x80000014\n#0:RFI:0x80000018:0x80000008\n")
    assert pcs == [0x8000_0000, GAP, 0x8000_0014, 0x8000_0018], "the branch in between has no event"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"HDR:format=accemic//ctxp-txt,ver=2\n", "line 1: this version of the format is not known, only 1"),
        (HEADER.encode() + b"#0:JUMP:0x0:0x4\n", "line 2: is not an event: #0:JUMP:0x0:0x4"),
        (b"CTXP\x08\x00\x02\x00", "byte 0x4: version 2 of the format is not known, only 1"),
        (b"CTXP\x08\x00\x01\x00" + bytes(27), "byte 0x22: the file ends in the middle of an event"),
        (b"CTXP\x08\x00\x01\x00" + b"\x00\x7f" + bytes(24), "byte 0x8: 0x7f is not a type of event"),
        (b"something", "byte 0x0: neither the header of CTXP nor of its text form"),
    ],
)
def test_damaged_files(data: bytes, says: str) -> None:
    with pytest.raises(BadCtxp) as caught:
        sources_of(data)
    assert str(caught.value) == says
