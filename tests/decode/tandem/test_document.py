"""The specification's own examples and tables (Trace Protocol Specification, version 2018-11-20)."""

import json
from typing import Any

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import decode
from rvtrace_gdb.decode.tandem.encoder import Forms, GroupEncoder, Retired, encode, encode_element
from rvtrace_gdb.decode.tandem.group_grammar import GroupProblem
from rvtrace_gdb.decode.tandem.protocol import (
    AdditionalState,
    BadParameters,
    Element,
    FullRegister,
    IncrementalRegister,
    IncrementalRegisterOr,
    IncrementPc,
    Instr,
    MemoryOp,
    MemoryRequest,
    MemoryResponse,
    StateId,
    TandemParameters,
)
from rvtrace_gdb.decode.tandem.trace import CUT_OFF, TraceGroups
from rvtrace_gdb.decode.tandem.wording import element_text, group_lines
from tests.decode.tandem.corpus import DATA
from tests.decode.tandem.groups import INIT, NOP, RESET, RV32, RV64, csr, group, loose, pc, priv, x

EXAMPLES = json.loads((DATA / "tandem" / "appendix_c.json").read_text())
"""Appendix C: "rv64gc and Sv48. Thus, XLEN=64, FLEN=64, ILEN=32, and MLEN=64"."""

GROUPS: dict[str, list[Element]] = {
    "C.1": [IncrementPc(), Instr(0x006281B3, 4), x(3, 0x1234)],
    "C.2": [pc(0x0C000100), Instr(0x10010067, 4)],
    "C.3": [
        IncrementPc(),
        Instr(0x0116F3D3, 4),
        FullRegister(0x1027, 0xFFFFFFFF66FEF4F9),
        IncrementalRegisterOr(0x003, 1),
    ],
    "C.4": [IncrementPc(), Instr(0x8D0D, 2), x(10, 0xFFFFFFFF12345678)],
    "C.5": [IncrementPc(), Instr(0x0082A203, 4), x(4, 0x55AA55AA),
            AdditionalState(StateId.PHYSICAL_ADDRESS, 0x01000008)],
    "C.6": [IncrementPc(), Instr(0x3045B4F3, 4), x(9, 0x888), csr(0x304, 0x880)],
    "C.7": [
        pc(0x10000), Instr(0, 4), csr(0x341, 0x81234), csr(0x342, 2), csr(0x300, 0xA000018B0), csr(0x343, 0), priv(3),
    ],
    "C.8": [
        pc(0x10000), csr(0x341, 0x81256), csr(0x342, 0x8000000000000003), csr(0x300, 0xA000018B0), csr(0x343, 0),
        priv(3),
    ],
}  # fmt: skip
"""What the right column of each table says."""

AS_PRINTED = {
    "C.1": "right",
    "C.2": "0x10 is not the identifier of an additional state",
    "C.3": "right",
    "C.4": "x16",
    "C.5": "0x82 is not an opcode",
    "C.6": "right",
    "C.7": "0x10 is not the identifier of an additional state",
    "C.8": "0x10 is not the identifier of an additional state",
}
"""What becomes of the bytes as they are printed."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_appendix_c_corrected(name: str) -> None:
    raw = bytes.fromhex(EXAMPLES[name]["corrected"])
    trace = TraceGroups.from_bytes(raw, RV64)
    assert [list(found.elements) for found in trace.groups()] == [GROUPS[name]]
    assert encode([group(*GROUPS[name])], RV64) == raw
    assert not trace.losses and not list(trace.flaws())


@pytest.mark.parametrize("name", EXAMPLES)
def test_appendix_c_as_printed(name: str) -> None:
    """Five of the eight are not what they say; four of them cannot be read."""
    raw = bytes.fromhex(EXAMPLES[name]["verbatim"])
    trace = TraceGroups.from_bytes(raw, RV64)
    if AS_PRINTED[name] == "right":
        assert raw == bytes.fromhex(EXAMPLES[name]["corrected"])
    elif AS_PRINTED[name] == "x16":
        assert list(trace.group(0).elements) == [IncrementPc(), Instr(0x8D0D, 2), x(16, 0xFFFFFFFF12345678)]
    else:
        assert len(trace) == 0
        assert trace.losses[0].why.startswith(AS_PRINTED[name])
    assert bool(EXAMPLES[name]["errata"]) == (AS_PRINTED[name] != "right")
    assert sum(trace.accounting[1:]) == len(raw)


X, F, C = (5, 1 << 40), (7, 1 << 40), (0x340, 1 << 40)
AT = 0x8000_0100
TRAP = tuple((number, 1 << 40) for number in (0x341, 0x342, 0x300, 0x343))
APPENDIX_D: dict[str, tuple[int, int, dict[str, Any], bool]] = {
    # row: (printed, computed, what is told, whether the next instruction follows)
    "integer computation": (23, 19, {"gpr": X}, True),
    "nop": (12, 8, {}, True),
    "branch, jump": (27, 17, {}, False),
    "branch and link, jump and link": (32, 28, {"gpr": X}, False),
    "load": (33, 29, {"gpr": X, "paddr": AT}, True),
    "load (virtual address)": (43, 39, {"gpr": X, "paddr": AT, "eaddr": AT}, True),
    "store": (32, 28, {"paddr": AT, "memdata": (8, 1)}, True),
    "store (virtual address)": (42, 38, {"paddr": AT, "eaddr": AT, "memdata": (8, 1)}, True),
    "sc, amo": (53, 49, {"gpr": X, "paddr": AT, "eaddr": AT, "memdata": (8, 1)}, True),
    "csr read-write": (34, 30, {"gpr": X, "csrs": (C,)}, True),
    "csr read only": (23, 19, {"gpr": X}, True),
    "csr write only": (23, 19, {"csrs": (C,)}, True),
    "floating point computation": (27, 23, {"fpr": F, "fcsr": 1}, True),
    "floating point move": (23, 19, {"gpr": X}, True),
    "floating point conversion": (27, 23, {"gpr": X, "fcsr": 1}, True),
    "floating point load": (43, 39, {"fpr": F, "paddr": AT, "eaddr": AT}, True),
    "floating point store": (42, 38, {"paddr": AT, "eaddr": AT, "memdata": (8, 1)}, True),
    "interrupt": (59, 59, {"csrs": TRAP, "privilege": 3, "instr": None}, False),
    "exception": (68, 64, {"csrs": TRAP, "privilege": 3}, False),
}


@pytest.mark.parametrize("row", APPENDIX_D)
def test_appendix_d(row: str) -> None:
    """Rows with an instruction are printed 4 bytes too large, one 10; the others are right."""
    printed, computed, told, follows = APPENDIX_D[row]
    sent: list[bytes] = []
    encoder = GroupEncoder(RV64, sent.append, Forms(increment_pc=True, incremental_or=True))
    encoder.initialize(csr(0x003, 0))
    encoder.begin(0x8000_0000)
    encoder.put(Retired(0x8000_0004 if follows else 0x8000_0010, **{"instr": NOP, **told}))
    assert len(sent[-1]) == computed
    surplus = 0 if row == "interrupt" else 10 if row == "branch, jump" else 4
    assert printed - computed == surplus
    trace = TraceGroups.from_bytes(b"".join(sent), RV64)
    assert len(trace) == 3 and not list(trace.flaws())


@pytest.mark.parametrize(
    ("size", "data", "raw"),
    [
        (0, 0x5A, "08 0001000000000000 01 5a"),
        (1, 0xBEEF, "08 0001000000000000 11 efbe"),
        (2, 0xDEADBEEF, "08 0001000000000000 21 efbeadde"),
        (3, 0x0123456789ABCDEF, "08 0001000000000000 31 efcdab8967452301"),
    ],
)
def test_a_memory_request_has_its_op_in_the_low_half(size: int, data: int, raw: str) -> None:
    """ "Fields ... are packed with the first field starting at the least significant bit", and op comes first."""
    request = MemoryRequest(0x100, MemoryOp.STORE, size, data)
    assert encode_element(request, RV64.widths) == bytes.fromhex(raw)
    read = TraceGroups.from_bytes(b"\x01\x0b" + bytes.fromhex(raw) + b"\x02", RV64)
    assert read.group(0).elements == (INIT, request)


@pytest.mark.parametrize(
    ("op", "response", "raw"),
    [
        (MemoryOp.LOAD, MemoryResponse(0, 0, 0x7F), "09 00 7f"),
        (MemoryOp.LOAD, MemoryResponse(1, 0, 0x1234), "09 01 3412"),
        (MemoryOp.LOAD_RESERVED, MemoryResponse(2, 0, 1), "09 02 01000000"),
        (MemoryOp.INSTRUCTION_FETCH, MemoryResponse(2, 0, 0x13), "09 02 13000000"),
        (MemoryOp.AMO_ADD, MemoryResponse(3, 0, 1), "09 03 0100000000000000"),
        (MemoryOp.STORE, MemoryResponse(3, 1), "09 13"),
        (MemoryOp.STORE_CONDITIONAL, MemoryResponse(2, 1), "09 12"),
    ],
)  # fmt: skip
def test_a_memory_response_has_its_size_in_the_low_half(op: int, response: MemoryResponse, raw: str) -> None:
    """Size, result: the opposite order. The response to a store is 8 bits, which the table of opcodes forgets."""
    data = 1 if op in (MemoryOp.STORE, MemoryOp.STORE_CONDITIONAL, MemoryOp.AMO_ADD) else None
    request = MemoryRequest(0x100, op, response.size, data)
    assert encode_element(response, RV64.widths, pending=op) == bytes.fromhex(raw)
    whole = encode([group(INIT, request, response)], RV64)
    assert TraceGroups.from_bytes(whole, RV64).group(0).elements == (INIT, request, response)


def test_all_additional_states() -> None:
    """Their lengths with MLEN 64, 34 and 32."""
    for parameters, address in ((RV64, 8), (TandemParameters(32, 64, 34), 5), (RV32, 4)):
        xlen = parameters.xlen // 8
        sizes = {1: 1, 2: address, 3: address, 4: 1, 5: 2, 6: 4, 7: 8, 8: 8, 9: address, 10: xlen}
        states = [AdditionalState(StateId(number), 0x55) for number in sizes]
        for state in states:
            raw = encode_element(state, parameters.widths)
            assert raw == bytes([7, state.identifier, 0x55]) + bytes(sizes[state.identifier] - 1)
        assert TraceGroups.from_bytes(encode([group(*states)], parameters), parameters).group(0).elements == tuple(
            states
        )


def test_the_widths_of_registers() -> None:
    """The table says "16 bit address, XLEN or FLEN data"; incremental forms have one byte, signed or a mask."""
    whole = [x(31, 0x8000_0001), FullRegister(0x1020, 1 << 63), csr(0x300, 7)]
    elements: list[Element] = [*whole, IncrementalRegister(0x1001, -128)]
    raw = encode([group(NOP, *elements, IncrementalRegisterOr(0x003, 0xFF))], RV32)
    assert raw.hex() == (
        "01" "1113000000" "041f1001000080" "0420100000000000000080" "04000307000000" "05011080" "060300ff" "02"
    )  # fmt: skip
    assert TraceGroups.from_bytes(raw, RV32).group(0).elements == (NOP, *elements, IncrementalRegisterOr(0x003, 0xFF))


def test_an_end_group_may_be_left_out_before_a_begin_group() -> None:
    raw = bytes.fromhex("01 03 11 13000000  01 03 11 13000000 02  01 03 11 13000000 02")
    trace = TraceGroups.from_bytes(raw, RV64)
    assert len(trace) == 3 and not trace.losses and not list(trace.flaws())
    assert [found.size for found in trace.groups()] == [7, 8, 8]
    assert encode(list(trace.groups()), RV64) == raw


def test_changes_outside_of_groups() -> None:
    """The notes: "State changes that occur outside begin and end group": mip, as early Piccolo sends it, and mtime."""
    groups = [group(RESET), loose(csr(0x344, 8)), loose(AdditionalState(StateId.MTIME, 77)), group(pc(4), NOP)]
    tandem = decode(encode(groups, RV64), Image(64), RV64)
    assert len(tandem.trace) == 4 and not tandem.trace.losses and not list(tandem.trace.flaws())
    assert [tandem.after(1).csr(0x344), tandem.after(2).mtime] == [8, 77]
    assert tandem.history.time_at(0) == 77


def test_mtime_that_goes_back_is_noted_once() -> None:
    """A reset of the platform, or damage."""
    times = (77, 80, 5, 9, 3)
    groups = [group(RESET), *(one for at in times for one in (loose(AdditionalState(StateId.MTIME, at)), group(NOP)))]
    history = decode(encode(groups, RV64), Image(64), RV64).history
    notes = [event.text for event in history.events if "goes back" in event.text]
    assert notes == ["the time goes back from 80 to 5: times before and after this place cannot be compared"]


@pytest.mark.parametrize(
    ("elements", "problem"),
    [
        ((RESET, NOP), GroupProblem.RESET_AND_INSTRUCTION),
        ((INIT, NOP), GroupProblem.INITIALIZATION_AND_INSTRUCTION),
        ((INIT, RESET), GroupProblem.INITIALIZATION_AND_RESET),
        ((IncrementPc(), INIT), GroupProblem.INCREMENT_WITHOUT_INSTRUCTION),
        ((IncrementPc(), IncrementPc(), NOP), GroupProblem.DUPLICATE_INCREMENT),
        ((NOP, NOP), GroupProblem.DUPLICATE_INSTRUCTION),
        ((IncrementPc(), pc(4), NOP), GroupProblem.INCREMENT_AND_PC),
        ((x(1, 2),), GroupProblem.NEITHER),
        ((), GroupProblem.NEITHER),
        ((RESET, RESET), GroupProblem.DUPLICATE_RESET),
        ((INIT, INIT, x(1, 2)), GroupProblem.DUPLICATE_INITIALIZATION),
    ],
)  # fmt: skip
def test_groups_that_break_a_rule(elements: tuple, problem: GroupProblem) -> None:  # type: ignore[type-arg]
    raw = encode([group(pc(0), NOP), group(*elements), group(pc(8), NOP)], RV64)
    tandem = decode(raw, Image(64), RV64)
    assert [(flaw.group, flaw.problem) for flaw in tandem.trace.flaws()] == [(1, problem)]
    assert any(problem.value in event.text for event in tandem.history.events)
    assert problem.is_warning == problem.value.startswith(("hart reset twice", "state initialization twice"))


def test_an_end_without_a_begin_and_an_instruction_outside_of_groups() -> None:
    raw = bytes.fromhex("01 03 11 13000000 02  02  11 13000000  01 03 11 13000000 02")
    assert [flaw.problem for flaw in TraceGroups.from_bytes(raw, RV64).flaws()] == [
        GroupProblem.ORPHAN_END,
        GroupProblem.LOOSE_EXECUTION,
    ]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("00", "0x00 is not an opcode"),
        ("0c", "0x0c is not an opcode"),
        ("12", "0x12 is not an opcode"),
        ("ff", "0xff is not an opcode"),
        ("0700", "0x00 is not the identifier"),
        ("070b", "0x0b is not the identifier"),
        ("04 40 10", "there is no register 0x1040"),
        ("04 00 20", "there is no register 0x20.."),
        ("08 0000000000000000 0e", "0x0e is reserved in a memory request"),
        ("08 0000000000000000 41", "0x41 is reserved in a memory request"),
        ("09 00", "a memory response without a request"),
        ("08 0000000000000000 20 09 22", "0x22 is reserved in a memory response"),
        ("08 0000000000000000 20 09 04", "0x04 is reserved in a memory response"),
    ],
)
def test_what_is_reserved_is_a_loss(raw: str, why: str) -> None:
    good = encode([group(pc(4), NOP)] * 5, RV64)
    damaged = b"\x01" + bytes.fromhex(raw)
    trace = TraceGroups.from_bytes(good + damaged + good, RV64)
    assert len(trace) == 10
    assert [loss.why.startswith(why) for loss in trace.losses] == [True]
    assert (trace.losses[0].group, trace.losses[0].length) == (5, len(damaged))


def test_no_parameters_that_cannot_be() -> None:
    for wrong in ({"xlen": 16}, {"flen": 128}, {"mlen": 48}, {"eaddr": 20}):
        with pytest.raises(BadParameters) as raised:
            TandemParameters(**wrong)  # type: ignore[arg-type]
        assert str(raised.value).startswith(f"{next(iter(wrong)).upper()} of a tandem trace cannot be")


def test_a_trace_that_ends_inside_of_a_group() -> None:
    raw = encode([group(pc(4), NOP), group(pc(8), NOP, x(1, 1))], RV64)
    for cut in range(raw.index(b"\x01", 3) + 1, len(raw)):
        trace = TraceGroups.from_bytes(raw[:cut], RV64)
        lost = cut - trace.group(0).size
        assert len(trace) == 1 and trace.accounting == (cut, cut - lost, 0, lost)
        assert [loss.cause for loss in trace.losses] == [CUT_OFF] * (lost > 0)


MEANINGS = {
    "C.1": ["increment pc", "32-bit instruction 0x006281b3", "full register gp (x3) = 0x0000000000001234"],
    "C.2": ["pc 0x000000000c000100", "32-bit instruction 0x10010067"],
    "C.3": [
        "increment pc", "32-bit instruction 0x0116f3d3", "full register ft7 (f7) = 0xffffffff66fef4f9",
        "incremental register update (OR) fcsr |= 0x01",
    ],
    "C.4": ["increment pc", "16-bit instruction 0x8d0d", "full register a0 (x10) = 0xffffffff12345678"],
    "C.5": [
        "increment pc", "32-bit instruction 0x0082a203", "full register tp (x4) = 0x0000000055aa55aa",
        "physical address 0x0000000001000008",
    ],
    "C.6": [
        "increment pc", "32-bit instruction 0x3045b4f3", "full register s1 (x9) = 0x0000000000000888",
        "full register mie = 0x0000000000000880",
    ],
    "C.7": [
        "pc 0x0000000000010000", "32-bit instruction 0x00000000", "full register mepc = 0x0000000000081234",
        "full register mcause = 0x0000000000000002", "full register mstatus = 0x0000000a000018b0",
        "full register mtval = 0x0000000000000000", "privilege mode machine mode",
    ],
    "C.8": [
        "pc 0x0000000000010000", "full register mepc = 0x0000000000081256",
        "full register mcause = 0x8000000000000003", "full register mstatus = 0x0000000a000018b0",
        "full register mtval = 0x0000000000000000", "privilege mode machine mode",
    ],
}  # fmt: skip
"""The right column of the tables, with the values of the left one."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_appendix_c_in_words(name: str) -> None:
    trace = TraceGroups.from_bytes(bytes.fromhex(EXAMPLES[name]["corrected"]), RV64)
    assert list(group_lines(trace.group(0), RV64)) == ["begin group", *MEANINGS[name], "end group"]


def test_the_rest_in_words() -> None:
    parameters = TandemParameters(32, 64, 34)
    elements: list[Element] = [
        RESET, INIT, IncrementalRegister(0x1002, -16), MemoryRequest(0x3_0000_0000, MemoryOp.STORE, 1, 0xBEEF),
        MemoryResponse(1, 1), MemoryRequest(0x10, MemoryOp.AMO_MAXU, 2, 1), MemoryResponse(2, 0, 5), priv(0),
        AdditionalState(StateId.STORE_DATA_8, 7), AdditionalState(StateId.MTIME, 9), AdditionalState(StateId.PC, 8, 4),
        FullRegister(0x1021, 1), csr(0x7FF, 2),
    ]  # fmt: skip
    assert [element_text(element, parameters) for element in elements] == [
        "hart reset",
        "state initialization",
        "incremental register update sp (x2) -16",
        "memory request store 2 bytes at 0x300000000 = 0xbeef",
        "memory response failure 2 bytes",
        "memory request AMO maxu 4 bytes at 0x000000010 = 0x00000001",
        "memory response success 4 bytes = 0x00000005",
        "privilege mode user mode",
        "memory store data 1 byte = 0x07",
        "mtime 0x0000000000000009",
        "pc 0x00000008 (from 0x00000004)",
        "full register ft1 (f1) = 0x0000000000000001",
        "full register csr 0x7ff = 0x00000002",
    ]
    raw = bytes.fromhex("01 03 11 13000000  01 03 11 13000000 02  02  07 01 03")
    found = [list(group_lines(one, RV64)) for one in TraceGroups.from_bytes(raw, RV64).groups()]
    assert [one[-1] for one in found] == [
        "(end group implied)", "end group", "end group, without a begin group", "privilege mode machine mode",
    ]  # fmt: skip


def test_a_trace_that_ends_inside_of_a_change_outside_of_groups() -> None:
    raw = encode([group(pc(4), NOP), loose(csr(0x344, 8))], RV64)
    for cut in range(1, 11):
        trace = TraceGroups.from_bytes(raw[:-cut], RV64)
        assert len(trace) == 1 and [(loss.length, loss.cause) for loss in trace.losses] == [(11 - cut, CUT_OFF)]
