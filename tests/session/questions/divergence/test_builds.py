"""Two builds of a program are compared by functions and lines: code that is elsewhere by now is the same."""

from pathlib import Path

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.session.questions.divergence.question import ComparedTrace
from tests.helpers.cross_compiler import compile_program
from tests.session.questions.divergence.runs import HERE, Run, compared, opened

SOURCE = (HERE / "parting.c").read_text()
ABOVE = "/* A comment.\n   More of it. */\nint unused(int a) { return a * 3; }\n"


def built(folder: Path, text: str) -> Run:
    folder.mkdir()
    (folder / "parting.c").write_text(text)
    return Run.of(compile_program(folder, folder / "parting.c", options=("-Wl,--build-id",)))


def traced(run: Run) -> ComparedTrace:
    return opened(run.traced(run.elf.parent / "run.rvt"), run.elf)


def test_code_that_moved_is_the_same(original: Run, original_trace: ComparedTrace, tmp_path: Path) -> None:
    moved = built(tmp_path / "moved", ABOVE + SOURCE)
    assert moved.pcs != original.pcs
    answer = compared(original_trace, traced(moved)).answer()
    assert answer.by == "lines" and answer.first is None and answer.same > 1000
    assert answer.differences == answer.rest == answer.other_rest == 0


def test_a_line_that_changed(original: Run, original_trace: ComparedTrace, tmp_path: Path) -> None:
    """Where it ran first, by the lines of what retired; and the other build's places have its own names."""
    before = "    case 5: return 19;"
    after = "    case 5:\n        result = 2;\n        return 19;"
    changed = built(tmp_path / "changed", ABOVE + SOURCE.replace(before, after))
    comparison = compared(original_trace, traced(changed))
    answer = comparison.answer()
    lines = SourceLines(Image.from_elf(original.elf))
    named = next(n for n, text in enumerate(SOURCE.splitlines(), 1) if text.startswith(before))
    at = next(k for k, pc in enumerate(original.pcs) if is_line(lines, pc, named))
    assert answer.by == "lines" and answer.first is not None and answer.differences >= 1
    assert answer.first.to_number == at + 1 and answer.first.to_line == f"parting.c:{named}"
    assert answer.first.other_to_line == f"parting.c:{named + 4}"
    image = Image.from_elf(changed.elf)
    its_lines = SourceLines(image)
    first = next(pc for pc in changed.pcs if is_line(its_lines, pc, named + 4))
    assert answer.first.other_to == (first, *(image.symbol(first) or ()))


def is_line(lines: SourceLines, pc: int, number: int) -> bool:
    row = lines.row(pc)
    return row is not None and row.path.endswith("parting.c") and row.line == number
