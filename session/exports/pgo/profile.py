"""A profile for a compiler or a linker, of what was counted in some traces, in one of all forms."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.reports.pgo.call_contexts import ContextCounts
from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts, program_counts
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.session import report
from rvtrace_gdb.session.exports.pgo.forms import FORMS, PgoError, PgoProfile, form_named
from rvtrace_gdb.session.exports.pgo.gcda import gcda_profile

GCDA = "gcda"
"""The form that needs a compiler's notes, too."""
HELP = {**{form.name: form.help for form in FORMS}, GCDA: "the counts of a source file, for gcc -fprofile-use"}
"""What all forms are, by their names."""


class PgoChoice(NamedTuple):
    """What is wanted: a *form*, of a *program* ("": the only one that ran). *notes*: the .gcno of `GCDA`, else ""."""

    form: str
    program: str = ""
    notes: str = ""

    @property
    def has_contexts(self) -> bool:
        """Whether what ran is to be counted by contexts."""
        return self.form != GCDA and form_named(self.form).has_contexts

    def check(self) -> None:
        """Raise PgoError if there is no such form, or its notes are missing."""
        if self.form not in HELP:
            raise PgoError(f"there is no form {self.form}: the forms are {', '.join(HELP)}")
        if bool(self.notes) != (self.form == GCDA):
            raise PgoError(f"the form {GCDA} and GCC's notes (gcno) belong together")


class MadeProfile(NamedTuple):
    """A profile and what is said of it: the program's file, how many *instructions* of it ran, and the *gaps*."""

    choice: PgoChoice
    content: bytes
    program: str
    instructions: int
    functions: int | None
    gaps: int
    notes: list[str]

    def summary_lines(self, file: str) -> list[str]:
        """Return the lines for the user. *file*: what was written."""
        functions = "" if self.functions is None else f" of {self.functions} functions"
        name = PurePath(self.program).name
        return [*self.notes, f"{file}: {self.choice.form}, {self.instructions} instructions{functions} of {name}"]

    def written_facts(self, file: str) -> dict[str, object]:
        """Return the same for programs."""
        functions = {} if self.functions is None else {"functions": self.functions}
        return {
            "file": file, "format": self.choice.form, "program": self.program, **functions,
            "instructions": self.instructions, "gaps": self.gaps, "messages": list(map(str, self.notes)),
        }  # fmt: skip


def made_profile(
    profile: Profile, elves: Sequence[Elf], contexts: Sequence[ContextCounts], choice: PgoChoice
) -> MadeProfile:
    """Return the profile of what was counted. *contexts*: for the forms that have them. Raises PgoError."""
    program = _chosen(program_counts(profile, elves, contexts), choice.program)
    gaps = sum(hart.gaps for hart in profile.harts)
    if choice.form == GCDA and gaps:
        raise PgoError(f"the trace has {gaps} gaps: the counts of arcs are not determined (docs/pgo.md)")
    made = _content_of(program, choice)
    missing = [f"the trace has {gaps} gaps: what ran there is not counted"] if gaps else []
    notes = [*made.notes, *report.notes(missing)]
    path, ran = program.elf.path, sum(program.ran.values())
    return MadeProfile(choice, made.content, path, ran, made.functions, gaps, notes)


def _content_of(program: ProgramCounts, choice: PgoChoice) -> PgoProfile:
    return gcda_profile(program, choice.notes) if choice.form == GCDA else form_named(choice.form).make(program)


def _chosen(programs: list[ProgramCounts], name: str) -> ProgramCounts:
    """Return the program that is meant. Raises PgoError: none, or which one is not said."""
    ran = [program for program in programs if program.ran]
    if name:
        ran = [program for program in ran if name in (program.elf.path, PurePath(program.elf.path).name)]
    if len(ran) == 1:
        return ran[0]
    if ran:
        names = ", ".join(sorted({PurePath(program.elf.path).name for program in ran}))
        raise PgoError(f"several programs ran: say which one (--program NAME): {names}")
    raise PgoError(f"{name}: no such program ran" if name else "nothing ran of a program that is known (--elf FILE)")
