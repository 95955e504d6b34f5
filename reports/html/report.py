"""The page of a report, from its figures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import BinaryIO, NamedTuple

from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import Trap, TrapKind
from rvtrace_gdb.reports.html.figures import SourcePage, flame_nodes, function_name
from rvtrace_gdb.reports.html.histograms import HistogramPicture, IntervalFigures, picture
from rvtrace_gdb.reports.html.timeline import PageTimeline
from rvtrace_gdb.reports.profile import hottest
from rvtrace_gdb.reports.profile.model import GapPlace, Profile
from rvtrace_gdb.support.text import printable

SCRIPTS = ("common.js", "timeline_view.js", "timeline.js", "flame.js", "source.js", "tables.js")
FUNCTIONS = 2_000
"""So many functions the table of calls has at most, the hottest."""
_FOLDER = resources.files("rvtrace_gdb.reports.html") / "page"


@dataclass
class HtmlReport:
    """What a page shows.

    title      what was traced: the name of the capture
    made_by    the program that made the page, with its version
    profile    of all harts together
    timelines  of each hart
    sources    the source files of the programs
    intervals  statistics, with a histogram each
    remarks    what a reader should know: warnings of the decoder
    """

    title: str
    made_by: str
    profile: Profile
    timelines: list[PageTimeline] = field(default_factory=list)
    sources: list[SourcePage] = field(default_factory=list)
    intervals: list[IntervalFigures] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


class PageFunction(NamedTuple):
    """A row of the table of calls, see `hottest.FunctionProfile`; shares in percent; ticks as texts."""

    name: str
    calls: int
    own: int
    own_share: float
    total: int
    total_share: float
    own_ticks: str
    total_ticks: str


class PageGap(NamedTuple):
    """Something is missing: so many *times*, for a *cause*; *lost*: it was traced, or should have been."""

    cause: str
    lost: bool
    times: int
    size: int
    places: list[str]


class PageTrap(NamedTuple):
    """Traps of a cause: how many *times*; the least, mean and greatest number of instructions and of ticks they took,
    "" where no duration is known.
    """

    cause: str
    times: int
    instructions: str
    ticks: str


def write_html(report: HtmlReport, file: BinaryIO) -> None:
    """Write the page of a report: HTML in UTF-8 that needs no other file.

    Raises ImportError without `jinja2`, OSError.
    """
    from jinja2 import Environment, StrictUndefined  # of the extra `views`: the figures need no library

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["number"] = "{:,}".format
    template = environment.from_string((_FOLDER / "report.html.jinja").read_text(encoding="utf-8"))
    profile = report.profile
    page = template.stream(
        report=report,
        title=printable(report.title),
        profile=profile,
        ticks=sum(hart.ticks or 0 for hart in profile.harts),
        gaps=sum(hart.gaps for hart in profile.harts),
        functions=list(_function_rows(profile))[:FUNCTIONS],
        left_out=max(len({node.function for node in profile.tree}) - FUNCTIONS, 0),
        missing=list(_missing_rows(profile)),
        traps=list(_trap_rows(profile)),
        pictures=pictures(report.intervals),
        data=_data(report),
        style=(_FOLDER / "report.css").read_text(encoding="utf-8"),
        script="\n".join((_FOLDER / name).read_text(encoding="utf-8") for name in SCRIPTS),
    )
    page.enable_buffering(64)
    for text in page:
        file.write(text.encode("utf-8", "replace"))


def pictures(intervals: Sequence[IntervalFigures]) -> list[HistogramPicture]:
    """Return the pictures of histograms."""
    return [picture(one) for one in intervals]


def _data(report: HtmlReport) -> dict[str, object]:
    """Return what the scripts read."""
    return {
        "ticks": report.profile.has_ticks,
        "harts": [{**it._asdict(), "rows": [row._asdict() for row in it.rows]} for it in report.timelines],
        "flame": [list(column) for column in zip(*flame_nodes(report.profile), strict=True)],
        "sources": [it._asdict() for it in report.sources],
    }


def _function_rows(profile: Profile) -> Iterator[PageFunction]:
    whole = max(profile.instructions, 1)
    for it in hottest.hot_functions(profile):
        name = function_name(profile, it.function)
        own, total = 100 * it.own / whole, 100 * it.total / whole
        ticks = _ticks(it.own_ticks, it.own_estimate), _ticks(it.total_ticks, it.total_estimate)
        yield PageFunction(name, it.calls, it.own, own, it.total, total, *ticks)


def _ticks(ticks: int, estimate: int) -> str:
    """Return a number of ticks, of which some are an estimate."""
    return f"{'~' if estimate else ''}{ticks:,}"


def _missing_rows(profile: Profile) -> Iterator[PageGap]:
    for cause, tally in sorted(profile.gaps.items(), key=lambda it: (not it[0].lost, -it[1].times, it[0])):
        places = [_place(place) for place in tally.places[:10]]
        text = printable(tally.places[0].text if tally.places else cause.cause)
        yield PageGap(text, cause.lost, tally.times, tally.size, places)


def _place(place: GapPlace) -> str:
    where = f"hart {place.hart}, before instruction {place.number:,}"
    return f"{where}, {place.size:,} bytes of trace" if place.size else where


def _trap_rows(profile: Profile) -> Iterator[PageTrap]:
    for cause, tally in sorted(profile.traps.items(), key=lambda it: (-it[1].times, str(it[0]))):
        texts = (
            f"{it.least:,} / {it.total / it.times:,.1f} / {it.most:,}" if it.times else ""
            for it in (tally.instructions, tally.ticks)
        )
        yield PageTrap(printable(fact_text(Trap(TrapKind(cause.kind), cause.cause))), tally.times, *texts)
