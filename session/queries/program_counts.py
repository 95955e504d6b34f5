"""How often the code of each program ran, on all harts of a capture."""

from rvtrace_gdb.reports.pgo.program_counts import ProgramCounts, program_counts
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.reports.profile.sums import sum_of
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.selected_history import call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent


def profiles_of(session: Session, hart: int | None = None, progress: Progress = silent) -> list[Profile]:
    """Return the profile of each hart of the capture that is open, or of one. Raises what *progress* raises."""
    decoded = session.harts(progress=progress)
    numbers = [decoded.harts.number(hart)] if hart is not None else sorted(decoded.harts.histories)
    found: list[Profile] = []
    for number in numbers:
        selected = session.selected_or_empty(Context(hart=number), progress)
        found.append(hart_profile(call_history(session, selected, progress), number, progress=progress))
    return found


def counts_of(session: Session, hart: int | None = None, progress: Progress = silent) -> list[ProgramCounts]:
    """Return the counts of each program that ran. Raises what *progress* raises."""
    profile = sum_of(profiles_of(session, hart, progress))
    return program_counts(profile, [elf for elf, _ in session.harts(progress=progress).image.elves])
