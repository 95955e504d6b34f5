"""The methods of the session protocol for profiles that compilers and linkers read, see `session.exports.pgo.profile`.

    pgo_forms {} -> {rows: [[name, help], ...]}
    pgo {context, name, path, hart, program, gcno} -> {lines, facts}

*name*: that of a form; *path*: the file to write, which exists as a whole afterwards, or not at all. *hart*: the hart
that counts; without it, all. *program*: the name of the program's file, where several ran. *gcno*: the notes of the
form that needs them. The last three may be missing. *facts*: what `rvtrace pgo --json` prints.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from rvtrace_gdb.reports.profile.sums import sum_of
from rvtrace_gdb.session.exports.pgo.profile import HELP, PgoChoice, made_profile
from rvtrace_gdb.session.queries.coverage.program_counts import counted_harts
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.files import atomic_output, protect_inputs


def pgo_forms(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the forms that there are, see the module."""
    return {"rows": list(HELP.items())}


def pgo(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Write a profile, see the module. Raises PgoError, BadNotes, OutputError, and as `Session.selected`."""
    path, hart = params.path("path"), params.optional_number("hart")
    notes = params.path("gcno") if params.given("gcno") else ""
    choice = PgoChoice(params.text("name"), params.text("program", ""), str(notes))
    choice.check()  # before the trace is read out
    context = params.context()
    context = replace(context, hart=context.hart if hart is None else hart)
    selected = session.selected(context, progress)
    counted = counted_harts(session, hart, progress, has_contexts=choice.has_contexts, context=context)
    made = made_profile(sum_of(counted.profiles), counted.elves, counted.contexts, choice)
    protect_inputs(path, [session.opened, *(elf.path for elf in counted.elves), *([notes] if notes else [])])
    with atomic_output(path) as file:
        file.write(made.content)
    return {"lines": [*selected.lines, *made.summary_lines(str(path))], "facts": made.written_facts(str(path))}


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"pgo": pgo, "pgo_forms": pgo_forms}
