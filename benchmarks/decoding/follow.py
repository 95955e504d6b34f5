"""How fast a stream is followed. Run: python -m benchmarks.decoding.follow [MEGABYTES]

The reference encoder's stream, repeated to the given size (default 1 MB), comes in pieces as from a socket: decoded as
it arrives, and decoded whole in the same run; the ratio says more than the figures. Then the rows that are printed.
"""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.formats.stream import Arrived, StreamFollower, StreamSource
from rvtrace_gdb.views import text_rows
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.row_pieces import Stretch, TextRows

REFERENCE = Path(__file__).resolve().parents[2] / "tests" / "data" / "ntrace-reference"
PROGRAMS = ("dhrystone", "qsort", "mt-matmul")
Show = Callable[[Arrived], Iterator[str]]


def main() -> None:
    size = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 1_000_000
    print(f"following {size / 1e6:g} MB in pieces of up to 1460 bytes (CPU time; MB/s)")
    print(f"{'program':12}{'whole':>9}{'followed':>10}{'ratio':>7}{'events':>9}{'rows':>9}{'Mrows/s':>9}")
    for name in PROGRAMS:
        program = ContextImages(Image.from_elf(REFERENCE / f"{name}.elf"))
        once = (REFERENCE / f"{name}.1.nex").read_bytes()
        data = once * max(1, size // len(once))
        begin = process_time()
        decode(data, program, Options())
        whole = len(data) / (process_time() - begin) / 1e6
        with Disassemblers(program) as source:
            followed, _ = measure(data, program, lambda arrived: iter(()))
            told, _ = measure(
                data, program,
                lambda one, program=program: (  # type: ignore[misc]
                    text_rows.event_line(one.piece.history, it, program) for it in one.piece.events
                ),
            )
            part = data[: len(data) // 8]
            made, frame = TextRows(source, program.xlen, text_rows.Modifiers()), text_rows.Modifiers().frame(0, False)
            listed, rows = measure(part, program, lambda one, made=made, frame=frame: made.rows_of(  # type: ignore[misc]
                [Stretch(frame, one.piece.history, one.piece.begin + 1, one.piece.end + 1)]))  # fmt: skip
        pace = rows / (len(part) / listed / 1e6) / 1e6
        print(f"{name:12}{whole:9.2f}{followed:10.2f}{followed / whole:7.2f}{told:9.2f}{listed:9.2f}{pace:9.2f}")


def measure(data: bytes, program: ContextImages, show: Show) -> tuple[float, int]:
    """Megabytes per second, and how many rows *show* made."""
    rng, at, rows = random.Random(1), 0, 0
    following = StreamFollower(StreamSource(Options(), None, alone=True), program)
    begin = process_time()
    while at < len(data):
        step = rng.randint(1, 1460)
        for arrived in following.feed(data[at : at + step]):
            rows += sum(1 for _ in show(arrived))
        at += step
    for arrived in following.finish():
        rows += sum(1 for _ in show(arrived))
    return len(data) / (process_time() - begin) / 1e6, rows


if __name__ == "__main__":
    main()
