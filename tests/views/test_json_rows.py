"""JSON rows, by hand."""

import json

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import (
    Accounting,
    ContextChange,
    EventKind,
    Fact,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import CSR, LOAD, MemoryAccess
from rvtrace_gdb.views import json_rows
from rvtrace_gdb.views.instruction_text import InstructionText
from rvtrace_gdb.views.json_rows import HistoryRows
from rvtrace_gdb.views.text_rows import lines, merged_lines
from tests.helpers.event_facts import ENABLED, INTERRUPT, lost, note
from tests.views.test_access_lines import ACCESSES, history, program

HERE = {"addr": "0x80000000", "func": "main", "offset": 0}


class Texts:
    """Instruction text for any address."""

    def disassembler_of(self, context: ProgramContext) -> "Texts":
        return self

    def texts(self, addresses: object, progress: object = None) -> "Texts":
        return self

    def __getitem__(self, pc: int) -> InstructionText:
        return InstructionText(("main", pc & 0xFF) if pc < 0x8000_0010 else None, 'add\t"ü"')

    def raw(self, pc: int) -> str:
        return "0001"


def ran() -> History:
    builder = HistoryBuilder()
    builder.event(EventKind.TRACE_ON, 0, ENABLED, next_pc=0x8000_0000)
    builder.append(Path([(0x8000_0000,)]))
    builder.gap(EventKind.LOSS, 9, lost('it is "lost"'))
    builder.resume(0x8000_0100, 11)
    builder.time(4711)
    builder.context(ProgramContext(prv=3))
    builder.append(Path([(0x8000_0100,)]))
    builder.event(EventKind.TRAP, 12, INTERRUPT, last_pc=0x8000_0100, next_pc=0x8000_0004)
    return builder.finish(Accounting(0, 0, 0, 0))


def test_instructions_and_gaps() -> None:
    shown = lines(ran(), Texts(), 32, 1, 4, HistoryRows(), hart=7)  # type: ignore[arg-type]
    text = {"opcodes": "0001", "inst": 'add\t"ü"'}
    assert [json.loads(row) for row in shown] == [
        {"number": 1, "hart": 7, **HERE, **text},
        {"number": 2, "hart": 7, "gap": 'it is "lost"; trace byte 0x9'},
        {"number": 3, "hart": 7, "addr": "0x80000100", **text},
    ]


def test_several_harts_say_whose_row_it_is() -> None:
    rows = merged_lines({3: ran(), 5: ran()}, Texts(), 64, HistoryRows())  # type: ignore[arg-type]
    assert sorted((json.loads(row)["hart"], json.loads(row)["number"]) for row in rows) == [
        (hart, number) for hart in (3, 5) for number in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("fact", "typed"),
    [
        (Trap(TrapKind.UNKNOWN), {}),
        (Trap.with_cause(2, 0x1234, interrupt=False), {"interrupt": 0, "cause": 2, "value": "0x1234"}),
        (Start(StartReason.OTHER, 9), {"reason": "other"}),
        (Stop(StopReason.LOW_POWER, 1), {"reason": "low-power"}),
        (ContextChange(ProgramContext(0, scontext=7), ProgramContext(3, scontext=8)), {"changed": ["prv", "scontext"]}),
        (note("x"), {"reason": "cut-off"}),
    ],
)
def test_facts_have_names(fact: Fact, typed: dict[str, object]) -> None:
    """They are beside the words, so that nobody need take those apart."""
    builder = HistoryBuilder()
    builder.event(EventKind.NOTE, 0, fact)
    [row] = map(json.loads, json_rows.events({0: builder.finish(Accounting(0, 0, 0, 0))}, program()))
    plain = {"number", "hart", "position", "kind", "what", "text", "trace-byte"}
    assert {name: value for name, value in row.items() if name not in plain} == typed


def test_events() -> None:
    on, loss, trap = map(json.loads, json_rows.events({2: ran()}, program()))
    assert on == {
        "number": 1, "hart": 2, "position": 1, "kind": "trace-on", **HERE, "text": "trace enabled", "to": HERE,
        "trace-byte": 0, "reason": "trace-enabled",
    }  # fmt: skip
    assert (loss["what"], loss["position"], loss["from"]) == ("gap", 2, HERE)
    assert (loss["reason"], loss["trace-byte"], loss["trace-byte-end"]) == ("malformed", 9, 11)
    assert trap == {
        "number": 3, "hart": 2, "position": 4, "kind": "trap", "what": "end", "text": "interrupt", "time": 4711,
        "from": {"addr": "0x80000100", "func": "buffer", "offset": 0},
        "to": {"addr": "0x80000004", "func": "main", "offset": 4}, "prv": 3, "v": 0, "trace-byte": 12,
        "interrupt": 1,
    }  # fmt: skip


def test_accesses() -> None:
    csr = MemoryAccess(CSR, 4, "rs", 0x300, 0xA, 8, position=1)
    failed = MemoryAccess(LOAD, 4, "", 0x8000_0300, position=1, failed=True)
    first, second, far, nowhere, control, refused = map(
        json.loads, json_rows.accesses(1, history(*ACCESSES, csr, failed), program())
    )
    assert first == {
        "number": 1, "hart": 1, "position": 1, **HERE, "kind": "load", "size": 4, "trace-byte": 0,
        "value": "0x0000002a", "memory": {"addr": "0x80000108", "symbol": "buffer", "offset": 8},
        "text": "load 4 bytes at 0x80000108 <buffer+8> = 0x0000002a",
    }  # fmt: skip
    assert second["memory"] == {"addr": "0x80000300"} and second["position"] == 3
    assert far["note"] == "its place is not known: more than one instruction may have made it"
    assert "position" not in far and far["trace-byte"] == 0x1F0
    assert "memory" not in nowhere and nowhere["value"] == "0x00000003"
    assert (control["csr"], control["operation"], control["operand"]) == ("0x300", "rs", "0x00000008")
    assert refused["failed"] is True
    assert len(list(json_rows.accesses(1, history(*ACCESSES), program(), (0x8000_0100, 16)))) == 2


def test_messages() -> None:
    row = json_rows.message("ram0", 3, 16, "Error TCODE=8 ECODE=0x1 RAW=00ff # lost = gone # yes")
    assert json.loads(row) == {
        "number": 3, "sink": "ram0", "trace-byte": 16, "name": "Error", "fields": {"TCODE": 8, "ECODE": "0x1"},
        "bytes": "00ff", "text": "lost = gone # yes",
    }  # fmt: skip
    digits = json.loads(json_rows.message("", 1, 0, "Idle BYTES=2 RAW=1234"))
    assert digits == {"number": 1, "trace-byte": 0, "name": "Idle", "fields": {"BYTES": 2}, "bytes": "1234"}
