"""What the encoder sends when: synchronization in its three modes, full registers, sources, lost messages."""


import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Message, Sync, Tcode, parse
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, InstSyncMode, Options
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler as asm

# 0x100: three instructions of 4 halfwords, a branch back; 0x108: c.jr to wherever.
IMAGE = Image(32)
IMAGE.add_code(0x100, asm.C_NOP + asm.NOP + asm.c_beqz(-6) + asm.c_jr(1))
LOOP = Block(0x100, b"\1\2\1", IType.NOT_TAKEN, 0x100)
LEAVE = Block(0x108, b"\1", IType.RETURN)


class Recorder:
    """An encoder and what it sent."""

    def __init__(self, **options: object) -> None:
        self.raw: list[bytes] = []
        self.encoder = Encoder(EncoderOptions(**options), self.raw.append)  # type: ignore[arg-type]
        self.src_bits = self.encoder.options.src_bits
        self.encoder.start(Sync.EXIT_FROM_DEBUG)

    @property
    def messages(self) -> list[Message]:
        return [parse(raw, self.src_bits) for raw in self.raw]

    def tcodes(self) -> list[int]:
        return [message.tcode for message in self.messages]

    def fields(self, name: str) -> list[int]:
        return [message.fields[name] for message in self.messages if name in message.fields]


def test_period_in_messages() -> None:
    """After 16 messages one synchronizes, in place of the one that was due anyway."""
    recorder = Recorder(sync_mode=InstSyncMode.MESSAGES, sync_max=0)
    recorder.encoder.retire([LOOP, LEAVE] * 100)
    synchronizing = [i for i, tcode in enumerate(recorder.tcodes()) if tcode == Tcode.INDIRECT_BRANCH_HIST_SYNC]
    assert synchronizing == list(range(17, 103, 17))
    assert set(recorder.fields("sync")[1:]) == {Sync.PERIODIC}


@pytest.mark.parametrize(("mode", "units"), [(InstSyncMode.HALFWORDS, 4), (InstSyncMode.CYCLES, 3)])
def test_period_in_halfwords_and_cycles(mode: InstSyncMode, units: int) -> None:
    """Every 2**(1 + 4) units, at the next block boundary, in a loop that jumps nowhere; one cycle per instruction."""
    recorder = Recorder(sync_mode=mode, sync_max=1)
    recorder.encoder.retire([LOOP] * 100)
    blocks = -(-32 // units)
    assert recorder.tcodes()[:3] == [Tcode.PROG_TRACE_SYNC] + [Tcode.INDIRECT_BRANCH_HIST_SYNC] * 2
    assert recorder.fields("icnt")[1:] == [4 * blocks] * ((100 - 1) // blocks)
    assert recorder.fields("hist")[0].bit_length() - 1 == blocks
    assert set(recorder.fields("faddr")) == {0x80}


def test_cycles_as_told() -> None:
    recorder = Recorder(sync_mode=InstSyncMode.CYCLES, sync_max=0)
    for cycles in (15, 1, 0, 40):
        recorder.encoder.retire([LOOP], cycles=cycles)
    assert recorder.tcodes() == [Tcode.PROG_TRACE_SYNC] + [Tcode.INDIRECT_BRANCH_HIST_SYNC] * 2


def test_a_trap_carries_a_synchronization_that_is_due() -> None:
    recorder = Recorder(sync_mode=InstSyncMode.HALFWORDS, sync_max=0)
    recorder.encoder.retire([*[LOOP] * 4, IngressTrap(0x100, True, 7, 0, 0x108), LEAVE])
    assert recorder.tcodes() == [Tcode.PROG_TRACE_SYNC, Tcode.INDIRECT_BRANCH_HIST_SYNC]
    assert recorder.messages[1].fields == {"sync": 2, "b_type": 3, "icnt": 16, "faddr": 0x84, "hist": 0b11111}


def test_traps_without_the_extended_b_type() -> None:
    recorder = Recorder(b_type_extended=False)
    recorder.encoder.retire([IngressTrap(0x100, True, 7, 0, 0x108), IngressTrap(0x108, False, 2, 0, 0x100)])
    assert recorder.fields("b_type") == [1, 1]


def test_a_marker() -> None:
    """An external trigger: SYNC=0 where the flow stands, which the decoder shows and which interrupts nothing."""
    recorder = Recorder()
    recorder.encoder.retire([LOOP, LOOP])
    recorder.encoder.mark(Sync.EXTERNAL_TRIGGER)
    recorder.encoder.retire([LOOP])
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x108)
    history = decode(b"".join(recorder.raw), IMAGE, Options())
    assert history.instructions == len(history) == 9
    assert [(e.position, e.text) for e in history.events if e.kind is EventKind.SYNC] == [(6, "external trigger")]


def test_full_hist_and_full_i_cnt_in_the_same_moment() -> None:
    """Two ResourceFull, in any order (7.8)."""
    recorder = Recorder(icnt_limit=8, hist_limit=3)
    recorder.encoder.retire([LOOP] * 3)
    assert [m.fields.get("rcode") for m in recorder.messages] == [None, 0, 1]
    assert recorder.fields("rdata") == [8, 0b111]


@pytest.mark.parametrize("full_at_once", [True, False])
def test_registers_never_exceed_their_limits(full_at_once: bool) -> None:
    """At once: HIST of at most the limit's bits, I-CNT up to one instruction more; else never more than the limit."""
    recorder = Recorder(icnt_limit=13, hist_limit=5, full_at_once=full_at_once)
    recorder.encoder.retire([LOOP, LOOP, LEAVE] * 50)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x100)
    counts = recorder.fields("icnt") + [m.fields["rdata"] for m in recorder.messages if m.fields.get("rcode") == 0]
    assert sum(counts) == 50 * 9
    assert max(counts) <= (14 if full_at_once else 13)
    hists = recorder.fields("hist") + [m.fields["rdata"] for m in recorder.messages if m.fields.get("rcode") == 1]
    assert max(hists).bit_length() <= 5
    assert sum(hist.bit_length() - 1 for hist in hists) == 100


def test_an_instruction_longer_than_the_limit_is_counted_all_the_same() -> None:
    recorder = Recorder(icnt_limit=1, full_at_once=False)
    recorder.encoder.retire([Block(0x100, b"\2\1\2")])
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x10A)
    assert recorder.fields("rdata") + recorder.fields("icnt")[1:] == [2, 1, 2]


def test_a_source_is_in_every_message() -> None:
    recorder = Recorder(src_bits=5, src_id=19)
    recorder.encoder.retire([LOOP, LEAVE] * 5)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x100)
    assert {message.src for message in recorder.messages} == {19}
    with pytest.raises(ValueError, match="does not fit"):
        EncoderOptions(src_bits=3, src_id=8)
    with pytest.raises(ValueError, match="does not fit"):
        EncoderOptions(src_id=1)
    with pytest.raises(ValueError, match="maximum is 12"):
        EncoderOptions(src_bits=13)


def test_lost_messages() -> None:
    """Error, then a restart with SYNC=7 (7.4)."""
    recorder = Recorder()
    recorder.encoder.retire([LOOP])
    recorder.encoder.error()
    recorder.encoder.retire([LOOP], next_pc=0x108)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x108)
    assert recorder.tcodes()[1:3] == [Tcode.ERROR, Tcode.PROG_TRACE_SYNC]
    assert recorder.fields("sync") == [3, 7]


def test_nothing_is_sent_outside_start_and_stop() -> None:
    recorder = Recorder()
    recorder.encoder.stop(Evcode.TRACE_DISABLED)
    assert recorder.tcodes() == [Tcode.PROG_TRACE_CORRELATION]
    recorder.encoder.retire([LOOP, LEAVE], next_pc=0x100)
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert len(recorder.raw) == 1


def test_a_jump_pending_at_the_stop() -> None:
    """With the next address known the jump's own message goes first; without, the count alone covers it."""
    known, unknown = Recorder(), Recorder()
    for recorder, next_pc in ((known, 0x100), (unknown, None)):
        recorder.encoder.retire([LOOP, LEAVE])
        recorder.encoder.stop(Evcode.DEBUG_MODE, next_pc)
    assert known.fields("icnt") == [0, 5, 0]
    assert unknown.fields("icnt") == [0, 5]
    assert known.tcodes()[1] == Tcode.INDIRECT_BRANCH_HIST


def test_batches_of_any_size_make_the_same_messages() -> None:
    items: list[Block | IngressTrap] = [LOOP, LOOP, LEAVE, IngressTrap(0x100, False, 2, 0, 0x108), LEAVE] * 40
    expected = None
    for size in (1, 2, 7, 200):
        recorder = Recorder(icnt_limit=20, hist_limit=4, sync_mode=InstSyncMode.HALFWORDS)
        for batch in chunks(items, size):
            recorder.encoder.retire(batch)
        recorder.encoder.stop(Evcode.DEBUG_MODE, 0x100)
        expected = expected or recorder.raw
        assert recorder.raw == expected


def chunks(items: list[Block | IngressTrap], size: int) -> list[list[Block | IngressTrap]]:
    return [items[i : i + size] for i in range(0, len(items), size)]
