"""How often the code of each program ran, on all harts of a trace."""

from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.reports.pgo.call_contexts import ContextCounts, context_counts
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.selected_history import call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent


class CountedHarts(NamedTuple):
    """The *profiles* of the harts of a trace, its programs, and what ran by *contexts*, if that was asked for."""

    profiles: list[Profile]
    elves: list[Elf]
    contexts: list[ContextCounts]

    def add(self, other: "CountedHarts") -> None:
        """Add what is counted in another trace."""
        self.profiles.extend(other.profiles)
        self.elves.extend(other.elves)
        self.contexts.extend(other.contexts)


def counted_harts(
    session: Session,
    hart: int | None = None,
    progress: Progress = silent,
    *,
    has_contexts: bool = False,
    context: Context | None = None,
) -> CountedHarts:
    """Return what each hart of the session's trace ran, or one. *context*: of the request. Raises what *progress*
    raises, and as `Session.harts`.
    """
    context = context or Context()
    decoded = session.harts(context, progress)
    numbers = [decoded.harts.number(hart)] if hart is not None else sorted(decoded.harts.histories)
    found = CountedHarts([], decoded.program.elves, [])
    for number in numbers:
        calls = call_history(session, session.selected_or_empty(replace(context, hart=number), progress), progress)
        found.profiles.append(hart_profile(calls, number, progress=progress))
        if has_contexts:
            found.contexts.append(context_counts(found.profiles[-1], calls, progress))
    return found
