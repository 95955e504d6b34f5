"""Who wrote a register or memory last: against Spike's logs of the same programs, and where the trace has no answer."""

import random
from dataclasses import replace
from itertools import dropwhile
from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import ContextImages
from rvtrace_gdb.decode.program.instructions import ATOMIC, CAS_FAILURE, LOAD, STORE, Access
from rvtrace_gdb.decode.tandem.decoder import Tandem, decode
from rvtrace_gdb.decode.tandem.protocol import FullRegister, StateInitialization
from rvtrace_gdb.session.formats.raw_import import tandem_capture
from rvtrace_gdb.session.lists import SelectedHistory
from rvtrace_gdb.session.queries.who_wrote import INSTRUCTION, OUTSIDE, PC, RESET, TRAP, Moment, Written
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError, silent
from tests.decode.tandem.corpus import DATA, GOLDEN, RV64, decoded, golden_steps, parameters_of, program_of, trace_bytes
from tests.views.test_access_lines import history, program

PARTS = {"piccolo_rv32mi-p-breakpoint", "piccolo_rv32ua-p-lrsc", "flute_rv64ua-p-lrsc"}
"""They and Spike do not run the same to the end: see test_tandem_corpus."""
OF_TRAPS = {0x100, 0x141, 0x142, 0x143, 0x300, 0x341, 0x342, 0x343}
SHARING = {0x001, 0x002, 0x003, 0x104, 0x144, 0x304, 0x344, 0x309}
"""CSRs that have bits in common with others, and one that Spike lists beside them."""
ABSENT = {0x310, 0x7A5}
BOOT = {5, 10, 11}
QUESTIONS = 40


class Wrote(NamedTuple):
    """What a step of Spike's wrote, and at which position of the history."""

    position: int
    values: dict[tuple[str, int], int]


def spikes(name: str, tandem: Tandem) -> list[Wrote]:
    """Every instruction that retired from the program's entry on, of the log alone but for where that is."""
    entry = program_of(name).entry
    position = next(i for i, pc in enumerate(tandem.history.pcs()) if pc == entry)
    found = []
    for step in dropwhile(lambda step: step.pc != entry, golden_steps(name)):
        if step.cause is None:
            kinds = (("x", step.x), ("f", step.f), ("csr", step.csrs))
            values = {(kind, number): value for kind, written in kinds for number, value in written.items()}
            data = ((address + at, byte) for address, bytes_ in step.stores for at, byte in enumerate(bytes_))
            found.append(Wrote(position, values | {("memory", address): byte for address, byte in data}))
            position += 1
    return found[: len(tandem.history) - found[0].position]


def writer_of(wrote: list[Wrote], place: tuple[str, int], size: int, position: int) -> Wrote | None:
    """The model: go back, step by step."""
    kind, first = place
    wanted = {(kind, first + i) for i in range(size)}
    return next((it for it in reversed(wrote) if it.position < position and wanted & it.values.keys()), None)


def asked(moment: Moment, kind: str, number: int, size: int) -> Written | None:
    if kind == "memory":
        return moment.memory(number, size)
    return moment.register({"x": 0x1000, "f": 0x1020, "csr": 0}[kind] + number)


@pytest.mark.parametrize("name", [name for name in GOLDEN if name not in PARTS and "-v-" not in name])
def test_the_last_writer_is_the_one_in_spikes_log(name: str) -> None:
    tandem = decoded(name)
    wrote = spikes(name, tandem)
    left_out = OF_TRAPS | SHARING | ABSENT
    places = sorted({it for step in wrote for it in step.values if it[0] != "csr" or it[1] not in left_out})
    choose = random.Random(name)
    for _ in range(QUESTIONS):
        kind, number = choose.choice(places)
        size = choose.choice((1, 2, 4, 8)) if kind == "memory" else 1
        position = choose.randrange(wrote[0].position, len(tandem.history) + 1)
        found = asked(Moment(tandem, position), kind, number, size)
        expected = writer_of(wrote, (kind, number), size, position)
        if expected is None:
            booted = found is not None and found.position < wrote[0].position
            assert found is None or (booted and kind == "x" and number in BOOT), (kind, number, position)
            continue
        assert found is not None and found.kind == INSTRUCTION, (kind, number, position)
        assert (found.position, found.doubts) == (expected.position, ()), (kind, number, position)
        if kind == "memory":
            said = dict(expected.values)
            assert found.store is not None and found.window is not None
            begin, _, after = found.window
            assert all(after[at - begin] == said["memory", at] for _, at in said if 0 <= at - begin < len(after))
        else:
            assert found.new == expected.values[kind, number]
            before = writer_of(wrote, (kind, number), 1, expected.position)
            assert before is None or found.old == before.values[kind, number]


def test_addresses_are_those_of_the_mode_there() -> None:
    """Each store of a program with page tables, asked for at the next instruction, by the address in Spike's log."""
    tandem = decoded("flute_rv64ui-v-add")
    trapped = {tandem.position_of(trap.group) for trap in tandem.index.traps}
    count = 0
    for step in spikes("flute_rv64ui-v-add", tandem):
        stored_to = [address for (kind, address) in step.values if kind == "memory"]
        if stored_to and step.position + 1 not in trapped:
            found = Moment(tandem, step.position + 1).memory(min(stored_to), len(stored_to))
            assert found is not None and found.position == step.position and found.store is not None
            assert found.store.address == min(stored_to)
            count += 1
    assert count > 500


def call(session: Session, **params: Any) -> Any:
    return Methods(session).call("who_wrote", {"name": "it", **params}, silent)


def opened(name: str, *, wrapped: bool = False) -> Session:
    session = Session()
    image = program_of(name)
    capture = tandem_capture(name, trace_bytes(name), parameters_of(name), image, wrapped=wrapped)
    session.open_capture(capture, name, image.path or None)
    return session


@pytest.mark.parametrize(("register", "kind", "number"), [("a0", "x", 10), ("ra", "x", 1), ("mscratch", "csr", 0x340)])
def test_going_back_from_writer_to_writer_passes_all_of_them(register: str, kind: str, number: int) -> None:
    name = "flute_rv64mi-p-csr"
    session, expected = opened(name), spikes(name, decoded(name))
    found, below = [], None
    while (answer := call(session, register=register, below=below))["writer"] is not None:
        found.append(answer["writer"]["number"])
        below = answer["below"]
    first = expected[0].position
    assert [n for n in found if n > first] == [
        it.position + 1 for it in reversed(expected) if (kind, number) in it.values
    ]
    assert answer["none"][0] == "Nothing wrote it in this trace before that."


def test_a_trap_writes_what_it_writes_and_takes_no_number() -> None:
    name = "flute_rv64mi-p-scall"
    tandem, session = decoded(name), opened(name)
    trap = tandem.index.traps[-1]
    answer = call(session, register="mcause")["writer"]
    assert (answer["kind"], answer["group"], answer["new"]) == (TRAP, trap.group + 1, trap.cause)
    assert tandem.history.pc(answer["number"] - 1) == trap.handler == answer["row"][1]
    assert answer["happened"][0][0] == "trap" and answer["happened"][0][2][0] == trap.epc


def test_what_writes_a_register_that_shares_bits_is_named() -> None:
    tandem = decoded("flute_rv64si-p-scall")
    told = [Moment(tandem, position).register(0x100) for position in range(len(tandem.history) + 1)]
    others = [it for it in told if it is not None and it.told is not None]
    assert others and {it.told for it in others} == {0x300}
    own = next(it for it in told if it is not None and it.told is None)
    assert own.group is not None and 0x100 in tandem.changed(own.group)


def test_pc_is_written_by_the_instruction_before() -> None:
    tandem = decoded("piccolo_rv32-hello")
    found = Moment(tandem, 100).register(PC)
    assert found is not None and found.position == 99
    assert (found.old, found.new) == (tandem.history.pc(99), tandem.history.pc(100))


def test_the_reset_sets_the_privilege_mode() -> None:
    found = Moment(decoded("piccolo_rv32-hello"), 5).register(0x1_0000)
    assert found is not None and (found.kind, found.new) == (RESET, 3)


def test_what_a_debugger_writes_is_from_outside() -> None:
    name = "piccolo_rv32-hello"
    whole, at = trace_bytes(name), decoded(name).trace.offsets[500]
    written = bytes.fromhex("01 0b 04 0a 10 78 56 34 12 02")  # a state initialization: a0
    tandem = decode(whole[:at] + written + whole[at:], program_of(name), parameters_of(name))
    group = tandem.trace.group(500)
    assert [type(it) for it in group.elements] == [StateInitialization, FullRegister]
    found = Moment(tandem, tandem.position_of(500)).register(0x100A)
    assert found is not None and (found.kind, found.group, found.new) == (OUTSIDE, 500, 0x12345678)


def test_after_a_loss_the_last_writer_need_not_be_the_last() -> None:
    name = "piccolo_rv32-hello"
    whole, offsets = trace_bytes(name), decoded(name).trace.offsets
    tandem = decode(whole[: offsets[1000]] + whole[offsets[1010] :], program_of(name), parameters_of(name))
    (gap,) = tandem.history.gap_positions
    before, behind = (Moment(tandem, at).register(0x1002) for at in (gap - 1, gap + 1))
    assert before is not None and behind is not None and before.position == behind.position
    assert before.doubts == () and len(behind.doubts) == 1 and "is missing since" in behind.doubts[0]
    pc = Moment(tandem, gap + 1).register(PC)
    assert pc is not None and pc.position == gap - 1 and "is missing since" in pc.doubts[0]
    (stored_before,) = [store for _, store in tandem.stored(989)]
    found = Moment(tandem, gap + 1).memory(stored_before.address, 1)
    assert found is not None and found.group == 989 and any("is missing since" in doubt for doubt in found.doubts)


def test_a_reset_takes_what_was_written() -> None:
    name = "flute_rv64ui-p-add"
    tandem = decode(2 * trace_bytes(name), program_of(name), parameters_of(name))
    reset = tandem.index.resets[-1]
    assert reset > 0
    found = Moment(tandem, tandem.position_of(reset)).register(0x1000 + 14)
    assert found is not None and found.group is not None and found.group < reset
    assert found.doubts == (
        f"The hart was reset since, by group {reset + 1}: its value from then on is not known.",
    )


def test_nobody_wrote_it() -> None:
    session = opened("piccolo_rv32-hello")
    assert call(session, register="mepc")["none"] == ["Nothing wrote it in this trace before now."]
    assert call(session, register="zero")["none"] == ["$zero is always 0: nothing can write it."]


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
        model = Moment(decoded(name), len(decoded(name).history)).register(0x1003)
        assert model is not None and (one, answer["writer"]["number"]) == (hart, model.position + 1)


def accesses() -> History:
    """Of three instructions."""
    return history(
        Access(STORE, 4, "", 0x100, 0x11223344, position=0),
        Access(LOAD, 4, "", 0x100, 0x11223344, position=1),
        Access(STORE, 1, "", 0x102, 0xAA, position=1),
        Access(STORE, 4, "", None, 5, position=2),
        Access(ATOMIC, 4, CAS_FAILURE, 0x100, 7, position=2),
    )


def looking_at(found: History, monkeypatch: pytest.MonkeyPatch) -> Session:
    session, it = Session(), SelectedHistory(found, ContextImages(program()), 0, [])
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
    session = looking_at(history(Access(STORE, 4, "", 0x100, 1, after=1)), monkeypatch)
    writer = call(session, where=[0x100, 1])["writer"]
    assert writer["number"] == 2 and writer["doubts"] == (
        "The exact instruction is not known: it is this one or a later one.",
    )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"register": "a0"}, r"what was written to registers: a tandem trace has it"),
        ({"where": [0x100, 1]}, r"a tandem trace has them .*; no data trace: .*-data"),
    ],
)
def test_other_traces_say_which_have_it(asked: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RvtraceError, match=message):
        call(looking_at(history(), monkeypatch), **asked)
