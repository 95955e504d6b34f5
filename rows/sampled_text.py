"""A sampled report, as lines for people and as fields for programs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rvtrace_gdb.rows.list_text import TextPaint
from rvtrace_gdb.rows.sampled_rows import SampledCall, SampledPlace, SampledReport

_SURE = 1.96  # standard deviations on both sides of 95 % of a normal distribution


def sampled_lines(report: SampledReport, paint: TextPaint) -> Iterator[str]:
    """Yield the lines of a report."""
    harts = f"Hart {report.harts[0]}" if len(report.harts) == 1 else "All harts"
    samples = _samples_text(report.samples, "PC sample")
    yield paint("heading", f"{harts}: {samples}, no flow: what ran between is not known.")
    if report.placeless:
        yield paint("gap", f"The place of {report.placeless} of them is not known: no whole address came before.")
    if report.losses:
        places = _samples_text(report.losses, "place")
        yield paint("gap", f"At {places} trace is lost or does not match the program: `trace gaps` lists them.")
    placed = report.samples - report.placeless
    for title, rows, name in (("Functions", report.functions, "functions"), ("Lines", report.lines, "lines")):
        if rows:
            yield from ("", paint("heading", f"{title}:"), f"{'samples':>12}{'share':>18}")
            yield from (_place_line(row, placed, paint) for row in rows)
            yield from _more(report, name)
    if report.calls:
        yield from ("", paint("heading", "Calls that the encoder reported:"), f"{'calls':>12}")
        yield from (_call_line(row, paint) for row in report.calls)
        yield from _more(report, "calls")
    if report.unended:
        yield paint("gap", f"The target of {_samples_text(report.unended, 'call')} is not known.")


def _place_line(row: SampledPlace, placed: int, paint: TextPaint) -> str:
    share = row.samples / placed
    unsure = _SURE * math.sqrt(share * (1 - share) / placed)
    return f"{row.samples:>12}{f'{share:.1%} +-{100 * unsure:.1f}':>18}  {paint('function', row.name)}"


def _call_line(row: SampledCall, paint: TextPaint) -> str:
    return f"{row.calls:>12}  {paint('function', row.caller)} -> {paint('function', row.callee)}"


def _more(report: SampledReport, name: str) -> Sequence[str]:
    return [f"({report.more[name]} more)"] if report.more.get(name) else []


def sampled_fields(report: SampledReport) -> dict[str, Any]:
    """Return the fields of a report for programs."""
    return {
        "sampled": 1,
        "harts": list(report.harts),
        "samples": report.samples,
        "placeless": report.placeless,
        "losses": report.losses,
        "functions": [row._asdict() for row in report.functions],
        "lines": [row._asdict() for row in report.lines],
        "calls": [row._asdict() for row in report.calls],
        "calls-without-target": report.unended,
        "more": dict(report.more),
    }


def _samples_text(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
