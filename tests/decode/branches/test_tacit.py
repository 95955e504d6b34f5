"""TACIT: the layout that ucb-bar/tacit_decoder has published, by an encoder that is written from it alone; what
programs ran according to Spike.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.decode.branches.tacit import (
    TacitEncoder,
    TacitKind,
    TacitPacket,
    history_of,
    items_of,
    packet_at,
    packet_bytes,
)
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.executed.execution import Executed
from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.executed.logs import PROGRAMS, spike_log
from tests.helpers.amounts import some_of
from tests.helpers.spike import needs_spike
from tests.transport.simulated.hart.programs import build

PUBLISHED = [
    (TacitPacket(TacitKind.SYNC, 1000, 0x8000_0000), "16 00 00 00 00 84 68 87"),
    (TacitPacket(TacitKind.TAKEN, 3), "0c"),
    (TacitPacket(TacitKind.NOT_TAKEN, 1), "05"),
    (TacitPacket(TacitKind.INFERABLE_JUMP, 5), "17"),
    (TacitPacket(TacitKind.TAKEN, 200), "02 48 81"),
    (TacitPacket(TacitKind.UNINFERABLE_JUMP, 2, target=0x8000_0010 >> 1 ^ 0x8000_002A >> 1), "0a 9d 82"),
    (
        TacitPacket(TacitKind.TRAP, 7, 0x8000_0024, 0x8000_0024 >> 1 ^ 0x8000_1000 >> 1, 2),
        "52 12 00 00 00 84 12 90 87",
    ),
]
"""Packets and their bytes, worked out by hand from the decoder's source."""


@pytest.mark.parametrize(("packet", "digits"), PUBLISHED)
def test_the_published_layout(packet: TacitPacket, digits: str) -> None:
    data = bytes.fromhex(digits)
    assert packet_bytes(packet) == data
    assert packet_at(data, 0) == (packet, len(data), "")


def number(value: int) -> bytes:
    """A number in the published form: seven bits a byte, the lowest first, the last byte marked."""
    out = []
    while True:
        out.append(value & 127)
        value >>= 7
        if not value:
            out[-1] |= 128
            return bytes(out)


def naive(items: list[Block | IngressTrap]) -> bytes:
    """What an encoder sends, from the layout alone, an instruction at a time; the time counts instructions."""
    out, now, sent = b"", 0, 0
    for at, item in enumerate(items):
        here = item.epc if isinstance(item, IngressTrap) else item.pc
        if not at:
            out += b"\x16" + number(here >> 1) + number(0)
        if isinstance(item, IngressTrap):
            sort = 2 if item.interrupt else 1
            out += bytes([2 | 4 << 2 | sort << 5]) + number(item.epc >> 1)
            out += number((item.epc ^ item.handler) >> 1) + number(now - sent)
            sent = now
            continue
        now += item.instructions
        if at + 1 == len(items) or item.itype is IType.NONE:
            continue
        following = items[at + 1]
        to = following.epc if isinstance(following, IngressTrap) else following.pc
        last = item.fall - 2 * item.lengths[-1]
        elapsed, sent = now - sent, now
        if item.itype is IType.TRAP_RETURN:
            out += bytes([2 | 4 << 2 | 4 << 5]) + number(last >> 1) + number((last ^ to) >> 1) + number(elapsed)
        elif item.itype in (IType.NOT_TAKEN, IType.INFERABLE_CALL, IType.OTHER_INFERABLE):
            kind = 3 if item.itype is not IType.NOT_TAKEN else int(to == item.fall)
            out += bytes([kind | elapsed << 2]) if elapsed < 64 else bytes([2 | kind << 2]) + number(elapsed)
        else:
            out += bytes([2 | 2 << 2]) + number((last ^ to) >> 1) + number(elapsed)
    end = items[-1]
    last = end.epc if isinstance(end, IngressTrap) else end.fall - 2 * end.lengths[-1]
    return out + b"\x16" + number(last >> 1) + number(now)


def executed(march: str, folder: Path) -> tuple[Path, list[Block | IngressTrap]]:
    elf = build(folder, "start.S", PROGRAMS / "calls_and_traps.c", march=march)
    log = spike_log(elf, folder, "-l", lines=some_of(60_000, 5))
    with Log(str(log)) as opened:
        items = [it for it in Executed(opened, Image.from_elf(elf)).items() if isinstance(it, Block | IngressTrap)]
    while isinstance(items[-1], IngressTrap):
        items.pop()
    return elf, items


def pcs_of(items: list[Block | IngressTrap]) -> Iterator[int]:
    for item in items:
        if isinstance(item, Block):
            pc = item.pc
            for halfwords in item.lengths:
                yield pc
                pc += 2 * halfwords


@needs_spike
@pytest.mark.parametrize("march", ["rv64imac", "rv32imac"])
def test_what_spike_ran_comes_back(march: str, tmp_path: Path) -> None:
    elf, items = executed(march, tmp_path)
    encoder = TacitEncoder()
    sent = b"".join(map(packet_bytes, [*encoder.packets_of(items), *encoder.stop()]))
    assert sent == naive(items), "as the layout alone has it"
    histories = history_of(sent, Image.from_elf(elf))
    history = histories.histories[0]
    assert list(history.pcs()) == list(pcs_of(items)) and history.gaps == 0
    assert histories.accounting == (len(sent), len(sent), 0, 0)
    traps = [item for item in items if isinstance(item, IngressTrap)]
    told = [event for event in history.events if event.kind is EventKind.TRAP]
    assert [(event.last_pc, event.next_pc) for event in told] == [(trap.epc, trap.handler) for trap in traps] != []
    kinds = [event.fact.kind for event in told if isinstance(event.fact, Trap)]
    assert kinds == [TrapKind.INTERRUPT if trap.interrupt else TrapKind.EXCEPTION for trap in traps]
    assert history.times[-1][1] == sum(item.instructions for item in items if isinstance(item, Block))
    assert sum(item.end - item.offset for item in items_of(sent)) == len(sent)


@needs_spike
def test_damage_is_a_gap_up_to_the_next_synchronization(tmp_path: Path) -> None:
    elf, items = executed("rv64imac", tmp_path)
    encoder = TacitEncoder()
    sent = b"".join(map(packet_bytes, [*encoder.packets_of(items[:400]), *encoder.stop()]))
    again = TacitEncoder()
    later = b"".join(map(packet_bytes, [*again.packets_of(items[400:800]), *again.stop()]))
    at = len(sent) // 2
    histories = history_of(sent[:at] + b"\x1e" + sent[at:] + later, Image.from_elf(elf))
    history = histories.histories[0]
    pcs = [pc for pc in history.pcs() if pc >= 0]
    loss = next(event for event in history.events if event.is_loss)
    assert loss.offset == at and histories.accounting.skipped > 0
    whole, second = list(pcs_of(items[:400])), list(pcs_of(items[400:800]))
    assert pcs[-len(second) :] == second
    first = pcs[: -len(second)]
    assert first and first == whole[: len(first)]


def test_another_program_is_noticed(tmp_path: Path) -> None:
    image = Image(64)
    image.add_code(0x8000_0000, b"\x13\0\0\0" * 20 + b"\x6f\0\0\0")
    data = packet_bytes(TacitPacket(TacitKind.SYNC, 0, 0x8000_0000)) + packet_bytes(TacitPacket(TacitKind.TAKEN, 20))
    history = history_of(data, image).histories[0]
    loss = next(event for event in history.events if event.is_loss)
    assert "Taken at another instruction" in loss.text
    assert list(history.pcs())[:20] == [0x8000_0000 + 4 * n for n in range(20)]


@pytest.mark.parametrize(
    ("digits", "problem"),
    [
        ("1e", "packets of kind 7 are not defined"), ("1a", "packets of kind 6 are not defined"),
        ("02 00", "the trace ends in the middle of a packet"),
        ("02" + " 7f" * 12, "a number has more than 64 bits"),
    ],
)  # fmt: skip
def test_bytes_that_are_no_packet(digits: str, problem: str) -> None:
    data = bytes.fromhex(digits)
    assert next(items_of(data)).problem == problem
    histories = history_of(data, Image(64))
    assert histories.histories[0].instructions == 0 and sum(histories.accounting[1:]) == len(data)
