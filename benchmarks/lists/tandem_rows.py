"""How fast the groups of tandem traces become text. Run: python -m benchmarks.lists.tandem_rows [GROUPS]

The traces of real cores, repeated to the given number of groups (default 30,000), and to ten times as many. In each
form of output: rows that are filled into templates, and, of the shorter trace, the same rows made one by one. CPU time
for each group; the ratios say more than it does, which depends on the machine.
"""

import io
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.tandem import DATA, TRACES
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import decode
from rvtrace_gdb.decode.tandem.trace import TraceGroups
from rvtrace_gdb.session.exports.logs.commits import Spelling
from rvtrace_gdb.session.exports.logs.riscv_dv import TraceCsv
from rvtrace_gdb.session.exports.logs.spike_log import SpikeLog
from rvtrace_gdb.support.text import rows
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.tandem.group_rows import GroupObjects, GroupWords, pages
from rvtrace_gdb.views.tandem.groups import Groups, GroupTexts, Row
from rvtrace_gdb.views.tandem.plain_rows import PlainRows

Made = tuple[Callable[[Row], Iterable[str]], PlainRows]


def words(groups: Groups, texts: GroupTexts) -> Made:
    shape = GroupWords(groups, texts)
    return shape.lines, PlainRows(groups, texts.learn, shape.lines, symbol=texts.symbol)


def objects(groups: Groups, texts: GroupTexts) -> Made:
    shape = GroupObjects(groups, texts, 0)
    return shape.lines, PlainRows(groups, texts.learn, shape.lines, symbol=texts.symbol)


def spike(groups: Groups, texts: GroupTexts) -> Made:
    spelling = Spelling(texts, groups.parameters.xlen)
    log, other = (SpikeLog(groups, spelling, 0, {}) for _ in range(2))
    filled = PlainRows(
        groups, spelling.learn, lambda row: log.lines([row]), log.plain_commit, before=log.listed_again,
        caption=spelling.text,
    )  # fmt: skip
    return lambda row: other.lines([row]), filled


def table(groups: Groups, texts: GroupTexts) -> Made:
    shape = TraceCsv(groups, Spelling(texts, groups.parameters.xlen))

    def render(row: Row) -> Iterable[str]:
        return shape.lines([row])

    return render, PlainRows(groups, Spelling(texts, groups.parameters.xlen).learn, render)


FORMS = {"show": words, "show --json": objects, "spike": spike, "riscv-dv": table}


def main() -> None:
    count = int(float(sys.argv[1])) if len(sys.argv) > 1 else 30_000
    print(f"{'CPU microseconds for each group':32}{'one by one':>12}{'filled':>10}{'ratio':>8}{'10 times longer':>18}")
    for name in TRACES:
        short, longer = opened(name, count), opened(name, 10 * count)
        for form, make in FORMS.items():
            single, filled = one_by_one(*short, make), all_filled(*short, make)
            cells = f"{single:12.1f}{filled:10.1f}{single / filled:8.1f}{all_filled(*longer, make):18.1f}"
            print(f"{name + ' ' + form:32}{cells}")


def opened(name: str, count: int) -> tuple[Groups, ContextImages]:
    once, parameters = (DATA / "tandem" / f"{name}.tvt").read_bytes(), TRACES[name]
    image = Image.from_elf(DATA / "riscv-tests" / name.partition("_")[2])
    repeated = once * max(1, count // len(TraceGroups.from_bytes(once, parameters)))
    return Groups(decode(repeated, image, parameters)), ContextImages(image)


def one_by_one(groups: Groups, images: ContextImages, make: Callable[[Groups, GroupTexts], Made]) -> float:
    with Disassemblers(images) as source:
        texts = GroupTexts(source, images, groups.parameters.xlen)
        render, _ = make(groups, texts)
        begin = process_time()
        for page in pages(groups, texts, range(len(groups))):
            io.StringIO().write(rows([line for row in page for line in render(row)] or [""]))
        return (process_time() - begin) / len(groups) * 1e6


def all_filled(groups: Groups, images: ContextImages, make: Callable[[Groups, GroupTexts], Made]) -> float:
    with Disassemblers(images) as source:
        _, filled = make(groups, GroupTexts(source, images, groups.parameters.xlen))
        begin = process_time()
        for lines in filled.pages(range(len(groups))):
            io.StringIO().write(rows(lines or [""]))
        return (process_time() - begin) / len(groups) * 1e6


if __name__ == "__main__":
    main()
