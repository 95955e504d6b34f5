"""`make fuzz`: damaged inputs of every kind, a line for each, and what was found."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.exercise import Input
from tests.fuzz.findings import HOME, Finding
from tests.fuzz.kinds import BY_NAME, KINDS, PROCESS_SHARE, Kind, chosen
from tests.fuzz.supervisor import Result, Supervisor
from tests.fuzz.worker import Limits, Noted, Worker, exercise_of

FOLDER = HOME / "build" / "fuzz"


def main() -> int:
    """Exit status 1: something was found."""
    args = _arguments()
    if args.list:
        sys.stdout.write("".join(f"{kind.name}\n" for kind in KINDS))
        return 0
    if args.replay is not None:
        return _replay(args.replay)
    kinds, found = chosen(args.kinds), False
    for kind in kinds:
        kind.factory()  # what is loaded now is loaded once
    for result in _results(args, kinds):
        sys.stdout.write(result.line + "\n")
        for place, finding in result.found.items():
            found = True
            sys.stdout.write(_told(finding, result, result.times[place], args.seed))
        sys.stdout.flush()
        if result.interrupted:
            break
    return int(found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="inputs of each kind; a 40th where they take a process")
    parser.add_argument("--seed", type=int, default=1, help="each is a set of inputs of its own")
    parser.add_argument("--kinds", nargs="*", default=[], help="by the beginning of their names; default: all")
    parser.add_argument("--jobs", type=int, default=1, help="kinds at a time")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--list", action="store_true", help="the names of the kinds")
    parser.add_argument("--replay", type=Path, help="try an input that was saved, without any limit")
    return parser.parse_args()


def _results(args: argparse.Namespace, kinds: list[Kind]) -> Iterator[Result]:
    do = partial(_run, seed=args.seed, first=args.first, count=args.count)
    if args.jobs == 1:
        yield from map(do, kinds)
        return
    with ProcessPoolExecutor(args.jobs, get_context("fork"), max_tasks_per_child=None) as pool:
        yield from pool.map(do, kinds)


def _run(kind: Kind, seed: int, first: int, count: int) -> Result:
    if kind.process:
        count = max(count // PROCESS_SHARE, 1)
    return Supervisor(kind, seed, first, count, Limits()).run()


def _told(finding: Finding, result: Result, times: int, seed: int) -> str:
    """A finding, and how to see it again."""
    name = "-".join([result.kind, finding.variant.replace("/", "_")[:60] or "it", str(seed), str(finding.number)])
    file = FOLDER / f"{name}.bin"
    FOLDER.mkdir(parents=True, exist_ok=True)
    file.write_bytes(finding.data)
    again = f"python -m tests.fuzz --kinds {result.kind} --seed {seed} --first {finding.number} --count 1"
    about = f"kind {result.kind}\nvariant {finding.variant}\n{again}\n\n{finding.text}"
    file.with_suffix(".txt").write_text(about)
    show = os.path.relpath(file)
    return (
        f"  {finding.kind}, {times} times: {finding.where}\n    {again}\n"
        f"    python -m tests.fuzz --replay {show} ({len(finding.data)} bytes; the traceback is beside it)\n"
    )


def _replay(file: Path) -> int:
    """Try an input that was saved."""
    told = file.with_suffix(".txt").read_text().splitlines()
    kind, variant = (line.partition(" ")[2] for line in told[:2])
    exercise = exercise_of(BY_NAME[kind].factory())
    data = file.read_bytes()
    exercise.isolate()
    with open(os.devnull, "wb") as nothing:
        tried = Input(variant, data)
        error = Worker(kind, exercise, 0, Limits(0), Noted(), nothing).error_of(tried)
    exercise.close()
    if error is not None:
        raise error
    return 0


if __name__ == "__main__":
    sys.exit(main())
