"""What the encoder sends when: synchronization in its three modes, full registers, sources, lost messages."""

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.ntrace.encoder.encoder import Encoder
from rvtrace_gdb.decode.ntrace.messages import Evcode, Message, Sync, Tcode, parse
from rvtrace_gdb.decode.ntrace.options import EncoderOptions, InstSyncMode
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


def test_nothing_is_sent_outside_start_and_stop() -> None:
    recorder = Recorder()
    recorder.encoder.stop(Evcode.TRACE_DISABLED)
    assert recorder.tcodes() == [Tcode.PROG_TRACE_CORRELATION]
    recorder.encoder.retire([LOOP, LEAVE], next_pc=0x100)
    recorder.encoder.stop(Evcode.DEBUG_MODE)
    assert len(recorder.raw) == 1


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
