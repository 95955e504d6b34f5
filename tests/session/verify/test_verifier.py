"""The tandem verifier on traces of real cores, with Spike's logs as the model: whole, with losses, in dialects."""

from collections.abc import Callable
from itertools import islice

import pytest

from rvtrace_gdb.decode.tandem.decoder import decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import (
    FLUTE,
    PICCOLO_2018,
    TOOOBA,
    TWO_PC,
    AdditionalState,
    Element,
    Ending,
    FullRegister,
    Group,
    IncrementPc,
    StateId,
    TandemDialect,
    TandemParameters,
)
from rvtrace_gdb.session.verify.masks import Masks, masks_of
from rvtrace_gdb.session.verify.model import PC, DifferenceKind, Divergence, ModelStep
from rvtrace_gdb.session.verify.verifier import Verifier, VerifyOptions
from tests.decode.tandem.corpus import GOLDEN, decoded, program_of
from tests.decode.tandem.groups import MRET, SRET
from tests.session.verify.faults import changed, entry_of, flip
from tests.session.verify.logged_model import Replay

ENDLESS = {"flute_rv64ua-p-lrsc", "piccolo_rv32ua-p-lrsc"}
"""sc never succeeds there, so that Spike's log goes another way for good."""
VIRTUAL = "flute_rv64ui-v-add"
"""Spike's log has virtual addresses alone: a model made of it cannot say what physical memory holds."""
LISTED = {
    "flute_rv64si-p-csr": [(74, "medeleg", 1)],
    "flute_rv64si-p-scall": [(74, "medeleg", 1)],
    VIRTUAL: [(at, "mstatus", 0x600) for at in (113, 1051, 2633, 2771)],
}
"""What docs/tandem.md lists, by trace: group as users see it, CSR, bits."""
NUMBERS = {"medeleg": 0x302, "mstatus": 0x300}


def verified(name: str, *masks: str) -> tuple[Verifier, list[Divergence]]:
    verifier = Verifier(decoded(name), Replay(name), VerifyOptions(masks_of(masks)), program_of(name))
    return verifier, list(verifier.run())


@pytest.mark.parametrize("name", sorted(set(GOLDEN) - ENDLESS - {"piccolo_rv32mi-p-breakpoint"}))
def test_real_traces_have_no_divergence_but_the_listed_ones(name: str) -> None:
    verifier, found = verified(name, *["stores"] * (name == VIRTUAL))
    places = [(one.group + 1, d.place, d.bits) for one in found for d in one.differences]
    assert places == [(at, NUMBERS[csr], bits) for at, csr, bits in LISTED.get(name, [])]
    index, counts = decoded(name).index, verifier.counts
    assert counts.groups == len(decoded(name).trace) and counts.divergences == len(found)
    assert counts.instructions == sum(index.retired)
    assert counts.traps + counts.interrupts == len(index.traps)
    assert counts.executed == counts.instructions + counts.traps + counts.interrupts - 8  # boot ROM and trampoline
    assert counts.uncomparable == 0 and counts.full == 1


def test_masks_take_the_listed_differences_away() -> None:
    verifier, found = verified("flute_rv64si-p-csr", "medeleg:1")
    assert not found and verifier.counts.masked == 1
    assert not verified("flute_rv64si-p-scall", "medeleg")[1]
    assert verified("flute_rv64si-p-csr", "medeleg:0xfffe")[1]


def test_a_model_that_goes_another_way_is_brought_back() -> None:
    """Piccolo has no triggers: a test that uses them skips itself, and Spike does not."""
    _, found = verified("piccolo_rv32mi-p-breakpoint")
    assert [kind for one in found[:3] for kind in (d.kind for d in one.differences)] == [
        DifferenceKind.CSR,
        DifferenceKind.REGISTER,
        DifferenceKind.PC,
    ]
    assert [one.group + 1 for one in found[:3]] == [55, 56, 57]


def test_some_groups_only() -> None:
    """The state before comes from the trace."""
    name = "flute_rv64ui-p-sd"

    class Later(Replay):
        def reset(self) -> None:
            super().reset()
            self._next = start - entry_of(name)

    for start in (300, 400):
        choices = VerifyOptions(Masks(), start=start, stop=start + 150)
        verifier = Verifier(decoded(name), Later(name), choices, program_of(name))
        assert not list(verifier.run()) and verifier.counts.groups == 150
        assert verifier.counts.executed == 150 and verifier.counts.registers > 50


def test_every_so_often_everything_is_compared() -> None:
    verifier = Verifier(decoded("flute_rv64ui-p-lb"), Replay("flute_rv64ui-p-lb"), VerifyOptions(Masks(), every=50))
    assert not list(verifier.run()) and verifier.counts.full == -(-len(decoded("flute_rv64ui-p-lb").trace) // 50)


class Silent(Replay):
    """A model that does not say that it changed a register and a byte of memory."""

    def step(self) -> ModelStep:
        if self.steps == 200:
            self.registers[0x1009] ^= 4
            self.memory[0x8000_2000] = self.memory.get(0x8000_2000, 0) ^ 1
        return super().step()


def test_what_no_step_tells_is_found_when_everything_is_compared() -> None:
    name = "flute_rv64ui-p-sd"
    verifier = Verifier(decoded(name), Silent(name), VerifyOptions(Masks(), every=250, states=True), program_of(name))
    (found,) = verifier.run()
    assert found.group == 249
    assert [(d.kind, d.place, d.bits) for d in found.differences if not d.size] == [(DifferenceKind.LATER, 0x1009, 4)]
    states = {regno: (trace, model) for regno, trace, model in found.registers}
    assert states[0x1009][1] == (states[0x1009][0] or 0) ^ 4 and states[PC][0] == states[PC][1]


def test_a_loss_is_no_divergence_and_what_follows_is_compared() -> None:
    name = "flute_rv64ui-p-add"
    groups = list(decoded(name).trace.groups())
    parameters = decoded(name).trace.parameters
    data = encode(groups[:200], parameters) + b"\xff" * 40 + encode(groups[205:], parameters)
    verifier = Verifier(
        decode(data, program_of(name), parameters), Replay(name), VerifyOptions(Masks()), program_of(name)
    )
    assert not list(verifier.run())
    assert (verifier.counts.losses, verifier.counts.lost_bytes) == (1, 40)
    groups[450] = groups[450]._replace(
        elements=tuple(
            e._replace(value=e.value ^ 1) if isinstance(e, FullRegister) else e for e in groups[450].elements
        )
    )
    assert any(isinstance(element, FullRegister) for element in groups[450].elements)
    data = encode(groups[:200], parameters) + b"\xff" * 40 + encode(groups[205:], parameters)
    verifier = Verifier(
        decode(data, program_of(name), parameters), Replay(name), VerifyOptions(Masks()), program_of(name)
    )
    assert [one.group for one in verifier.run()] == [445]


def _own_return(one: Group, own: int) -> Group:
    """toooba: a return tells its own address."""
    is_return = one.instr in (MRET, SRET)
    return _with_pc(one, lambda at: AdditionalState(StateId.PC, own if is_return else at))


def _with_pc(one: Group, made: Callable[[int], Element]) -> Group:
    is_pc = [isinstance(e, AdditionalState) and e.identifier == StateId.PC for e in one.elements]
    pairs = zip(one.elements, is_pc, strict=True)
    return one._replace(elements=tuple(made(e.value) if found else e for e, found in pairs))  # type: ignore[union-attr]


def _incremented(one: Group, own: int) -> Group:
    """The forms real encoders do not send: an implied end, the pc as an increment where nothing trapped."""
    instr, traps = one.instr, 0x342 in one.registers
    known = own >= 0x8000_0000  # the first address behind the reset has to be told
    follows = known and instr is not None and not traps and one.state(StateId.PC) == own + instr.length
    return (_with_pc(one, lambda at: IncrementPc()) if follows else one)._replace(ending=Ending.IMPLIED)


FORMS: list[tuple[TandemDialect, Callable[[Group, int], Group]]] = [
    (TOOOBA, _own_return),
    (TWO_PC, lambda one, own: _with_pc(one, lambda at: AdditionalState(StateId.PC, at, own))),
    (PICCOLO_2018, lambda one, own: _with_pc(one, lambda at: FullRegister(0x7B1, at))),
    (FLUTE, _incremented),
]


@pytest.mark.parametrize(("dialect", "form"), FORMS, ids=["toooba", "two-pc", "piccolo-2018", "increments"])
def test_dialects(dialect: TandemDialect, form: Callable[[Group, int], Group]) -> None:
    """The same hart, told in another way: no divergence, and the same fault in the same group."""
    name = "flute_rv64mi-p-ma_addr"
    index, groups = decoded(name).index, [*islice(decoded(name).trace.groups(), 260)]
    parameters = TandemParameters(64, 64, dialect=dialect)
    told = [form(one, index.origin(at)) for at, one in enumerate(groups)]
    told[-1] = told[-1]._replace(ending=Ending.EXPLICIT)
    assert told != groups
    for wrong in (None, 203):
        if wrong is not None:
            fault = changed(told[wrong], flip(range(0x1001, 0x1020), 9))
            assert fault is not None
            told[wrong] = fault
        tandem = decode(encode(told, parameters), program_of(name), parameters)
        verifier = Verifier(tandem, Replay(name), VerifyOptions(Masks()), program_of(name))
        assert [one.group for one in verifier.run()][:1] == ([] if wrong is None else [wrong])
        assert verifier.counts.groups == 260 and verifier.counts.traps > 5


def test_a_trap_of_unknown_cause_after_a_loss() -> None:
    """A damaged group that has a pc alone is one: nothing is presumed of the CSRs that the trap would have needed."""
    name = "flute_rv64ui-p-add"
    start = entry_of(name) + 40
    groups = list(decoded(name).trace.groups())
    groups[start] = groups[start]._replace(elements=(AdditionalState(StateId.PC, 0x8000_0100),))
    parameters = decoded(name).trace.parameters
    tandem = decode(encode(groups, parameters), program_of(name), parameters)
    assert [(trap.group, trap.cause) for trap in tandem.index.traps if trap.group == start] == [(start, -1)]
    model = Replay(name)
    before = dict(model.registers)
    verifier = Verifier(tandem, model, VerifyOptions(masks_of([]), start=start, stop=start + 1))
    assert list(verifier.run()) == [] and verifier.counts.uncomparable == 1
    assert model.registers[0x302] == before[0x302]
