"""The method of the session protocol for reports, see `session.queries.reports.report`.

    report {context, args, hart, all, sections, top, depth, each} -> {lines, overwritten, reports, sampled}

*hart*: of which; with *all*, of all harts; else the context's. *args*: a RANGE as in `trace history` ("": everything).
*sections*: names of `rows.report_rows.SECTIONS`, null for the
usual ones. *top*, *depth*: how many rows of each, and how many
levels of calls; 0: all, null: the usual. *each*: every hart, too. *reports*: `rows.report_rows.ProfileReport`;
*overwritten*: whether older trace was overwritten. *sampled*: of a trace without a flow,
`rows.sampled_rows.SampledReport` instead. Of what a task, a process or a thread ran alone: the parameters are in
`session.rpc.lists.parts`.
"""

from collections.abc import Callable, Mapping

from rvtrace_gdb.rows.report_rows import DEPTH, INTERVALS, SECTIONS, TOP, USUAL
from rvtrace_gdb.session.errors import NoFlow
from rvtrace_gdb.session.queries.reports.report import ReportChoice, hart_profiles, reports
from rvtrace_gdb.session.queries.reports.sampled import sampled_reports
from rvtrace_gdb.session.rpc.lists.parts import counted_parts
from rvtrace_gdb.session.rpc.protocol import BadRequest, JsonMessage, Params
from rvtrace_gdb.session.rpc.requested_harts import requested_harts
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def profile_reports(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return reports, see the module. Raises BadRequest, RangeError, and as `Session.selected`."""
    sections = params.texts("sections") if params.given("sections") else list(USUAL)
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown:
        raise BadRequest(f"report: there is no section {unknown[0]}: they are {', '.join(SECTIONS)}")
    top, depth = params.optional_number("top"), params.optional_number("depth")
    choice = ReportChoice(
        sections, TOP if top is None else top, DEPTH if depth is None else depth, each=params.given("each")
    )
    try:
        context, selected = requested_harts(session, params, progress)
    except NoFlow:
        hart = None if params.given("all") else params.optional_number("hart")
        sampled = sampled_reports(session, hart, choice.sections, choice.top, progress, each=choice.each)
        if not sampled:
            raise
        return {"lines": session.warnings(), "overwritten": False, "reports": [], "sampled": sampled}
    args, intervals = params.text("args", ""), INTERVALS in sections
    parts_of = counted_parts(session, params.shown_alone(), progress)
    profiles = hart_profiles(session, context, args, intervals=intervals, parts_of=parts_of, progress=progress)
    return {
        "lines": selected.lines,
        "overwritten": selected.overwritten,
        "reports": reports(list(profiles.values()), choice),
        "sampled": [],
    }


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"report": profile_reports}
