"""Rows that are filled into templates are those that are made one by one."""

import random
from collections.abc import Callable, Iterable, Iterator
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.session.exports.logs.commits import Spelling
from rvtrace_gdb.session.exports.logs.riscv_dv import TraceCsv
from rvtrace_gdb.session.exports.logs.spike_log import SpikeLog
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.instruction_text import InstructionText
from rvtrace_gdb.views.tandem import plain_rows
from rvtrace_gdb.views.tandem.group_rows import GroupObjects, GroupWords
from rvtrace_gdb.views.tandem.groups import Groups, GroupTexts, Row
from rvtrace_gdb.views.tandem.plain_rows import PlainRows
from tests.decode.kernel.test_tandem import case
from tests.decode.tandem.corpus import parameters_of, program_of, trace_bytes
from tests.helpers.amounts import some_of

REAL = (
    "flute_rv64ui-p-lb", "flute_rv64ui-v-add", "piccolo_rv32-hello", "flute_rv64-irq", "flute_rv64ud-p-ldst",
    "piccolo_rv32-irq",
)  # fmt: skip

Render = Callable[[Row], Iterable[str]]
Rows = tuple[Render, PlainRows]


class Encodings(GroupTexts):
    """Encodings stand for the text of instructions: disassemblers take long to start."""

    def learn(self, rows: Iterable[Row], *arguments: object) -> None:
        for row in rows:
            if row.instr is not None and row.pc is not None:
                symbol = self.symbol(row.pc, ProgramContext(row.mode))
                text = f'50%\t{row.instr.word:x} \\ "é"'
                self._texts[row.mode, row.pc, row.instr] = InstructionText(symbol, text)


def words(groups: Groups, texts: GroupTexts) -> Rows:
    shape = GroupWords(groups, texts)
    return shape.lines, PlainRows(groups, texts.learn, shape.lines, symbol=texts.symbol)


def objects(groups: Groups, texts: GroupTexts) -> Rows:
    shape = GroupObjects(groups, texts, 3)
    return shape.lines, PlainRows(groups, texts.learn, shape.lines, symbol=texts.symbol)


def spike(groups: Groups, texts: GroupTexts) -> Rows:
    spelling = Spelling(texts, groups.parameters.xlen)
    one, other = (SpikeLog(groups, spelling, 0, {0x8000_0000: "start"}) for _ in range(2))
    plain = PlainRows(
        groups, spelling.learn, lambda row: other.lines([row]), other.plain_commit, before=other.listed_again,
        caption=spelling.text,
    )  # fmt: skip
    return lambda row: one.lines([row]), plain


def table(groups: Groups, texts: GroupTexts) -> Rows:
    spelling = Spelling(texts, groups.parameters.xlen)
    one, other = (TraceCsv(groups, spelling) for _ in range(2))
    return lambda row: one.lines([row]), PlainRows(groups, spelling.learn, lambda row: other.lines([row]))


def selections(count: int, rng: random.Random) -> Iterator[list[int]]:
    yield list(range(count))
    yield list(range(count // 3, count))
    yield sorted(rng.sample(range(count), count // 2))


def same(tandem: DecodedTandem, program: Image, rng: random.Random, *, count: int = 3) -> None:
    groups, images = Groups(tandem), ContextImages(program)
    for make in (words, objects, spike, table):
        for numbers in list(selections(len(groups), rng))[:count]:
            texts = Encodings(Disassemblers(images), images, groups.parameters.xlen)
            render, plain = make(groups, texts)
            rows = list(map(groups.row, numbers))
            texts.learn(rows)
            with patch.object(plain_rows, "AT_ONCE", 16):  # a template is used from the next page on
                lines = [line for page in plain.pages(numbers, 16) for line in page]
            assert lines == [line for row in rows for line in render(row)]


@pytest.mark.parametrize("name", REAL)
def test_the_corpus(name: str) -> None:
    data = trace_bytes(name)
    program = program_of(name)
    tandem = decode(data[:1500] * 5 + data[-1500:] * 5, program, parameters_of(name))
    same(tandem, program, random.Random(name), count=1)


@settings(derandomize=True, max_examples=some_of(50), deadline=None)
@given(st.integers(0, 1 << 32))
def test_traces_that_were_made_up(seed: int) -> None:
    rng, name, data, parameters = case(seed)
    program = program_of(name)
    same(decode(data[:1500] * 5, program, parameters), program, rng)
