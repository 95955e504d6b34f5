"""The encoder: what it sends is read as what it was told, in every form the document allows."""

import gzip
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.executed.readers import Log, LogError
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.encoder import BadElement, Forms, GroupEncoder, Retired, encode, encode_element
from rvtrace_gdb.decode.tandem.logs.spike import CommitLog
from rvtrace_gdb.decode.tandem.protocol import (
    DATA_IN_REQUEST,
    DIALECTS,
    FLUTE,
    NO_DATA_IN_RESPONSE,
    SIZES,
    AdditionalState,
    Element,
    Ending,
    FullRegister,
    Group,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryRequest,
    MemoryResponse,
    StateId,
    TandemParameters,
)
from rvtrace_gdb.decode.tandem.trace import TraceGroups
from tests.decode.tandem.corpus import (
    DATA,
    GOLDEN,
    TRACES,
    decoded,
    golden_steps,
    parameters_of,
    program_of,
    trace_bytes,
)
from tests.decode.tandem.groups import INIT, NOP, RESET, RV64, group, loose, pc, x
from tests.helpers.amounts import LONG, some_of
from tests.helpers.commit_logs import encode_log


@pytest.mark.parametrize("name", TRACES)
def test_real_traces_are_canonical(name: str) -> None:
    """Decoded and encoded again they are the same bytes."""
    trace = decoded(name).trace
    raw = encode(list(trace.groups()), parameters_of(name))
    assert raw == trace_bytes(name)[: len(raw)]
    assert len(raw) == trace.accounting.decoded


# --- any groups


def states(parameters: TandemParameters) -> st.SearchStrategy[Element]:
    widths = parameters.widths
    mlen, eaddr, xlen = (8 * size for size in (widths.mlen, widths.eaddr, widths.xlen))
    bits = {1: 8, 2: mlen, 3: eaddr, 4: 8, 5: 16, 6: 32, 7: 64, 8: 64, 9: mlen, 10: xlen}
    value = st.sampled_from(sorted(bits)).flatmap(
        lambda state: st.tuples(st.just(state), st.integers(0, (1 << bits[state]) - 1))
    )
    if parameters.dialect.pcs == 2:
        own = st.integers(0, (1 << xlen) - 1)
        return st.builds(lambda s, own: AdditionalState(s[0], s[1], own if s[0] == StateId.PC else None), value, own)
    return value.map(lambda one: AdditionalState(one[0], one[1]))


def registers(parameters: TandemParameters) -> st.SearchStrategy[Element]:
    flen = parameters.flen if not parameters.dialect.init_fpr_is_xlen else min(parameters.flen, parameters.xlen)

    def full(regno: int) -> st.SearchStrategy[Element]:
        bits = flen if regno >= 0x1020 else parameters.xlen
        return st.builds(FullRegister, st.just(regno), st.integers(0, (1 << bits) - 1))

    regno = st.one_of(st.integers(0, 0xFFF), st.integers(0x1000, 0x103F))
    return st.one_of(
        regno.flatmap(full),
        st.builds(IncrementalRegister, regno, st.integers(-128, 127)),
        st.builds(IncrementalRegisterOr, regno, st.integers(0, 255)),
    )


@st.composite
def transactions(draw: st.DrawFn, parameters: TandemParameters) -> list[Element]:
    op, size = draw(st.integers(0, 13)), draw(st.integers(0, 3))
    data = st.integers(0, (1 << 8 * SIZES[size]) - 1)
    addr = draw(st.integers(0, (1 << 8 * parameters.widths.mlen) - 1))
    request = MemoryRequest(addr, op, size, draw(data) if op in DATA_IN_REQUEST else None)
    if draw(st.booleans()):
        return [request]
    answer = None if op in NO_DATA_IN_RESPONSE else draw(data)
    return [request, MemoryResponse(size, draw(st.integers(0, 1)), answer)]


instrs = st.one_of(
    st.builds(Instr, st.integers(0, 0xFFFF), st.just(2)), st.builds(Instr, st.integers(0, 0xFFFFFFFF), st.just(4))
)


@st.composite
def groups(draw: st.DrawFn, parameters: TandemParameters) -> list[Group]:
    bare: st.SearchStrategy[Element] = st.sampled_from([IncrementPc(), RESET, INIT])
    any_of = st.one_of(states(parameters), registers(parameters), instrs, bare)
    single: st.SearchStrategy[list[Element]] = any_of.map(lambda element: [element])
    pieces = st.lists(st.one_of(single, single, transactions(parameters)), max_size=6)
    found = []
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.integers(0, 4)):
            elements: tuple[Element, ...] = tuple(element for piece in draw(pieces) for element in piece)
            found.append(Group(elements, draw(st.sampled_from([Ending.EXPLICIT, Ending.IMPLIED]))))
        else:
            found.append(loose(draw(st.one_of(states(parameters), registers(parameters)))))
    return [
        one._replace(ending=Ending.EXPLICIT)
        if one.ending is Ending.IMPLIED and (number + 1 == len(found) or found[number + 1].ending is Ending.LOOSE)
        else one
        for number, one in enumerate(found)
    ]


PARAMETERS = [
    TandemParameters(xlen, flen, mlen, dialect=dialect)
    for dialect in DIALECTS.values()
    for xlen, flen, mlen in ((64, 64, 0), (64, 32, 0), (32, 64, 0), (32, 32, 34), (32, 0, 0))
]


@given(st.data(), st.sampled_from(PARAMETERS))
@settings(max_examples=some_of(60))
def test_round_trip_of_any_groups(data: st.DataObject, parameters: TandemParameters) -> None:
    sent = [group(RESET), *data.draw(groups(parameters))]  # nothing can be outside of groups before the first one
    raw = encode(sent, parameters)
    trace = TraceGroups.from_bytes(raw, parameters)
    assert [one[:2] for one in trace.groups()] == [one[:2] for one in sent]
    assert not trace.losses and encode(list(trace.groups()), parameters) == raw


@pytest.mark.parametrize(
    ("element", "why"),
    [
        (FullRegister(0x1001, 1 << 64), "does not fit"),
        (FullRegister(0x10000, 1), "does not fit"),
        (IncrementalRegister(0x1001, 128), "does not fit"),
        (Instr(0x13, 6), "not in the protocol"),
        (Instr(0x13, 8), "an instruction of 8 bytes .0x13.: it is not in the protocol"),
        (AdditionalState(11, 0), "not in the protocol"),
        (AdditionalState(StateId.PC, 1, 2), "does not fit"),
        (MemoryRequest(0, 14, 0), "not in the protocol"),
        (MemoryRequest(0, 0, 4), "not in the protocol"),
        (MemoryRequest(0, 1, 0), "does not fit"),
        (MemoryRequest(0, 0, 0, 1), "does not fit"),
        (MemoryResponse(0, 0), "not in the protocol"),
    ],
)
def test_what_no_trace_can_have(element: Element, why: str) -> None:
    with pytest.raises(BadElement, match=why) as raised:
        encode_element(element, RV64.widths)
    assert raised.value.element == element and str(raised.value).startswith("a tandem trace cannot have ")
    assert type(element).__name__ not in str(raised.value)  # in words


def test_an_end_is_implied_by_a_begin_alone() -> None:
    implied = group(NOP, ending=Ending.IMPLIED)
    for sent in ([implied], [implied, loose(x(1, 1))]):
        with pytest.raises(BadElement, match="only be omitted before a begin group"):
            encode(sent, RV64)


# --- what a hart does

EVERY_FORM = [Forms(*choice) for choice in product([False, True], repeat=5)]
PAIRS_OF_FORMS = [*(Forms(a, b, c, a != b, a != c) for a, b, c in product([False, True], repeat=3)), Forms(*[True] * 5)]
"""Each two of the five in all four ways, and all of them."""


def read(sent: list[bytes], parameters: TandemParameters) -> DecodedTandem:
    return decode(b"".join(sent), Image(parameters.xlen), parameters)


def gold(name: str) -> Path:
    return DATA / "tandem" / f"{name}.spike.gz"


def encoded(name: str, parameters: TandemParameters, forms: Forms, limit: int | None = None) -> tuple[list[bytes], int]:
    sent: list[bytes] = []
    with Log(str(gold(name))) as log:
        commits = CommitLog(log, parameters.xlen, program_of(name))
        count = encode_log(commits, GroupEncoder(parameters, sent.append, forms), limit)
    return sent, count


@cache
def plain_form(name: str) -> DecodedTandem:
    return read(encoded(name, RV64, Forms())[0], RV64)


@pytest.mark.parametrize(
    "forms",
    EVERY_FORM if LONG else PAIRS_OF_FORMS,
    ids=lambda forms: "".join("01"[value] for value in vars(forms).values()),
)
def test_every_form_tells_the_same(forms: Forms) -> None:
    """A run with floating point, traps and stores, in each form: another trace, the same state everywhere."""
    name = "flute_rv64ud-p-fadd"
    plain = plain_form(name)
    sent, _ = encoded(name, RV64, forms)
    found = read(sent, RV64)
    assert not found.trace.losses and not list(found.trace.flaws()) and not found.index.breaks
    assert list(found.history.pcs()) == list(plain.history.pcs())
    assert len(found.trace) == len(plain.trace)
    for number in range(0, len(plain.trace), 7):
        one, other = found.after(number), plain.after(number)
        assert (one.xs(), one.fs(), one.csrs(), one.pc) == (other.xs(), other.fs(), other.csrs(), other.pc)
        assert one.memory(0x8000_1000, 8) == other.memory(0x8000_1000, 8)
    if forms != Forms() and not forms.memory:
        assert len(found.trace.data) < len(plain.trace.data)


def test_differences_are_told_to_what_a_decoder_knows() -> None:
    """mstatus changes with sstatus, with traps and with floating point: it is sent whole after those."""
    sent: list[bytes] = []
    encoder = GroupEncoder(RV64, sent.append, Forms(incremental=True, incremental_or=True))
    steps = [
        {"csrs": ((0x300, 0x6000),)}, {"csrs": ((0x300, 0x6008),)}, {"csrs": ((0x100, 0x6002),)},
        {"csrs": ((0x300, 0x600A),)}, {"fpr": (3, 5)}, {"csrs": ((0x300, 0x600B),)}, {"csrs": ((1, 3),)},
        {"csrs": ((3, 0x23),)}, {"csrs": ((2, 1),)}, {"csrs": ((0x300, 0x6000),), "privilege": 3},
    ]  # fmt: skip
    encoder.begin(0)
    for number, step in enumerate(steps, 1):
        encoder.put(Retired(4 * number, NOP, **step))  # type: ignore[arg-type]
    found = read(sent, RV64)
    assert [found.after(n).csr(0x300) for n in (1, 2, 4, 6, 10)] == [0x6000, 0x6008, 0x600A, 0x600B, 0x6000]
    assert [found.after(n).csr(3) for n in (8, 9)] == [0x23, 0x23]
    forms = [type(one.elements[-1]).__name__ for one in found.trace.groups(1)]
    assert forms.count("IncrementalRegisterOr") == 1 and forms.count("IncrementalRegister") == 0


@pytest.mark.parametrize("name", GOLDEN)
def test_a_trace_from_a_commit_log(name: str) -> None:
    """The trace says what the log says, as a reader finds it that shares nothing with the one under test."""
    parameters = TandemParameters(parameters_of(name).xlen, 64)
    steps = list(golden_steps(name))[:300]
    sent, count = encoded(name, parameters, Forms(), len(steps))
    found = read(sent, parameters)
    assert count == len(steps) == len(found.trace) - 1
    assert not found.trace.losses and not list(found.trace.flaws()) and not found.index.breaks
    retired = [step for step in steps if step.cause is None]
    assert list(found.history.pcs()) == [step.pc for step in retired]
    assert [found.before(position).privilege for position in range(len(retired))] == [step.mode for step in retired]
    for number, step in enumerate(steps, 1):
        state = found.after(number)
        assert {n: state.x(n) for n in step.x} == step.x
        assert {n: state.f(n) for n in step.f} == step.f
        assert {n: state.csr(n) for n in step.csrs} == step.csrs
        for address, stored in step.stores:
            assert state.memory(address, len(stored)) == list(stored)
    traps = [step for step in steps if step.cause is not None]
    assert [trap.epc for trap in found.index.traps] == [step.pc for step in traps]
    assert [trap.interrupt for trap in found.index.traps] == ["interrupt" in (step.cause or "") for step in traps]
    assert [trap.tval for trap in found.index.traps] == [step.tval for step in traps]
    trapped = [event for event in found.history.events if event.kind is EventKind.TRAP]
    assert [event.last_pc for event in trapped] == [step.pc for step in traps]


def test_a_commit_log_of_an_encoder_that_sends_operands() -> None:
    """amoadd in Flute's dialect: the log has the result, the trace the operand, the state the result again."""
    name = "flute_rv64ua-p-amoadd_d"
    found = read(
        encoded(name, TandemParameters(64, 64, dialect=FLUTE), Forms())[0], TandemParameters(64, 64, dialect=FLUTE)
    )
    plain = read(encoded(name, RV64, Forms())[0], RV64)
    assert bytes(found.trace.data) != bytes(plain.trace.data)
    last = len(found.trace) - 1
    assert found.after(last).memory(0x8000_2000, 8) == plain.after(last).memory(0x8000_2000, 8)
    assert None not in plain.after(last).memory(0x8000_2000, 8)


def test_the_dialects_tell_the_same_of_a_commit_log() -> None:
    for dialect in DIALECTS.values():
        parameters = TandemParameters(64, 64, dialect=dialect)
        found = read(encoded("flute_rv64mi-p-scall", parameters, Forms())[0], parameters)
        expected = [step.pc for step in golden_steps("flute_rv64mi-p-scall") if step.cause is None]
        assert list(found.history.pcs()) == [pc for pc in expected if pc >= dialect.untraced_below]


def test_a_commit_log_cannot_be_of_two_harts(tmp_path: Path) -> None:
    log = tmp_path / "two.log"
    line = "core   {}: 3 0x0000000080000000 (0x00000013)\n"
    log.write_text(line.format(0) + line.format(1))
    with Log(str(log)) as opened, pytest.raises(LogError, match="line 2: hart 1 after lines of hart 0"):
        list(CommitLog(opened, 64).retired())
    with Log(str(log)) as opened:
        assert len(list(CommitLog(opened, 64, hart=1).retired())) == 1


def test_a_commit_log_without_what_was_not_committed(tmp_path: Path) -> None:
    """--log-commits alone does not have the instruction that trapped: it comes from the program, or is left out."""
    lines = gzip.decompress(gold("flute_rv64mi-p-scall").read_bytes()).splitlines(keepends=True)
    log = tmp_path / "commits.log"
    committed = [line for line in lines if not (line.startswith(b"core   0: 0x"))]
    log.write_bytes(b"".join(committed))
    for image, has_instruction in ((program_of("flute_rv64mi-p-scall"), True), (None, False)):
        with Log(str(log)) as opened:
            told = list(CommitLog(opened, 64, image).retired())
        traps = [one for one in told if len(one.csrs) == 3]
        assert len(traps) == 2 and [one.instr is not None for one in traps] == [has_instruction] * 2


def test_what_a_hart_tells_besides() -> None:
    """Resets, what comes from outside, and what is told outside of groups."""
    sent: list[bytes] = []
    encoder = GroupEncoder(RV64, sent.append, Forms(implied_end=True, increment_pc=True, incremental=True))
    encoder.reset()
    encoder.initialize(x(5, 100))
    encoder.begin(0x1000)
    encoder.put(Retired(0x1004, NOP, gpr=(5, 99)))
    encoder.put_state(AdditionalState(StateId.MTIME, 5))
    encoder.put(Retired(0x1008, NOP, gpr=(0, 7)))
    encoder.put(Retired(0x1100, Instr(0x0F80006F, 4)))
    encoder.finish()
    found = read(sent, RV64)
    assert [one[:2] for one in found.trace.groups()] == [
        group(RESET, ending=Ending.IMPLIED)[:2],
        group(INIT, x(5, 100), ending=Ending.IMPLIED)[:2],
        group(INIT, pc(0x1000), ending=Ending.IMPLIED)[:2],
        group(IncrementPc(), NOP, IncrementalRegister(0x1005, -1))[:2],
        loose(AdditionalState(StateId.MTIME, 5))[:2],
        group(IncrementPc(), NOP, ending=Ending.IMPLIED)[:2],
        group(pc(0x1100), Instr(0x0F80006F, 4))[:2],
    ]
    assert list(found.history.pcs()) == [0x1000, 0x1004, 0x1008]
    assert found.after(3).x(5) == 99
