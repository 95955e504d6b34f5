"""TACIT: the layout that ucb-bar/tacit_decoder has published, by an encoder that is written from it alone; what
programs ran according to Spike.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.decode.branches.tacit import history_of, items_of
from rvtrace_gdb.decode.branches.tacit.encoder import TacitEncoder
from rvtrace_gdb.decode.branches.tacit.packets import (
    BranchMode,
    TacitConfiguration,
    TacitKind,
    TacitPacket,
    packet_bytes,
)
from rvtrace_gdb.decode.branches.tacit.reader import PacketReader
from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.executed.execution import Executed
from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.history.events import EventKind, Stop, StopReason, Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP
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
    assert list(PacketReader(data)) == [(0, (packet, len(data), ""))]


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
    """What an encoder sends in the plain layout, from that alone; the time counts instructions."""
    out, now, sent = b"", 0, 0
    for at, item in enumerate(items):
        here = item.epc if isinstance(item, IngressTrap) else item.pc
        if not at:
            out, sent = b"\x16" + number(here >> 1) + number(1), 1  # when its first instruction has retired
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


def predicting(items: list[Block | IngressTrap], entries: int) -> bytes:
    """What an encoder sends that predicts branches, in the layout with privilege and context, in M-mode."""
    counters = [1] * entries
    out, now, sent, right = b"", 0, 0, 0

    def short(kind: int, value: int) -> bytes:
        return bytes([kind | value << 2]) if value < 64 else bytes([2 | kind << 2]) + number(value)

    for at, item in enumerate(items):
        here = item.epc if isinstance(item, IngressTrap) else item.pc
        if not at:
            out = b"\x36\x98\x80" + bytes([0x80 | entries.bit_length() - 7 << 2 | 2]) + number(here >> 1) + b"\x81"
            sent = 1
        if isinstance(item, IngressTrap):
            out, right = out + (short(0, right) if right else b""), 0
            out += bytes([2 | 4 << 2 | (2 if item.interrupt else 1) << 5, 0x9B]) + number(item.epc >> 1)
            out += number((item.epc ^ item.handler) >> 1) + number(now - sent)
            sent = now
            continue
        now += item.instructions
        if at + 1 == len(items) or item.itype in (IType.NONE, IType.INFERABLE_CALL, IType.OTHER_INFERABLE):
            continue
        following = items[at + 1]
        to = following.epc if isinstance(following, IngressTrap) else following.pc
        last = item.fall - 2 * item.lengths[-1]
        if item.itype is IType.NOT_TAKEN:
            place, taken = (last >> 1) % entries, to != item.fall
            hit = (counters[place] >= 2) == taken
            counters[place] = min(3, counters[place] + 1) if taken else max(0, counters[place] - 1)
            right += hit
            if not hit:
                out, right = out + (short(0, right) if right else b"") + short(1, now - sent), 0
                sent = now
            continue
        out, right = out + (short(0, right) if right else b""), 0
        if item.itype is IType.TRAP_RETURN:
            out += b"\x92\x9b" + number(last >> 1) + number((last ^ to) >> 1) + number(now - sent)
        else:
            out += b"\x0a" + number((last ^ to) >> 1) + number(now - sent)
        sent = now
    end = items[-1]
    last = end.epc if isinstance(end, IngressTrap) else end.fall - 2 * end.lengths[-1]
    return out + b"\x76\x98\x80" + number(last >> 1) + number(now)


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


SPECIFICATION = [
    ("14", "Taken time=+5"), ("01", "NotTaken time=+0"), ("ff", "InferableJump time=+63"),
    ("06 e4", "NotTaken time=+100"), ("02 48 81", "Taken time=+200"),
    ("0a 00 b0 83", "UninferableJump target^=0x1800 time=+3"),
    ("36 88 80 80 00 00 00 00 84 87", "Sync start prv=S ctx=0 mode=target entries=64 address=0x80000000 time=7"),
    ("92 81 f5 92 90 83", "Trap return prv=S->U ctx=117 address=0x24 target^=0x10 time=+3"),
    ("96 98 80 80 5a 0a 82 40 04 bd", "Sync pause prv=M ctx=0 address=0x10ab4 time=1000000"),
    ("b6 80 f5 52 89 00 0c 82 40 24 bd", "Sync resume prv=U ctx=117 lost=1234 address=0x10c00 time=1004096"),
    ("76 98 80 80 5a 0a 82 81", "Sync end prv=M ctx=0 address=0x10ab4 time=1"),
    ("76 98 80 5a 0a 82 81", "Sync end prv=M ctx=0 address=0x10ab4 time=1"),
]  # fmt: skip
"""The worked examples of the specification, 1.1, section 10, with numbers in place of its letters; and an end as the
encoder of 32c52c6 sends it.
"""


def test_the_examples_of_the_specification() -> None:
    data = bytes.fromhex("36 98 80 80 80 80" + "".join(digits for digits, _ in SPECIFICATION))
    assert [item.text for item in items_of(data)][1:] == [text for _, text in SPECIFICATION]
    packets = [cut.packet for _, cut in PacketReader(data) if cut.packet is not None]
    assert b"".join(map(packet_bytes, packets)) == data


@needs_spike
@pytest.mark.parametrize("entries", [1024, 64])
def test_predicted_branches_come_back(entries: int, tmp_path: Path) -> None:
    """All but what ran after the last packet, of which the encoder says nothing."""
    elf, items = executed("rv64imac", tmp_path)
    encoder = TacitEncoder(TacitConfiguration(BranchMode.PREDICT, entries), has_context=True)
    sent = b"".join(map(packet_bytes, [*encoder.packets_of(items), *encoder.stop()]))
    assert sent == predicting(items, entries), "as the specification has it"
    histories = history_of(sent, Image.from_elf(elf))
    history, ran = histories.histories[0], list(pcs_of(items))
    pcs = list(history.pcs())
    assert pcs == ran[: len(pcs)] and len(pcs) > len(ran) - 60 and history.gaps == 0
    assert histories.accounting.skipped == 0
    end = history.events[-1]
    assert isinstance(end.fact, Stop) and end.fact.reason is StopReason.NO_ROUTE and end.position == len(pcs)
    assert len(sent) < len(naive(items)), "what predicting is good for"
    assert {context.prv for _, context in history.contexts} == {3}


@needs_spike
def test_a_second_start_finds_a_predictor_that_is_not_known(tmp_path: Path) -> None:
    elf, items = executed("rv64imac", tmp_path)
    half = len(items) // 2
    encoder = TacitEncoder(TacitConfiguration(BranchMode.PREDICT), has_context=True)
    first = b"".join(map(packet_bytes, [*encoder.packets_of(items[:half]), *encoder.stop()]))
    again = TacitEncoder(TacitConfiguration(BranchMode.PREDICT), has_context=True, predictor=encoder.predictor)
    later = b"".join(map(packet_bytes, again.packets_of(items[half:])))
    history = history_of(first + later, Image.from_elf(elf)).histories[0]
    assert any("predictor has learned is not known" in event.text for event in history.events)
    ran = list(pcs_of(items[:half]))
    assert list(history.pcs())[: len(ran) - 60] == ran[: len(ran) - 60]


def code(*words: str, at: int = 0x8000_0000) -> Image:
    """A program of these instructions, in hexadecimal."""
    image = Image(64)
    image.add_code(at, b"".join(int(word, 16).to_bytes(4, "little") for word in words))
    return image


NOP, BACK_ONE, ECALL, MRET = "00000013", "fe009ee3", "00000073", "30200073"  # bne x1, x0, .-4
START = TacitPacket(TacitKind.SYNC, 0, 0x8000_0000)


def sent_by(*packets: TacitPacket) -> bytes:
    return b"".join(map(packet_bytes, packets))


PREDICTS = {"TR_TE_BRANCH_MODE": 2, "bp_entries": 1024}


@pytest.mark.parametrize("count", [5, 1000, (1 << 32) - 1])
def test_a_loop_that_is_predicted_is_one_entry(count: int) -> None:
    """The first round is mispredicted; of all others the packet is one byte to five."""
    data = sent_by(START, TacitPacket(TacitKind.NOT_TAKEN, 2), TacitPacket(TacitKind.TAKEN, count))
    history = history_of(data, code(NOP, BACK_ONE, NOP), PREDICTS).histories[0]
    assert history.instructions == 2 * (count + 1) and history.gaps == 0
    assert history.pc(2 * count) == 0x8000_0000 and history.pc(2 * count + 1) == 0x8000_0004


def test_more_predictions_than_are_counted_are_noise() -> None:
    data = sent_by(START, TacitPacket(TacitKind.TAKEN, 1 << 32))
    history = history_of(data, code(NOP, BACK_ONE, NOP), PREDICTS).histories[0]
    assert history.instructions == 0 and any("more than an encoder counts" in event.text for event in history.events)


def test_what_predicting_encoders_do_not_send_is_noticed() -> None:
    data = sent_by(START, TacitPacket(TacitKind.INFERABLE_JUMP, 1))
    history = history_of(data, code(NOP, BACK_ONE, NOP), PREDICTS).histories[0]
    assert any("InferableJump while branches are predicted" in event.text for event in history.events)
    endless = history_of(sent_by(START, TacitPacket(TacitKind.TAKEN, 9)), code(NOP, "0000006f"), PREDICTS).histories[0]
    assert any("jumps lead to themselves" in event.text for event in endless.events)


def test_the_mode_that_nobody_sends() -> None:
    """Mode 1: no branch has a packet, so what ran past one is a gap."""
    jump = TacitPacket(TacitKind.UNINFERABLE_JUMP, 4, target=(0x8000_0008 ^ 0x8000_0000) >> 1)
    settings = {"TR_TE_BRANCH_MODE": 1}
    plain = history_of(sent_by(START, jump), code(NOP, NOP, "00008067"), settings).histories[0]
    assert list(plain.pcs()) == [0x8000_0000, 0x8000_0004, 0x8000_0008]
    branch = history_of(sent_by(START, jump), code(NOP, BACK_ONE, "00008067"), settings).histories[0]
    assert branch.gaps or any(event.is_loss for event in branch.events)


def test_the_last_two_instructions_have_no_packet() -> None:
    """The encoder is stopped after the branch: the address at the end says where it led."""
    image = code(NOP, BACK_ONE, NOP, NOP)
    falls = history_of(sent_by(START, TacitPacket(TacitKind.SYNC, 9, 0x8000_0008)), image).histories[0]
    assert list(falls.pcs()) == [0x8000_0000, 0x8000_0004, 0x8000_0008] and not any(e.is_loss for e in falls.events)
    elsewhere = history_of(sent_by(START, TacitPacket(TacitKind.SYNC, 9, 0x8000_000C)), image).histories[0]
    assert elsewhere.instructions == 0
    assert any("the transfer that did was not recorded" in event.text for event in elsewhere.events)


def trap(sort: int, at: int, to: int, **more: int) -> TacitPacket:
    return TacitPacket(TacitKind.TRAP, 1, at, (at ^ to) >> 1, sort, **more)


@pytest.mark.parametrize("has_context", [False, True])
def test_code_that_is_not_the_program_s_is_passed_over(has_context: bool) -> None:
    """A debugger halts a Rocket: its Debug ROM runs at 0x800, and a return leads back."""
    more = {"prv": 3, "from_prv": 3} if has_context else {}
    start = START._replace(sort=1, prv=3, ctx=0, number=0) if has_context else START
    rom = [TacitPacket(TacitKind.INFERABLE_JUMP, 1), TacitPacket(TacitKind.TAKEN, 3), TacitPacket(TacitKind.TAKEN, 3)]
    back = TacitPacket(TacitKind.TAKEN, 2)
    data = sent_by(
        start, back, trap(2, 0x8000_0004, 0x800, **more), *rom, trap(4, 0x838, 0x8000_0004, **more), back, back
    )
    history = history_of(data, code(NOP, BACK_ONE, NOP)).histories[0]
    pcs = [0x8000_0000, 0x8000_0004]
    assert list(history.pcs()) == [*pcs, 0x8000_0000, GAP, 0x8000_0004, *pcs]
    assert any("decoding continues" in event.text for event in history.events)


def test_the_debug_rom_of_a_halt_at_which_the_encoder_is_switched() -> None:
    """Off after the ROM was entered, on before it is left: the synchronizations are in it."""
    back, jump = TacitPacket(TacitKind.TAKEN, 2), TacitPacket(TacitKind.INFERABLE_JUMP, 1)
    entered, left = trap(2, 0x8000_0004, 0x800), trap(4, 0x838, 0x8000_0004)
    in_rom = [TacitPacket(TacitKind.SYNC, time, 0x80C) for time in (50, 90)]
    pcs = [0x8000_0000, 0x8000_0004]
    for rom in ([jump, jump], []):
        data = sent_by(START, back, entered, *rom, *in_rom, jump, left, back, back)
        settings = {"off_in_debug_mode": 1}
        history = history_of(data, code(NOP, BACK_ONE, NOP), settings).histories[0]
        assert list(history.pcs()) == [*pcs, 0x8000_0000, GAP, 0x8000_0004, *pcs]


def test_a_halt_is_no_gap_if_the_hart_goes_on_there() -> None:
    image = code(NOP, BACK_ONE, NOP, NOP)
    end = TacitPacket(TacitKind.SYNC, 9, 0x8000_0004)
    pcs = [0x8000_0000, 0x8000_0004, 0x8000_0008, 0x8000_000C]
    for settings, goes_on, gaps in (({"off_in_debug_mode": 1}, 0, 0), ({"off_in_debug_mode": 1}, 4, 1), ({}, 0, 1)):
        start = TacitPacket(TacitKind.SYNC, 20, 0x8000_0008 + goes_on)
        data = sent_by(START, end, start, TacitPacket(TacitKind.SYNC, 30, 0x8000_000C))
        history = history_of(data, image, settings).histories[0]
        assert history.gaps == gaps
        assert [pc for pc in history.pcs() if pc != GAP] == [*pcs[:2], *pcs[2 + goes_on // 4 :]]


def test_a_trap_in_noise_is_not_believed() -> None:
    """After bytes that are no packets nothing says where the next one begins."""
    back = TacitPacket(TacitKind.TAKEN, 2)
    data = sent_by(START, back) + b"\x1e" + sent_by(trap(2, 0x8000_0004, 0x8000_0008), back, START, back)
    history = history_of(data, code(NOP, BACK_ONE, NOP)).histories[0]
    pcs = [0x8000_0000, 0x8000_0004]
    assert list(history.pcs()) == [*pcs, GAP, *pcs]


def test_addresses_of_traps_as_they_were_first() -> None:
    """Before ucb-bar/tacit 87ef14d the address of a trap had its bit 0."""
    image = code(NOP, ECALL, NOP, NOP, MRET)
    first = trap(1, 0x8000_0004, 0x8000_000C)
    back = trap(4, 0x8000_0010, 0x8000_0008)
    end = TacitPacket(TacitKind.SYNC, 9, 0x8000_0008)
    expected = [0x8000_0000, 0x8000_000C, 0x8000_0010, 0x8000_0008]
    for packets in ([first, back], [packet._replace(address=packet.address << 1) for packet in (first, back)]):
        history = history_of(sent_by(START, *packets, end), image).histories[0]
        assert list(history.pcs()) == expected and history.gaps == 0


def test_packets_that_the_encoder_drops_are_a_gap() -> None:
    start = START._replace(sort=1, prv=3, ctx=0, number=0)
    pause = TacitPacket(TacitKind.SYNC, 5, 0x8000_0004, 0, 4, 3, 0, 0, 0)
    resume = TacitPacket(TacitKind.SYNC, 50, 0x8000_0000, 0, 5, 0, 0, 9, 12)
    back = TacitPacket(TacitKind.TAKEN, 2)
    history = history_of(sent_by(start, back, pause, resume, back), code(NOP, BACK_ONE, NOP)).histories[0]
    pcs = [0x8000_0000, 0x8000_0004]
    assert list(history.pcs()) == [*pcs, 0x8000_0000, GAP, *pcs]
    assert [event.text for event in history.events if event.is_loss] == ["the encoder lost packets"]
    assert [(position, context.prv) for position, context in history.contexts] == [(0, 3), (4, 0)]
