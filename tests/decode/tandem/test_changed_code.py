"""Programs that change their code: each row has the instruction that ran, and calls follow what it did."""

from array import array
from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.builder import IncrementalBuilder
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, IncrementalDecoder, decode
from rvtrace_gdb.decode.tandem.encoder import encode
from rvtrace_gdb.decode.tandem.protocol import Instr
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import with_symbols
from tests.decode.tandem.groups import NOP, RV64, Line, pc

BASE, CALLEE = 0x8000_0000, 0x8000_0100


def instr(code: bytes) -> Instr:
    return Instr(int.from_bytes(code, "little"), len(code))


JUMP_BACK, CALL, RET = instr(asm.jal(-4)), instr(asm.jal(CALLEE - BASE, 1)), instr(asm.jalr(0, 1))
CODES = {NOP: "nop", JUMP_BACK: "back", CALL: "call", RET: "ret"}


def patched(rounds: Sequence[Instr]) -> Line:
    """A loop whose first instruction is a nop in some rounds and a call in others, as tracers of functions do it."""
    line = Line(BASE)
    line.add(pc(BASE))
    for first in rounds:
        if first is CALL:
            line(instr=CALL, to=CALLEE)
            line(instr=RET, to=BASE + 4)
        else:
            line(instr=first)
        line(instr=JUMP_BACK, to=BASE)
    return line


def program(first: Instr | None) -> Image:
    """With this instruction at the beginning; None: without code, which only the trace has."""
    image = Image(64)
    for address, it in ((BASE, first), (BASE + 4, JUMP_BACK), (CALLEE, RET)):
        if first is not None and it is not None:
            image.add_code(address, it.word.to_bytes(4, "little"), "a.elf")
    return with_symbols(image, [BASE, CALLEE], CALLEE + 4)


def ran(found: DecodedTandem, image: Image) -> list[str]:
    """The name of each instruction: the history's own, else the program's."""
    history = found.history
    own = history.code(0, len(history))
    codes = [own.get(position) or image.read(at, 4) for position, at in enumerate(history.pcs())]
    return [CODES[instr(code)] for code in codes]


ROUNDS = [NOP, CALL, CALL, NOP, NOP, CALL, NOP]
EXPECTED = [word for it in ROUNDS for word in (("call", "ret", "back") if it is CALL else ("nop", "back"))]


@pytest.mark.parametrize("first", [NOP, CALL, None], ids=["nop in the ELF", "call in the ELF", "nothing in the ELF"])
def test_each_position_has_the_instruction_that_ran(first: Instr | None) -> None:
    image = program(first)
    found = decode(encode(patched(ROUNDS).groups, RV64), image, RV64)
    assert ran(found, image) == EXPECTED


@pytest.mark.parametrize("first", [NOP, CALL, None], ids=["nop in the ELF", "call in the ELF", "nothing in the ELF"])
def test_calls_are_those_that_ran(first: Instr | None) -> None:
    image = program(first)
    history = decode(encode(patched(ROUNDS).groups, RV64), image, RV64).history
    calls = CallHistory(history, image)
    found = [(function.pc, function.level) for function in calls.functions(1, len(calls) + 1)]
    assert [level for at, level in found if at == CALLEE] == [1] * ROUNDS.count(CALL)
    assert {level for at, level in found if at != CALLEE} == {0} and not calls.mismatched
    assert {function.kind.name for function in calls.functions(1, len(calls) + 1)} == {"BEGIN", "CALL", "RETURN"}


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_trace_that_arrives_in_pieces(size: int) -> None:
    image, builder = program(NOP), IncrementalBuilder()
    decoder = IncrementalDecoder(image, RV64, builder)
    data = encode(patched(ROUNDS * 3).groups, RV64)
    words: list[str] = []

    def take(*, last: bool = False) -> None:
        piece = builder.take(last=last)
        own = piece.history.code(piece.begin, piece.end)
        pcs = array("Q", piece.history.pcs(piece.begin, piece.end))
        for position, at in enumerate(pcs, piece.begin):
            words.append(CODES[instr(own.get(position) or image.read(at, 4))])

    for start in range(0, len(data), size):
        decoder.feed(data[start : start + size])
        take()
    decoder.finish()
    take(last=True)
    assert words == EXPECTED * 3


def test_code_that_stays_costs_nothing() -> None:
    history = decode(encode(patched([NOP] * 9).groups, RV64), program(NOP), RV64).history
    assert not history.code_varies and not history.code(0, len(history))


def test_code_that_returns_is_one_path_for_each_of_its_forms() -> None:
    """As many paths as forms of the code, however often it changes: what ran is compared with what was there last."""
    found = decode(encode(patched([NOP, CALL] * 20).groups, RV64), program(NOP), RV64)
    assert found.index.code.varying == {BASE}
    assert ran(found, program(NOP)) == ["nop", "back", "call", "ret", "back"] * 20
