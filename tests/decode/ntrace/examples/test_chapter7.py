"""RISC-V N-Trace 1.0, chapters 6 and 7, "N-Trace Messages": what each message and field stands for, with examples."""

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.history.event_wording import context_text
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.messages import Sync, parse
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import (
    MESSAGES,
    Recorder,
    decoded,
    image_of,
    message,
    of_kind,
    read,
    started,
    stopped,
    vendor,
)

IMAGE = image_of((0x100, [asm.C_NOP] * 6 + [asm.c_jr(6)]), (0x200, [asm.C_NOP] * 4))
VALUES = {
    "process": 0x3B2, "icnt": 9, "uaddr": 0x41, "faddr": 0x81, "hist": 0b1011, "bcnt": 7, "rdata": 0b101,
    "hrepeat": 150, "sync": 9, "b_type": 3, "etype": 9, "ecode": 0x84, "evcode": 4, "cdf": 1, "rcode": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("tstamp", [None, 5000])
@pytest.mark.parametrize("source", [(0, 0), (3, 5), (12, 0xABC)])
def test_section_6_1_fields_in_messages(name: str, tstamp: int | None, source: tuple[int, int]) -> None:
    """Each row of the table: TCODE, the fields in order, optional SRC and TSTAMP."""
    tcode, fields = MESSAGES[name]
    values = {field.partition(":")[0]: VALUES[field.partition(":")[0]] for field in fields.split()}
    parsed = parse(message(name, source, tstamp, **values), source[0])
    assert (parsed.tcode, parsed.name, parsed.src, parsed.tstamp) == (tcode, name, source[1], tstamp)
    assert dict(parsed.fields) == values


@pytest.mark.parametrize("tcode", [56, 62, 20, 0, 63])
def test_section_6_1_vendor_defined_and_reserved_messages(tcode: int) -> None:
    """They "should be ignored by decoders interested in program flow only", and may "generate a warning"."""
    other = vendor(tcode, 1 << 40, 12)
    history = decoded(IMAGE, started(), other, stopped(2))
    assert list(history.pcs()) == [0x100, 0x102]
    (note,) = of_kind(history, EventKind.NOTE)
    assert str(tcode) in note.text
    assert ("vendor" if 56 <= tcode <= 62 else "reserved") in note.text
    assert note.offset == len(started())


# PROCESS and the contexts of 7.1: the examples, then each privilege mode, each FORMAT.
PROCESSES = {
    "0x3B2: scontext=0x1D, VU-mode": (0x3B2, ProgramContext(prv=0, virtual=True, scontext=0x1D)),
    "0xC: M-mode": (0xC, ProgramContext(prv=3, virtual=False)),
    "U-mode": (0b0_00_00, ProgramContext(prv=0, virtual=False)),
    "S-mode": (0b0_01_00, ProgramContext(prv=1, virtual=False)),
    "VU-mode": (0b1_00_00, ProgramContext(prv=0, virtual=True)),
    "VS-mode": (0b1_01_00, ProgramContext(prv=1, virtual=True)),
    "scontext": (738 << 5 | 0b0_01_10, ProgramContext(prv=1, virtual=False, scontext=738)),
    "hcontext": (9 << 5 | 0b1_01_11, ProgramContext(prv=1, virtual=True, hcontext=9)),
}


@pytest.mark.parametrize(("process", "context"), PROCESSES.values(), ids=PROCESSES)
def test_section_7_1_ownership_examples(process: int, context: ProgramContext) -> None:
    history = decoded(IMAGE, started(), message("Ownership", process=process), stopped(2))
    assert list(history.pcs()) == [0x100, 0x102]
    assert history.context_at(0) == history.context_at(1) == context
    assert [(e.position, e.text) for e in of_kind(history, EventKind.CONTEXT)] == [(0, context_text(context))]


def test_section_7_1_two_consecutive_messages() -> None:
    """hcontext first, scontext second; FORMAT 0 then changes the privilege mode and leaves both as they are."""
    jump = message("IndirectBranchHist", b_type=3, icnt=2, uaddr=(0x100 ^ 0x200) >> 1, hist=1)
    owners = [message("Ownership", process=value) for value in (5 << 5 | 0b1_01_11, 77 << 5 | 0b1_01_10)]
    handler = message("Ownership", process=0b0_11_00)
    history = decoded(IMAGE, started(), *owners, jump, handler, stopped(1))
    guest = ProgramContext(prv=1, virtual=True, scontext=77, hcontext=5)
    assert history.context_at(0) == history.context_at(1) == guest
    assert history.context_at(2) == guest._replace(prv=3, virtual=False)


@pytest.mark.parametrize(
    ("process", "what"),
    [
        (0b1_01_01 | 7 << 5, "FORMAT 1"),
        (0b0_10_00, "V 0, PRV 2"), (0b1_10_10 | 7 << 5, "V 1, PRV 2"), (0b1_11_00, "V 1, PRV 3"),
    ],
)  # fmt: skip
def test_section_7_1_reserved_encodings(process: int, what: str) -> None:
    """ "All unused encodings are reserved": not a change of context, and said; the flow goes on."""
    history = decoded(IMAGE, started(), message("Ownership", process=process), stopped(2))
    assert list(history.pcs()) == [0x100, 0x102]
    assert [event.text for event in of_kind(history, EventKind.NOTE)] == [f"Ownership with the reserved {what} ignored"]
    assert history.context_at(0) == ProgramContext()
    assert history.gaps == 0


def test_section_7_1_reported_on_a_change_and_after_every_synchronizing_message() -> None:
    """ "Upon the retirement of an instruction that writes" it, after a trap, "following any synchronizing message"."""
    recorder = Recorder(context=True)
    recorder.encoder.context(ProgramContext(prv=1, virtual=False, scontext=738))
    recorder.retire(Block(0x100, b"\1\1"))
    recorder.encoder.context(ProgramContext(prv=1, virtual=False, scontext=799))
    recorder.retire(Block(0x104, b"\1"))
    recorder.encoder.mark(Sync.EXTERNAL_TRIGGER)
    recorder.retire(Block(0x106, b"\1"), IngressTrap(0x108, False, 8, 0, 0x200))
    recorder.encoder.context(ProgramContext(prv=3, virtual=False, scontext=799))
    recorder.retire(Block(0x200, b"\1"))
    recorder.encoder.stop(0, 0x202)
    names = [str(fields["name"]) for fields in recorder.messages()]
    processes = [int(fields["process"]) for fields in recorder.messages() if fields["name"] == "Ownership"]
    after = [names[i + 1] for i, name in enumerate(names) if name.endswith("Sync")]
    assert set(after) == {"Ownership"}
    assert processes[0] == 738 << 5 | 0b0_01_10
    assert 799 << 5 | 0b0_01_10 in processes
    assert processes[-1] in (0b0_11_00, 799 << 5 | 0b0_11_10)  # V and PRV alone, or with scontext
    history = decoded(IMAGE, *recorder.raw)
    assert list(history.pcs()) == [0x100, 0x102, 0x104, 0x106, 0x200]
    assert [history.context_at(i).prv for i in range(5)] == [1, 1, 1, 1, 3]
    assert history.context_at(4).scontext == 799


def test_section_7_4_error_is_followed_by_a_synchronizing_message() -> None:
    """ECODE is there even when 0. What the encoder lost is a gap; decoding resumes at the restart."""
    recorder = Recorder()
    recorder.retire(Block(0x100, b"\1\1"))
    recorder.encoder.error(0, 0)
    recorder.retire(Block(0x200, b"\1"))
    recorder.encoder.stop(0, 0x202)
    assert recorder.raw[1] == message("Error", etype=0, ecode=0) == bytes.fromhex("20 03")
    assert recorder.messages()[2]["sync"] == Sync.RESTART_FROM_FIFO_OVERRUN
    history = decoded(IMAGE, started(), message("ResourceFull", rcode=0, rdata=2), *recorder.raw[1:])
    assert list(history.pcs()) == [0x100, 0x102, -1, 0x200]
    assert history.gap_at(2).kind is EventKind.OVERFLOW


def test_section_7_4_error_as_the_last_message() -> None:
    """The note's sequence: the message of the stop is lost and tracing never restarts."""
    history = decoded(IMAGE, started(), message("ResourceFull", rcode=0, rdata=2), message("Error", etype=0, ecode=4))
    assert list(history.pcs(0, 2)) == [0x100, 0x102]
    (overflow,) = of_kind(history, EventKind.OVERFLOW)
    assert (overflow.last_pc, overflow.next_pc) == (0x102, None)


@pytest.mark.parametrize(("etype", "known"), [(0, True), (3, False), (9, False)])
def test_section_7_4_error_types(etype: int, known: bool) -> None:
    history = decoded(IMAGE, started(), message("Error", etype=etype, ecode=0x44), started(0x200), stopped(1))
    assert list(history.pcs()) == [0x200]
    (event,) = of_kind(history, EventKind.OVERFLOW, EventKind.LOSS)
    assert (event.kind is EventKind.OVERFLOW) == known
    assert known or str(etype) in event.text
    assert "0x44" in event.text


def test_section_7_8_i_cnt_and_hist_full_at_once() -> None:
    """ "It is mandatory to emit two successive ResourceFull messages"; in 1.0 their order is free."""
    code = image_of((0x100, [asm.c_beqz(2)] * 8))
    pcs = list(range(0x100, 0x10C, 2))
    both = [message("ResourceFull", rcode=0, rdata=4), message("ResourceFull", rcode=1, rdata=0b10000)]
    for order in (both, both[::-1]):
        assert list(decoded(code, started(), *order, stopped(2, 0b100)).pcs()) == pcs


def test_section_7_8_any_number_of_history_bits() -> None:
    """ "Any quantity of history bits from a minimum of 2 bits up to the maximum"."""
    code = image_of((0x100, [asm.c_beqz(2)] * 40))
    pieces = [message("ResourceFull", rcode=1, rdata=1 << bits) for bits in (1, 31, 5)]
    history = decoded(code, started(), *pieces, stopped(40, 0b1000))
    assert list(history.pcs()) == list(range(0x100, 0x150, 2))


@pytest.mark.parametrize("rcode", [3, 7, 8, 15])
def test_section_7_8_reserved_and_vendor_rcodes(rcode: int) -> None:
    """Nobody knows which resource it was: a loss, until the next synchronizing message."""
    history = decoded(IMAGE, started(), message("ResourceFull", rcode=rcode, rdata=4), started(0x200), stopped(1))
    assert list(history.pcs()) == [0x200]
    (loss,) = of_kind(history, EventKind.LOSS)
    assert f"RCODE {rcode}" in loss.text


def test_section_7_11_repeat_branch() -> None:
    """ "Repeat handling of previous branch message B-CNT times", in BTM and for an indirect branch with history."""
    loop = image_of((0x100, [asm.C_NOP, asm.c_beqz(-2), asm.C_NOP]))
    taken, repeated = message("DirectBranch", icnt=2), message("RepeatBranch", bcnt=3)
    history = decoded(loop, started(), taken, repeated, stopped(3, None), btm=True)
    assert list(history.pcs()) == [0x100, 0x102] * 5 + [0x104]
    jumps = image_of((0x100, [asm.c_beqz(4), asm.C_NOP, asm.c_jr(6)]))
    jump = message("IndirectBranchHist", b_type=0, icnt=2, uaddr=0, hist=0b11)
    history = decoded(jumps, started(), jump, repeated, stopped(1, 0b11))
    assert list(history.pcs()) == [0x100, 0x104] * 4 + [0x100]


@pytest.mark.parametrize(
    ("evcode", "text"), [(0, "debug mode"), (1, "low-power"), (4, "trace disabled"), (2, "2"), (5, "5"), (11, "11")]
)
def test_section_7_12_evcode(evcode: int, text: str) -> None:
    history = decoded(IMAGE, started(), stopped(2, evcode=evcode))
    assert list(history.pcs()) == [0x100, 0x102]
    (off,) = of_kind(history, EventKind.TRACE_OFF)
    assert text in off.text


def test_section_7_12_cdf_by_mode() -> None:
    """ "In BTM trace mode CDF must be 0. In HTM trace mode CDF must be 1 (even if HIST is empty, encoded as 0x1)"."""
    for btm, hist in ((True, None), (False, 1)):
        recorder = Recorder(btm=btm)
        recorder.retire(Block(0x100, b"\1\1"))
        recorder.encoder.stop(0, 0x104)
        assert recorder.raw[-1] == stopped(2, hist)
        assert read(recorder.raw[-1])["cdf"] == int(not btm)
        assert list(decoded(IMAGE, *recorder.raw, btm=btm).pcs()) == [0x100, 0x102]
