"""What a program has covered so far, read out again and again, against what another machine executes."""

from bisect import bisect_right
from collections import Counter
from contextlib import closing
from itertools import islice
from pathlib import Path

from rvtrace_gdb.decode.coverage import functions
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.top_rows import top_table_of
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import silent
from tests.session.board import DEMO, board, executed


def ran(instructions: int) -> set[str]:
    """The functions of which something runs in so many instructions."""
    code = functions(Image.from_elf(DEMO))
    starts = [function.start for function in code]
    return {code[bisect_right(starts, pc) - 1].name for pc in islice(executed(), instructions)}


def test_each_read_out_adds_what_it_shows(tmp_path: Path) -> None:
    """With a buffer that has forgotten the beginning when it is read out again."""
    demo = board(tmp_path)
    context = demo.describe(size=64)
    seen: set[str] = set()
    covered: list[int] = []
    total = 0
    with closing(Session(demo.connect, {})) as session:
        session.start(context)
        methods = Methods(session)
        asked = {"context": {"elf": context.elf, "target_file": context.target_file}}
        for number in range(6):
            total += demo.run(40)
            answer = methods.call("coverage_live", {**asked, **({} if number else {"begin": True})}, silent)
            assert not seen & set(answer["functions"])  # each is new once
            seen |= set(answer["functions"])
            covered.append(next(row[2] for row in answer["total"] if row[1] == "lines"))
            assert answer["running"] is False
        assert session.selected(context).overwritten
        assert covered == sorted(covered) and covered[-1] > covered[0]
        assert seen == ran(total)
        again = methods.call("coverage_live", {**asked, "begin": True}, silent)
        assert set(again["functions"]) <= seen


def test_what_ran_most_so_far(tmp_path: Path) -> None:
    """With a buffer that has room for everything, and with one that has not: of that no rate is known."""
    for size in (1 << 16, 64):
        folder = tmp_path / str(size)
        folder.mkdir()
        demo = board(folder)
        context = demo.describe(size=size)
        total, counted = 0, 0
        with closing(Session(demo.connect, {})) as session:
            session.start(context)
            methods = Methods(session)
            asked = {"context": {"elf": context.elf, "target_file": context.target_file}}
            for number in range(4):
                total += demo.run(100)
                begin = {} if number else {"begin": True, "top": 0}
                answer = methods.call("top", {**asked, **begin}, silent)
                table = top_table_of(answer["table"])
                assert answer["running"] is False
                if size > 64:
                    functions = {row.place[1]: row.times for row in table.sections["functions"] if row.place}
                    assert functions == instructions(table.instructions)
                    assert table.since == table.instructions - counted and table.seconds > 0
                    counted = table.instructions
                    assert total - 8 <= counted <= total  # what waits for a message is not in the buffer yet
            assert answer["overwritten"] is (size == 64)
            assert not table.seconds or size > 64
            assert table.instructions < total or size > 64


def instructions(number: int) -> Counter[str]:
    """How many of the first instructions are in which function."""
    code = functions(Image.from_elf(DEMO))
    starts = [function.start for function in code]
    return Counter(code[bisect_right(starts, pc) - 1].name for pc in islice(executed(), number))
