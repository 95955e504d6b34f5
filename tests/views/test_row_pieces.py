"""Rows in pieces, with the kernel and without: what they are is written here, row by row."""

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import GAP, AnyPath, History, Path, RepeatPath
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.views import row_pieces
from rvtrace_gdb.views.instruction_text import InstructionText
from rvtrace_gdb.views.row_pieces import RowFrame, Stretch, TextRows
from tests.helpers.amounts import some_of
from tests.helpers.event_facts import lost


class Texts:
    """Text of any address, and of another program where scontext is 1. Notes which addresses it was asked for."""

    def __init__(self, name: str = "main") -> None:
        self.name, self.asked = name, list[set[int]]()

    def disassembler_of(self, context: ProgramContext) -> "Texts":
        return OTHER if context.scontext == 1 else self

    def texts(self, addresses: set[int], progress: object = None) -> dict[int, InstructionText]:
        assert not addresses & set().union(*self.asked), "each once"
        self.asked.append(addresses)
        return {pc: InstructionText(None, f"{self.name} {pc:x} ü\x1b" + "." * (pc % 90)) for pc in addresses}


OTHER = Texts("other")


class Numbered:
    """A shape."""

    raw = coloured = False

    def frame(self, hart: int, several: bool) -> RowFrame:
        return RowFrame("", "")

    def body(self, pc: int, text: InstructionText, xlen: int, raw: str) -> str:
        return text.instruction

    def gap(self, frame: RowFrame, number: int, what: str) -> str:
        return f"{frame.before}{number} gap"


def expected(stretches: Sequence[Stretch]) -> str:
    """Return the rows, written one by one."""
    rows = []
    for frame, history, begin, end in stretches:
        for number in range(begin, end):
            pc = history.pc(number - 1)
            name = "other" if history.context_at(number - 1).scontext == 1 else "main"
            body = f"{frame.after}{name} {pc:x} ü\\x1b" + "." * (pc % 90)
            rows.append(f"{frame.before}{number}{' gap' if pc == GAP else body}\n")
    return "".join(rows)


def paths() -> st.SearchStrategy[AnyPath]:
    """Paths of few different instructions, some in others, some of them often."""
    codes = st.lists(st.integers(0, 40), min_size=1, max_size=9).map(tuple)
    plain = st.lists(codes, min_size=1, max_size=3).map(Path)
    nested = st.lists(st.one_of(codes, plain), min_size=1, max_size=3).map(Path)
    return st.one_of(plain, nested, st.builds(RepeatPath, nested, st.integers(1, 30)))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Histories with gaps and changes of the program, in which few paths come again and again."""
    builder, few = HistoryBuilder(), draw(st.lists(paths(), min_size=1, max_size=4))
    for what in draw(st.lists(st.integers(-3, 3), max_size=25)):
        if what == -1:
            builder.gap(EventKind.LOSS, 0, lost("lost"))
            builder.resume(0, 1)
        elif what < -1:
            builder.context(ProgramContext(prv=0, scontext=what + 3))
        else:
            builder.append(few[what % len(few)])
    return builder.finish(Accounting(0, 0, 0, 0))


@pytest.mark.parametrize("compiled", [True, False])
@settings(derandomize=True, max_examples=some_of(60), deadline=None)
@given(data=st.data())
def test_rows_are_bodies_after_their_numbers(compiled: bool, data: st.DataObject) -> None:
    stretches: list[Stretch] = []
    for history in data.draw(st.lists(histories(), min_size=1, max_size=3)):
        begin = data.draw(st.integers(1, len(history) + 1))
        end = data.draw(st.integers(begin, len(history) + 1))
        stretches.append(Stretch(RowFrame("h\t" * (len(stretches) % 2), " :"), history, begin, end))
    limits = [data.draw(st.integers(1, most)) for most in (20, 60, 60)]
    OTHER.asked.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RVTRACE_KERNEL", str(int(compiled)))
        for name, limit in zip(("_AT_ONCE", "_LONG", "_KEPT"), limits, strict=True):
            patched.setattr(row_pieces, name, limit)
        rows = TextRows(Texts(), 64, Numbered())  # type: ignore[arg-type]
        for _ in range(2):  # what is known from the first time must be right the second time
            pieces = list(rows.pieces_of(stretches))
            assert b"".join(piece.text for piece in pieces).decode() == expected(stretches)
            assert [piece.number for piece in pieces] == [piece.text.count(b"\n") for piece in pieces]


def test_what_is_kept_of_entries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Histories that are listed one after the other share nothing."""
    if kernel() is None:
        pytest.skip("there is no kernel")
    monkeypatch.setattr(row_pieces, "_KEPT", 1000)
    texts = Texts()
    rows = TextRows(texts, 64, Numbered())  # type: ignore[arg-type]
    for _ in range(100):
        builder = HistoryBuilder()
        builder.append(Path([(1, 2, 3, 4)]))
        history = builder.finish(Accounting(0, 0, 0, 0))
        list(rows.pieces_of([Stretch(RowFrame("", ""), history, 1, 5)]))
    writer = rows._bodies_of(texts)._writer
    assert writer is not None
    assert writer.sizes()[1] <= 1000 / 16 + 1


@pytest.mark.parametrize("number", [1, 9, 99, 999_998, 2**63, 2**64 - 3])
def test_numbers_of_any_length(number: int) -> None:
    """The kernel counts up in decimal."""
    compiled = kernel()
    if compiled is None:
        pytest.skip("there is no kernel")
    writer, path = compiled.RowWriter(), Path([(0, 0, 0)])
    writer.learn(path, array("I", [writer.add(b"|\n")] * 3).tobytes())
    text, *_ = writer.write([path], 0, 0, 3, number, b"", b"")
    assert text.decode().split("|\n")[:-1] == [str(number + more) for more in range(3)]


def test_what_the_kernel_refuses() -> None:
    """Texts, entries and instructions that do not exist, and too much at once."""
    compiled = kernel()
    if compiled is None:
        pytest.skip("there is no kernel")
    writer, path = compiled.RowWriter(), Path([(0,)])
    for numbers in (b"", array("I", [0]).tobytes()):
        with pytest.raises(ValueError, match="no texts"):
            writer.learn(path, numbers)
    writer.learn(path, array("I", [writer.add(b"x")]).tobytes())
    with pytest.raises(ValueError, match="is known"):
        writer.repeat(path, path, 2)
    assert not writer.repeat(Path([(1,)]), Path([(1,)]), 2)
    twice = RepeatPath(path, 2)
    assert writer.repeat(twice, path, 2)
    for times in (0, 2**63):
        with pytest.raises(ValueError, match="counted"):
            writer.repeat(Path([(1,)]), twice, times)
    for at, first, count in ((1, 0, 1), (-1, 0, 1), (0, 1, 1)):
        with pytest.raises(IndexError):
            writer.write([path], at, first, count, 1, b"", b"")
    with pytest.raises(ValueError, match="at once"):
        writer.write([path], 0, 0, 1 << 17, 1, b"", b"")
    with pytest.raises(ValueError, match="beside"):
        writer.write([path], 0, 0, 1, 1, b"x" * 257, b"")
