"""The rows of `trace tasks` in a terminal of 80 columns, and what is said where much is not known."""

import pytest

from rvtrace_gdb.rows.explain_text import ExplainSymbols
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.task_rows import HartNumber, TaskRow, TasksAnswer
from rvtrace_gdb.rows.task_text import more_task_lines, task_lines


class Plain:
    """Text without colours."""

    def address_text(self, place: Place) -> str:
        raise AssertionError(place)

    def paint(self, what: str, text: str) -> str:
        return text


def row(name: str, number: int | None, address: int, *, time: int | None = None, harts: int = 1) -> TaskRow:
    first, last = HartNumber(0, 10**8), HartNumber(0, 2 * 10**9)
    return TaskRow(
        name, address, number, name, False, list(range(harts)), 123_456, 10**9, time, first, last, "suspended",
        ["memory", "stack pointer"],
    )  # fmt: skip


def answer(rows: list[TaskRow], unknown: int = 0) -> TasksAnswer:
    return TasksAnswer("FreeRTOS", [0, 1], 10**10, 0, unknown, rows, [], [])


@pytest.mark.parametrize("time", [None, 10**12])
@pytest.mark.parametrize("harts", [1, 4])
def test_rows_have_80_columns_whatever_is_in_them(time: int | None, harts: int) -> None:
    rows = [row(f"{'a long name ' * 4}{n}", n, 0x8000_0000 + n, time=time, harts=harts) for n in range(3)]
    found = answer(rows)._replace(harts=list(range(harts)))
    symbols: ExplainSymbols = Plain()
    lines = [*task_lines(found, symbols, switches=False), *more_task_lines(found, symbols, 1, 2, switches=False)]
    assert len(lines) == 7 and max(map(len, lines)) <= 80, lines
    assert all("123456" in line and "a long" in line and f"({n}, sp)" in line for n, line in enumerate(lines[2:5]))
    assert lines[5:] == lines[3:5]


def test_an_address_is_shown_where_nothing_else_tells_two_tasks_apart() -> None:
    rows = [row("same", None, 0x8000_1000), row("same", None, 0x8000_2000), row("other", 3, 0x8000_3000)]
    _, _, one, two, other, *_ = task_lines(answer(rows), Plain(), switches=False)
    assert one.endswith("same  (0x80001000, sp)") and two.endswith("same  (0x80002000, sp)")
    assert other.endswith("other  (3, sp)")


@pytest.mark.parametrize(("unknown", "is_said"), [(10**7, False), (5 * 10**9, True)])
def test_what_helps_is_said_where_much_is_not_known(unknown: int, is_said: bool) -> None:
    """Of several harts memory of the beginning does not help."""
    of_one = ("`trace start -with-memory`", "`set trace save-memory ADDRESS,+SIZE`", "`trace start -context`")
    for harts, remedies in (([0], of_one), ([0, 1], ("`trace start -context`", "all harts are halted"))):
        lines = list(task_lines(answer([], unknown)._replace(harts=harts), Plain(), switches=True))
        text = " ".join(line.strip() for line in lines)
        assert [remedy in text for remedy in remedies] == [is_said] * len(remedies)
        assert len(harts) == 1 or "-with-memory" not in text
        assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("harts", [[0], [0, 1]])
def test_a_kernel_of_which_all_is_there_is_not_asked_for_more(harts: list[int]) -> None:
    """Contexts and the end are in the trace: a turn without user mode is not known all the same."""
    by_context = row("context 5", 5, 0)._replace(sources=["context"], state="")
    at_end = row("init", 1, 0x8000_1000)
    for rows, missing in (
        ([by_context, at_end], []), ([by_context], ["save-memory"]), ([at_end], ["-context"]),
        ([], ["-context", "save-memory"]),
    ):  # fmt: skip
        found = answer(rows, 5 * 10**9)._replace(system="Linux", harts=harts)
        text = " ".join(line.strip() for line in task_lines(found, Plain(), switches=False))
        assert [it for it in ("-context", "save-memory") if it in text] == missing
        assert ("threads of the kernel" in text) == (not missing)
