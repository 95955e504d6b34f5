"""The method `who_wrote`, for tandem traces and data traces, and where a trace has no answer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.instructions import ATOMIC, CAS_FAILURE, LOAD, STORE, MemoryAccess
from rvtrace_gdb.session.formats.imports.raw_import import tandem_capture
from rvtrace_gdb.session.past.choice import OFF
from rvtrace_gdb.session.past.past import INSTRUCTION, TRAP
from rvtrace_gdb.session.past.tandem.writers import LastWriters
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError, silent
from tests.decode.tandem.corpus import DATA, RV64, decoded, parameters_of, program_of, trace_bytes
from tests.views.test_access_lines import history, program


def call(session: Session, **params: Any) -> Any:
    return Methods(session).call("who_wrote", {"name": "it", **params}, silent)


def opened(name: str, *, wrapped: bool = False) -> Session:
    session = Session()
    image = program_of(name)
    capture = tandem_capture(name, trace_bytes(name), parameters_of(name), image, wrapped=wrapped)
    session.open_capture(capture, name, image.path or None)
    return session


def test_a_trap_writes_what_it_writes_and_takes_no_number() -> None:
    name = "flute_rv64mi-p-scall"
    tandem, session = decoded(name), opened(name)
    trap = tandem.index.traps[-1]
    answer = call(session, register="mcause")["writer"]
    assert (answer["kind"], answer["group"], answer["new"]) == (TRAP, trap.group + 1, trap.cause)
    assert tandem.history.pc(answer["number"] - 1) == trap.handler == answer["row"][1]
    assert answer["happened"][0][0] == "trap" and answer["happened"][0][2][0] == trap.epc


def test_nobody_wrote_it_in_what_a_ring_has_left() -> None:
    session = opened("piccolo_rv32-hello", wrapped=True)
    says = "Nothing wrote it in this trace before now. Older trace was overwritten: it may have happened earlier."
    assert call(session, register="mepc")["none"] == [says]
    assert call(session, register="zero")["none"] == ["$zero is always 0: nothing can write it."]
    assert call(session, register="mcycle")["none"][1] == "It counts by itself."
    code = program_of("piccolo_rv32-hello").entry
    in_program = f"0x{(DATA / 'riscv-tests' / 'rv32-hello').read_bytes()[0x1000:0x1004][::-1].hex()}"
    assert in_program in " ".join(call(session, where=[code, 4])["none"])


def test_refusals_are_one_line() -> None:
    session = opened("piccolo_rv32-hello")
    with pytest.raises(RvtraceError, match=r"^there is no register \$v3, or a trace does not have it$"):
        call(session, register="v3")
    with pytest.raises(RvtraceError, match="register is needed, or where"):
        call(session)


def test_the_selected_threads_hart_is_asked_about() -> None:
    """Two harts, each with a trace of its own."""
    names = ("flute_rv64ui-p-add", "flute_rv64ui-p-lb")
    made = [tandem_capture(name, trace_bytes(name), RV64, program_of(names[0]), hart=i) for i, name in enumerate(names)]
    session = Session()
    session.open_capture(replace(made[0], tandem=tuple(hart for one in made for hart in one.tandem)), "x", None)
    for hart, name in enumerate(names):
        (one,) = {call(session, register="gp", context={key: hart})["hart"] for key in ("hart", "thread_hart")}
        answer = call(session, register="gp", context={"thread_hart": hart})
        model = LastWriters(decoded(name), len(decoded(name).history)).register(0x1003)
        assert model is not None and (one, answer["writer"]["number"]) == (hart, model.position + 1)


def accesses() -> History:
    """Of three instructions."""
    return history(
        MemoryAccess(STORE, 4, "", 0x100, 0x11223344, position=0),
        MemoryAccess(LOAD, 4, "", 0x100, 0x11223344, position=1),
        MemoryAccess(STORE, 1, "", 0x102, 0xAA, position=1),
        MemoryAccess(STORE, 4, "", None, 5, position=2),
        MemoryAccess(ATOMIC, 4, CAS_FAILURE, 0x100, 7, position=2),
    )


def looking_at(found: History, monkeypatch: pytest.MonkeyPatch) -> Session:
    session, it = Session(), SelectedHistory(found, ContextImages(program()), 0, [], values=OFF)
    monkeypatch.setattr(session, "selected", lambda context, progress: it)
    return session


def test_a_data_trace_has_the_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    session = looking_at(accesses(), monkeypatch)
    first = call(session, where=[0x100, 4])
    assert (first["writer"]["number"], first["writer"]["new"], first["writer"]["group"]) == (2, 0xAA, None)
    assert first["writer"]["doubts"] == ("The address of 1 store since is not known.",)
    second = call(session, where=[0x100, 4], below=first["below"])
    assert (second["writer"]["number"], second["writer"]["new"]) == (1, 0x11223344)
    assert call(session, where=[0x100, 4], below=second["below"])["writer"] is None
    earlier = call(session, where=[0x102, 2], at=2)["writer"]
    assert (earlier["number"], earlier["new"], earlier["doubts"]) == (1, 0x1122, ())
    nobody = ["Nothing wrote it in this trace before now.", "The address of 1 store in the trace is not known."]
    assert call(session, where=[0x200, 1])["none"] == nobody


def test_a_store_of_which_the_instruction_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    session = looking_at(history(MemoryAccess(STORE, 4, "", 0x100, 1, after=1)), monkeypatch)
    writer = call(session, where=[0x100, 1])["writer"]
    assert writer["number"] == 2 and writer["doubts"] == (
        "The exact instruction is not known: it is this one or a later one.",
    )


def test_other_traces_say_which_have_the_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RvtraceError, match=r"a tandem trace has them .*; no data trace: .*-data"):
        call(looking_at(history(), monkeypatch), where=[0x100, 1])


@pytest.mark.parametrize("made", [(), (MemoryAccess(STORE, 4, "", 0x100, 7, position=2),)])
def test_the_code_says_which_registers_are_written(
    made: Sequence[MemoryAccess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a trace without any values, and of a data trace."""
    image = program()
    image.add_code(0x8000_0000, bytes.fromhex("130511 00 b7450000 2320b500".replace(" ", "")))  # addi a0; lui a1; sw
    found = history(*made)
    session, it = Session(), SelectedHistory(found, ContextImages(image), 0, [], values=OFF)
    monkeypatch.setattr(session, "selected", lambda context, progress: it)
    first, second = (call(session, register=name)["writer"] for name in ("a0", "a1"))
    assert [(it["number"], it["kind"], it["new"], it["doubts"]) for it in (first, second)] == [
        (1, INSTRUCTION, None, ()), (2, INSTRUCTION, None, ()),
    ]  # fmt: skip
    answer = call(session, register="a0", below=call(session, register="a0")["below"])
    assert answer["writer"] is None and answer["none"] == ["Nothing wrote it in this trace before that."]
    assert call(session, register="pc")["writer"]["number"] == 3
    assert call(session, register="mcycle")["none"][1:] == ["It counts by itself."]
