"""`rvtrace report --html`: the report as a page for a browser."""

from collections.abc import Sequence
from pathlib import PurePath

from rvtrace_gdb.console.commands.report.captures import ProfiledTrace
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.output import CommandOutput
from rvtrace_gdb.reports.html.report import write_html
from rvtrace_gdb.session import report as session_report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.session.queries.reports.html_report import html_report
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.files import protect_inputs


def check_page(place: str, files: Sequence[str]) -> None:
    """Check that a page can be made, and overwrites none of the files that are read. Raises LibraryMissing,
    OutputError.
    """
    protect_inputs(place, files)
    library("jinja2", "jinja2", "--html")


def write_page(traced: ProfiledTrace, place: str, shown: CommandOutput) -> None:
    """Write the page of a trace. Raises OutputError, and as `html_report`."""
    session = Session()
    about = traced.trace.open(session)
    decoded = session.harts(progress=shown.progress)
    hint = hints_of_history(session.capture(), decoded, shown.progress)
    warnings = session.warnings()
    shown.say([*about, *session_report.histories(decoded.harts), *warnings, *hint])
    protect_inputs(place, [elf.path for elf, _ in decoded.program.all_programs.elves])
    title = PurePath(traced.trace.name).name
    page = html_report(session, Context(hart=traced.hart), title, warnings, shown.progress, traced.range)
    with shown.file(place) as (file, _):
        write_html(page, file)
    if shown.json:
        shown.facts({"file": place, "instructions": page.profile.instructions})
    elif place != "-":
        shown.say([f"The report is in {place}: open it in a browser."])
