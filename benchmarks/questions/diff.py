"""How long it takes to find where two runs part, and what differs.

Run: python benchmarks/questions/diff.py [MILLION_INSTRUCTIONS]

The program `mixed` of benchmarks/programs runs on the simulated hart and is encoded in two formats; the decoded
histories are repeated up to 10^5, 10^7 and 10^8 instructions (default: 100 million). Each is compared with itself as it
was decoded from another format (`same`: the decoders cut it into other paths), and with itself after 100 of its pieces
were cut out (`100 cuts`, half of them near the end of another one). CPU seconds, and how many stretches were found. A
comparison never visits what both have instruction by instruction, so its time grows with the entries of a history.
"""

import sys
from array import array
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import cpu_seconds, histories
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import INDEX_STRIDE, AnyPath, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.divergence.alignment import FlowSide
from rvtrace_gdb.session.questions.divergence.comparison import ComparedSide, FlowComparison, compare
from rvtrace_gdb.session.questions.divergence.flow import Flow, HistorySymbols
from rvtrace_gdb.session.questions.divergence.waiting import WaitingLoops

CUTS = 100


def main() -> None:
    most = float(sys.argv[1]) if len(sys.argv) > 1 else 100
    (_, one, image), (_, other, _) = islice(histories("mixed", 0.1 / (most if len(sys.argv) > 1 else 60)), 0, 4, 3)
    print(f"{'instructions':>14}{'entries':>10}{'same':>10}{'100 cuts':>10}{'found':>8}")
    for size in sorted({1e5, 1e7, most * 1e6}):
        if size <= most * 1e6:
            measure(repeated(one, size), repeated(other, size), image)


def repeated(history: History, size: float) -> list[AnyPath]:
    """The entries of a history, again and again."""
    times = max(round(size / len(history)), 1)
    return [*history.entries] * times


def with_entries(entries: list[AnyPath]) -> History:
    begins = list(accumulate(map(len, entries), initial=0))
    return History(entries, array("Q", begins[:-1:INDEX_STRIDE]), begins[-1], (), (), Accounting(0, 0, 0, 0))


def side(entries: list[AnyPath], image: Image) -> ComparedSide:
    history, program = with_entries(entries), ContextImages(image)
    flow = Flow(HistorySymbols(history, None), ())
    return ComparedSide(FlowSide(flow, program, None), WaitingLoops(flow, flow, program), False)


def compare_with(one: list[AnyPath], other: list[AnyPath], image: Image, into: list[FlowComparison]) -> None:
    into.append(compare(side(one, image), side(other, image)))


def measure(one: list[AnyPath], other: list[AnyPath], image: Image) -> None:
    """One line."""
    random, cut = Random(1), list(one)
    for _ in range(CUTS):
        at = random.randrange(len(cut) - 8)
        del cut[at : at + 1 + random.randrange(4)]
    found: list[FlowComparison] = []
    seconds = [cpu_seconds(partial(compare_with, one, entries, image, found)) for entries in (other, cut)]
    assert found[0].divergence is None
    print(
        f"{sum(map(len, one)):14}{len(one):10}" + "".join(f"{it:10.2f}" for it in seconds)
        + f"{len(found[1].stretches):8}", flush=True,
    )  # fmt: skip


main()
