"""RISC-V N-Trace 1.0, 8.4 "Synchronizing Messages" with the six cases of 8.4.1, which the document draws as figures."""

import pytest

from rvtrace_gdb.decode.executed.encoder_ingress import Block
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.messages import VENDOR_SYNCS, Evcode, Sync, Tcode
from rvtrace_gdb.decode.ntrace.options import DIALECTS, SyncPlacement
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import Recorder, blocks, decoded, image_of, message, of_kind, started, stopped

# 0x100: c.nop to 0x10E, with one branch at 0x104 to 0x108; 0x1FE: c.nop.
IMAGE = image_of(
    (0x100, [asm.C_NOP, asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.C_NOP, asm.C_NOP, asm.C_NOP, asm.C_NOP]),
    (0x1FE, [asm.C_NOP] * 4),
)

# Table "SYNC Field Values": what a reader must be told, whether the flow simply goes on, whether tracing begins, and
# whether the encoder sends it by itself.
VALUES = {
    0: ("external trigger", True, False, False),
    1: ("reset", False, False, False),
    2: ("periodic", True, False, True),
    3: ("debug", False, True, False),
    4: ("counter", True, False, True),
    5: ("trace enable", False, True, False),
    6: ("trace event", True, False, False),
    7: ("overrun", False, False, False),
    9: ("power-down", False, False, False),
}
RESERVED = (8, 10, 11, 12, 13, 14, 15)


def texts(history: History) -> list[str]:
    return [event.text for event in history.events]


def test_the_reasons_are_those_of_the_document() -> None:
    found = {int(sync): (sync.goes_on, sync.begins, sync.silent) for sync in Sync}
    assert found == {code: row[1:] for code, row in VALUES.items()}
    assert all(VALUES[sync][0] in sync.reason.text for sync in Sync)
    assert {int(sync) for sync in Sync if sync.reason.resumes} == {3}, "the debugger had halted the hart, nothing else"
    assert not {int(sync) for sync in Sync} & set(VENDOR_SYNCS)
    assert len({sync.reason for sync in Sync}) == len(Sync)


def test_no_dialect_uses_a_code_for_something_else() -> None:
    """What `Sync` says of the flow holds in every dialect."""
    codes = {int(sync): sync.reason for sync in Sync}
    for dialect in DIALECTS.values():
        assert {code: reason for code, reason in dialect.starts.items() if codes.get(code, reason) is not reason} == {}


@pytest.mark.parametrize("sync", range(16))
def test_section_8_4_decoding_can_start_at_any_synchronizing_message(sync: int) -> None:
    """Each of the four, for each reason, reserved ones too; the reason is reported."""
    for one in (
        message("ProgTraceSync", sync=sync, icnt=0, faddr=0x82),
        message("DirectBranchSync", sync=sync, icnt=7, faddr=0x82),
        message("IndirectBranchSync", sync=sync, b_type=0, icnt=7, faddr=0x82),
        message("IndirectBranchHistSync", sync=sync, b_type=0, icnt=7, faddr=0x82, hist=0b101),
    ):
        history = decoded(IMAGE, one, stopped(2, 0b11))
        assert list(history.pcs()) == [0x104, 0x108]
        assert history.gaps == 0
        text = texts(history)[0]
        assert (VALUES[sync][0] if sync in VALUES else str(sync)) in text
        assert history.events[0].next_pc == 0x104


@pytest.mark.parametrize("sync", [0, 2, 4, 6])
def test_section_8_4_markers_in_the_flow(sync: int) -> None:
    """ "Messages not related to code being executed": B-TYPE=0 on linear code is not a jump."""
    marker = message("IndirectBranchHistSync", sync=sync, b_type=0, icnt=4, faddr=0x85, hist=0b11)
    history = decoded(IMAGE, started(), marker, stopped(1))
    assert list(history.pcs()) == [0x100, 0x102, 0x104, 0x108, 0x10A]
    assert history.gaps == 0
    if sync in (Sync.EXTERNAL_TRIGGER, Sync.TRACE_EVENT):
        (shown,) = [event for event in of_kind(history, EventKind.SYNC) if event.position]
        assert (shown.position, VALUES[sync][0] in shown.text) == (4, True)


@pytest.mark.parametrize("sync", [1, 9])
def test_section_8_4_the_last_instruction_before_a_reset(sync: int) -> None:
    """ "The HIST and I-CNT may be used to determine the PC of the last instruction retired before reset"."""
    reset = message("IndirectBranchHistSync", sync=sync, b_type=0, icnt=4, faddr=0x100, hist=0b11)
    history = decoded(IMAGE, started(), reset, stopped(1))
    assert [pc for pc in history.pcs() if pc >= 0] == [0x100, 0x102, 0x104, 0x108, 0x200]
    assert any(VALUES[sync][0] in event.text and event.position >= 4 for event in history.events)


@pytest.mark.parametrize("sync", RESERVED)
def test_section_8_4_reserved_codes_are_reported(sync: int) -> None:
    """ "Decoders should report synchronization SYNC field values (including reserved codes)"."""
    one = message("IndirectBranchHistSync", sync=sync, b_type=0, icnt=4, faddr=0x85, hist=0b11)
    history = decoded(IMAGE, started(), one, stopped(1))
    assert [pc for pc in history.pcs() if pc >= 0] == [0x100, 0x102, 0x104, 0x108, 0x10A]
    assert any(str(sync) in text for text in texts(history))


def test_section_8_4_pending_state_is_sent_before_the_reset() -> None:
    """ "Before resetting the encoder state, the trace up to the current location must be emitted": HREPEAT here."""
    loop = Block(0x100, b"\1\1\1", taken_target=0x100, itype=IType.NOT_TAKEN)
    recorder = Recorder(repeated_history=True, hist_limit=3)
    recorder.retire(*[loop] * 7)
    recorder.encoder.mark(Sync.TRACE_EVENT)
    recorder.retire(loop)
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x106)
    sent = recorder.messages()
    sync = next(i for i, fields in enumerate(sent) if fields.get("sync") == Sync.TRACE_EVENT)
    before = [fields for fields in sent[:sync] if fields["name"] == "ResourceFull"]
    assert sum(2 * int(fields.get("hrepeat", 1)) for fields in before) == 6
    assert sent[sync] == {
        "name": "IndirectBranchHistSync", "sync": 6, "b_type": 0, "icnt": 21, "faddr": 0x80, "hist": 0b11,
    }  # fmt: skip


# The six cases. EN: trace enabled, ED: debug mode entered, LD: left, D: trace disabled, T: trigger, P: periodic.
EN = {"ProgTraceSync": started(sync=5)}
EN_INSTEAD = {
    "DirectBranchSync": message("DirectBranchSync", sync=5, icnt=0, faddr=0x80),
    "IndirectBranchSync": message("IndirectBranchSync", sync=5, b_type=0, icnt=0, faddr=0x80),
    "IndirectBranchHistSync": message("IndirectBranchHistSync", sync=5, b_type=0, icnt=0, faddr=0x80, hist=1),
}
LD, ED, D = started(0x104, sync=3), stopped(2, evcode=0), stopped(2, 0b11, evcode=4)
ON, OFF = EventKind.TRACE_ON, EventKind.TRACE_OFF


@pytest.mark.parametrize("first", [*EN.values(), *EN_INSTEAD.values()], ids=[*EN, *EN_INSTEAD])
def test_section_8_4_1_case_1_enable_and_disable_debug_while_tracing(first: bytes) -> None:
    """EN SYNC=5 (superscript 1: other messages may stand there), ED EVCODE=0, LD SYNC=3, D EVCODE=4."""
    history = decoded(IMAGE, first, ED, LD, D)
    assert list(history.pcs()) == [0x100, 0x102, 0x104, 0x108]
    assert history.gaps == 0
    assert [(event.kind, event.position) for event in history.events] == [(ON, 0), (OFF, 2), (ON, 2), (OFF, 4)]
    assert "debug" in texts(history)[1]
    assert "disabled" in texts(history)[3]


def test_section_8_4_1_case_1_as_the_encoder_sends_it() -> None:
    recorder = Recorder(Sync.TRACE_ENABLE)
    recorder.retire(Block(0x100, b"\1\1"))
    recorder.encoder.stop(Evcode.DEBUG_MODE, 0x104)
    recorder.encoder.start(Sync.EXIT_FROM_DEBUG)
    recorder.retire(Block(0x104, b"\1", taken_target=0x108, itype=IType.NOT_TAKEN), Block(0x108, b"\1"))
    recorder.encoder.stop(Evcode.TRACE_DISABLED, 0x10A)
    assert recorder.raw == [EN["ProgTraceSync"], ED, LD, D]


@pytest.mark.parametrize("optional", [True, False])
def test_section_8_4_1_case_2_enable_trace_while_in_debug(optional: bool) -> None:
    """ED EVCODE=0 may be omitted (or be the very first message, I-CNT=0), LD SYNC=3, D EVCODE=4."""
    history = decoded(IMAGE, stopped(0) if optional else b"", LD, D)
    assert list(history.pcs()) == [0x104, 0x108]
    assert history.gaps == 0
    assert [event.kind for event in history.events] == [OFF] * optional + [ON, OFF]


@pytest.mark.parametrize("optional", [True, False])
def test_section_8_4_1_case_3_disable_trace_while_in_debug(optional: bool) -> None:
    """EN SYNC=5, ED EVCODE=0; D EVCODE=4 may be omitted and adds nothing."""
    history = decoded(IMAGE, EN["ProgTraceSync"], ED, stopped(0, evcode=4) if optional else b"")
    assert list(history.pcs()) == [0x100, 0x102]
    assert history.gaps == 0
    assert [event.kind for event in history.events] == [ON, OFF] + [OFF] * optional
    assert history.accounting.skipped == 0


TRIGGERS = {
    "IndirectBranchHistSync": message("IndirectBranchHistSync", sync=6, b_type=0, icnt=2, faddr=0x101, hist=1),
    "IndirectBranchSync": message("IndirectBranchSync", sync=6, b_type=0, icnt=2, faddr=0x101),
    "ProgTraceSync": message("ProgTraceSync", sync=6, icnt=2, faddr=0x101),
}


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
def test_section_8_4_1_case_4_sync_trigger_event(trigger: bytes) -> None:
    """T SYNC=6 in any of three messages: a mark in the flow."""
    history = decoded(IMAGE, EN["ProgTraceSync"], ED, started(0x1FE, sync=3), trigger, stopped(1, evcode=4))
    assert list(history.pcs()) == [0x100, 0x102, -1, 0x1FE, 0x200, 0x202]  # debug mode was left at another place
    (mark,) = of_kind(history, EventKind.SYNC)
    assert (mark.position, mark.next_pc) == (5, 0x202)
    assert "trace event" in mark.text


def test_section_8_4_1_case_4_prog_trace_sync_without_the_history() -> None:
    """Superscript 2: with ProgTraceSync "HIST information will not be reported". That is told, and decoding goes on."""
    trigger = message("ProgTraceSync", sync=6, icnt=4, faddr=0x85)
    history = decoded(IMAGE, started(sync=5), trigger, stopped(1, evcode=4))
    assert list(history.pcs())[:2] == [0x100, 0x102]
    assert history.pc(len(history) - 1) == 0x10A
    assert history.gaps == 1
    assert any("trace event" in text for text in texts(history))


@pytest.mark.parametrize("messages", [[], [stopped(0)], [stopped(0, evcode=4)], [stopped(0), stopped(0, evcode=4)]])
def test_section_8_4_1_case_5_enable_and_disable_while_in_debug(messages: list[bytes]) -> None:
    """ED and D, both optional: nothing ran, nothing is lost."""
    history = decoded(IMAGE, *messages)
    assert len(history) == history.gaps == 0
    assert [event.kind for event in history.events] == [OFF] * len(messages)
    assert history.accounting.skipped == 0


PERIODIC = {
    "IndirectBranchHistSync": message("IndirectBranchHistSync", sync=2, b_type=0, icnt=3, faddr=0x84, hist=0b11),
    "IndirectBranchSync": message("IndirectBranchSync", sync=2, b_type=0, icnt=2, faddr=0x82),
    "DirectBranchSync": message("DirectBranchSync", sync=2, icnt=3, faddr=0x84),
}


@pytest.mark.parametrize("name", PERIODIC)
def test_section_8_4_1_case_6_periodic_synchronization(name: str) -> None:
    """At the event itself, or delayed to the next branch message, as its ...Sync counterpart (superscript 3).

    DirectBranchSync belongs to BTM, where a taken branch has a message.
    """
    btm = name == "DirectBranchSync"
    rest = stopped(2, None if btm else (0b11 if name == "IndirectBranchSync" else 1), evcode=4)
    history = decoded(IMAGE, EN["ProgTraceSync"], PERIODIC[name], rest, btm=btm)
    tail = [0x108] if name == "IndirectBranchSync" else [0x108, 0x10A]
    assert list(history.pcs()) == [0x100, 0x102, 0x104, *tail]
    assert history.gaps == 0
    assert [event.kind for event in history.events if event.kind is not EventKind.SYNC] == [ON, OFF]
    alone = decoded(IMAGE, PERIODIC[name], rest, btm=btm)
    assert list(alone.pcs()) == ([0x104, 0x108] if name == "IndirectBranchSync" else tail)


LINEAR = Block(0x1FE, b"\1\1")


@pytest.mark.parametrize("name", TRIGGERS)
def test_section_8_4_1_case_4_as_the_encoder_sends_it(name: str) -> None:
    """Each of the three messages, on code without a branch."""
    form = {
        "IndirectBranchHistSync": Tcode.INDIRECT_BRANCH_HIST_SYNC,
        "IndirectBranchSync": Tcode.INDIRECT_BRANCH_SYNC,
        "ProgTraceSync": Tcode.PROG_TRACE_SYNC,
    }[name]
    recorder = Recorder(linear_sync=form)
    recorder.retire(LINEAR)
    recorder.encoder.mark(Sync.TRACE_EVENT)
    recorder.retire(Block(0x202, b"\1"))
    recorder.encoder.stop(Evcode.TRACE_DISABLED, 0x204)
    assert recorder.raw == [started(0x1FE), TRIGGERS[name], stopped(1, evcode=4)]


@pytest.mark.parametrize("delayed", [False, True])
@pytest.mark.parametrize("btm", [False, True])
def test_section_8_4_1_case_6_as_the_encoder_sends_it(btm: bool, delayed: bool) -> None:
    """At once, or with the next branch message "upgraded to its ...Sync counterpart": P falls between the first two."""
    code = image_of((0x100, [asm.C_NOP] * 3 + [asm.c_beqz(4), asm.C_NOP, asm.c_jr(6)]), (0x200, [asm.C_NOP]))
    placement = SyncPlacement.NEXT_BRANCH if delayed else SyncPlacement.SEPARATE
    recorder = Recorder(Sync.TRACE_ENABLE, btm=btm, sync_placement=placement)
    recorder.retire(Block(0x100, b"\1"))
    recorder.encoder.mark(Sync.PERIODIC)
    recorder.retire(*blocks(code, [0x102, 0x104, 0x106, 0x10A, 0x200]))
    recorder.encoder.stop(Evcode.TRACE_DISABLED, 0x202)
    names = [fields["name"] for fields in recorder.messages()]
    hist = ["IndirectBranchHistSync", "IndirectBranchHist"]
    at_once = ["ProgTraceSync", "DirectBranch", "IndirectBranch"] if btm else hist
    upgraded = ["DirectBranchSync", "IndirectBranch"] if btm else ["IndirectBranchHistSync"]
    assert names == ["ProgTraceSync", *(upgraded if delayed else at_once), "ProgTraceCorrelation"]
    history = decoded(code, *recorder.raw, btm=btm)
    assert list(history.pcs()) == [0x100, 0x102, 0x104, 0x106, 0x10A, 0x200]
    assert history.gaps == 0
