"""How long it takes to count how often each instruction of a long history ran.

Run: python benchmarks/coverage.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

The programs of benchmarks/programs run on the simulated hart (default: 60 million instructions of `mixed`, a third of
that of `random`, which never repeats itself) and are traced as in benchmarks/long_runs.py. Milliseconds of CPU time:
counting the whole history, its second half, the table of functions after that, and the counts of one function.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parent))

from long_runs import MARCH, PROGRAMS, SETTINGS, executed

from decode.contexts import ContextImages
from decode.counts import counts
from decode.history import History
from decode.image import Image
from session.coverage import Coverage
from tests.compiling import compile_program


def main() -> None:
    count = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 60_000_000
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"{'':27}{'Minstr':>8}{'entries':>10}{'counting':>10}{'a half':>10}{'table':>10}{'function':>10}")
    with tempfile.TemporaryDirectory() as folder:
        for program in ("mixed", "random"):
            elf = compile_program(Path(folder), PROGRAMS / f"{program}.c", march=MARCH, options=("-O2",))
            items = list(executed(elf, count if program == "mixed" else count // 3))
            for setting in (setting for setting in SETTINGS if wanted in setting.name):
                image = Image.from_elf(elf)
                decoder = setting.decoder(image, None)
                decoder.feed(b"".join(setting.encode(items)))
                measure(f"{program}, {setting.name}", decoder.finish(), image)


def measure(name: str, history: History, image: Image) -> None:
    """One line."""
    whole = timed(lambda: counts(history))
    half = timed(lambda: counts(history, [range(len(history) // 2, len(history))]))
    coverage = Coverage(history, ContextImages(image))
    coverage.counted()
    table = timed(lambda: coverage.functions())
    begin, end = max(coverage.functions(), key=lambda row: row.ran)[:2]
    function = timed(lambda: coverage.addresses(begin, end))
    shown = "".join(f"{1e3 * seconds:10.1f}" for seconds in (whole, half, table, function))
    print(f"{name:27}{history.instructions / 1e6:8.1f}{len(history.entries):10}{shown}", flush=True)


def timed(work: Callable[[], object]) -> float:
    """CPU seconds."""
    begin = process_time()
    work()
    return process_time() - begin


if __name__ == "__main__":
    main()
