"""The method of the session protocol for where two runs part: `trace diff`.

    diff {context, other, other_elf, other_hart} -> `rows.diff_rows.DiffAnswer`

*other* is the path of a capture, *other_elf* the program that it is read with, by default the one it names. The
context's hart is compared with the hart of the same number there, or with *other_hart*. What differs is the list
`differences` of `session.rpc.lists.pages`, which has the same parameters.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from rvtrace_gdb.session.questions.divergence.question import ComparedTrace, Comparisons, HartComparison
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


def diff(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return where two runs part, see the module. Raises NotComparable, CaptureError, and as `Session.history`."""
    selected, found = compared(session, params, progress)
    return found.answer(progress)._replace(lines=selected.lines)._asdict()


def compared(session: Session, params: Params, progress: Progress) -> tuple[SelectedHistory, HartComparison]:
    """Return a history, and its comparison with another one, which is made once. Raises as `diff`."""
    selected = session.selected(params.context(), progress)
    kept = session.cached(Comparisons, selected.history, Comparisons)
    name = "this trace" if session.opened is None else Path(session.opened).name
    one = ComparedTrace(session, selected, name)
    elf = params.optional_path("other_elf")
    return selected, kept.with_file(one, params.path("other"), elf, params.optional_number("other_hart"), progress)


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"diff": diff}
