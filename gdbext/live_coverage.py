"""`trace coverage -live`: how much of the program has run so far, again and again while it runs."""

from __future__ import annotations

import time
from typing import Any

import gdb

from rvtrace_gdb.gdbext import results
from rvtrace_gdb.gdbext.text import print_line, printable
from rvtrace_gdb.gdbext.tracer import print_lines, tracer

_PAUSE = 1.0  # seconds between two read-outs
_NAMES_AT_MOST = 3


def watch(argument: str) -> None:
    """Print the coverage each time that it has changed. *argument*: for how many seconds, "": until the program stops,
    or Ctrl-C. Raises gdb.GdbError.
    """
    seconds = _seconds(argument)
    begin, shown, answer = time.monotonic(), None, _request(begin=True)
    print_lines(answer)
    try:
        while True:
            if answer["total"] != shown:
                shown = answer["total"]
                gdb.write(f"{_line(time.monotonic() - begin, answer)}\n")
                gdb.flush()
            if not answer["running"] or (seconds is not None and time.monotonic() - begin >= seconds):
                break
            time.sleep(_PAUSE)
            answer = _request(begin=False)
    except KeyboardInterrupt:
        gdb.write("Not watched any more; the program goes on.\n")
    _show_files(answer)


def _seconds(argument: str) -> float | None:
    if not argument:
        return None
    if not argument.isdecimal():
        raise gdb.GdbError(f"trace coverage -live: {argument} is not a number of seconds")
    return float(argument)


def _request(*, begin: bool) -> Any:
    given = {"begin": True} if begin else {}
    return tracer().request("coverage_live", context=tracer().context(), **given)


def _line(seconds: float, answer: Any) -> str:
    """Return the line of a read-out: the shares of everything, and which functions are new."""
    shares = ", ".join(f"{measure} {_share(row)}" for _, measure, *row in answer["total"] if measure != "decisions")
    names = [printable(name) for name in answer["functions"]]
    more = f" and {len(names) - _NAMES_AT_MOST} more" if len(names) > _NAMES_AT_MOST else ""
    new = f"; new: {', '.join(names[:_NAMES_AT_MOST])}{more}" if names else ""
    return f"{seconds:6.1f} s: {shares}{new}"


def _share(row: list[int]) -> str:
    covered, uncovered, unknown = row
    known = covered + uncovered
    percent = f"{100 * covered // known}%" if known else "-"
    return f"{covered}/{known} {percent}{'?' if unknown else ''}"


def _show_files(answer: Any) -> None:
    """Print the table of the source files, as `rvtrace coverage --files` does."""
    files: dict[str, dict[str, list[int]]] = {}
    for path, measure, *row in [*answer["files"], *answer["total"]]:
        files.setdefault(path, {})[measure] = row
    measures = list(files.get("", {}))
    print("".join(f"{measure:>14}" for measure in measures) + "  file")
    for path, shares in files.items():
        row = {measure: dict(zip(("covered", "uncovered", "unknown"), shares[measure])) for measure in measures}
        results.add({"files": [{"file": path or "all files", **row}]})
        texts = "".join(f"{_share(shares[measure]) if sum(shares[measure]) else '-':>14}" for measure in measures)
        print_line(f"{texts}  {printable(path) if path else 'all files'}")
    if any(unknown for shares in files.values() for _, _, unknown in shares.values()):
        print("?: some may have run in trace that was overwritten, or in gaps, and are not counted.")
