"""Nothing in the program decides by words it made itself: what happened travels as typed facts, and becomes words where
it is shown.

Looked for in the sources: comparisons with, and searches in, what is words by its name (the text of an event, why a
part of a trace is lost, the notice of a page) or the message of an error.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history import accesses
from rvtrace_gdb.decode.history.events import LossCause, NoteCause, Open, StartReason, StopReason, TrapKind
from rvtrace_gdb.decode.program.instructions import AccessNote
from tests.repository.test_rooms import ROOMS

ROOT = Path(__file__).parents[2]
WORDS = frozenset({"as_gap", "fault", "note", "notice", "text", "why"})
"""Names of attributes that are words."""
ERRORS = ("error", "failure", "problem", "gone", "refused")
"""In the names of errors, whose `str` is words."""
SEARCHES = frozenset(
    {"count", "endswith", "find", "index", "partition", "removeprefix", "removesuffix", "replace", "rfind"}
    | {"rindex", "rpartition", "rsplit", "split", "startswith"}
)
MATCHES = frozenset({"finditer", "findall", "fullmatch", "match", "search", "sub"})
BEGINNINGS = ("warning:", "hint:")

NOT_OURS = {
    "console/commands/console/shell.py": "an error of MI is words alone; and the text is what the user typed",
    "console/gdb_driver/engine.py": "an error of gdb begins with the name of its command, which is left out",
    "console/scripts/runner.py": "the text is a line of the user's script",
    "gdbext/commands/coverage.py": "the errors are gdb's",
    "gdbext/expressions.py": "the text is the user's expression, the errors are gdb's",
    "gdbext/commands/who_wrote.py": "the text is the user's expression",
    "gdbext/storage_parts.py": "the text is the user's expression",
    "gdbext/past_values.py": "the errors are gdb's",
    "session/questions/sql/database.py": "the errors are SQLite's",
    "support/text.py": "the error is Python's",
}
"""Why what is compared there is not words of the program's own."""


_LOADED = (ROOT / "rvtrace.py", ROOT / "rvtrace_lldb.py")
SOURCES = [*(path for room in sorted(ROOMS) for path in sorted((ROOT / room).rglob("*.py"))), *_LOADED]


MAY_HAVE_WORDS = re.compile(rf"\.\s*(?:{'|'.join(WORDS)})\b|\bstr\s*\(")
"""What is words in the end. Files without it, which are more than half, need not be looked at in full."""


def decisions(source: str) -> Iterator[int]:
    """The lines where something is decided by words. A name that is given words somewhere in the file is words in all
    of it.
    """
    if not MAY_HAVE_WORDS.search(source):
        return
    nodes = list(ast.walk(ast.parse(source)))
    assigned = (node for node in nodes if isinstance(node, ast.Assign) and _is_words(node.value, set()))
    named = {target.id for node in assigned for target in node.targets if isinstance(target, ast.Name)}
    yield from (node.lineno for node in nodes if isinstance(node, ast.Compare | ast.Call) and _decides(node, named))


def _decides(node: ast.expr, named: set[str]) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        return any(_is_words(side, named) for side in sides) and any(map(_is_text, sides))
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in SEARCHES and _is_words(node.func.value, named):
        return any(map(_is_text, node.args))
    return node.func.attr in MATCHES and any(_is_words(argument, named) for argument in node.args)


def _is_words(node: ast.expr, named: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in WORDS
    if isinstance(node, ast.Name):
        return node.id in named
    if isinstance(node, ast.BoolOp):
        return any(_is_words(value, named) for value in node.values)
    if isinstance(node, ast.Subscript):
        return _is_words(node.value, named)
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):  # what is left of words after a search in them
        return node.func.attr in SEARCHES | {"lower", "strip", "rstrip"} and _is_words(node.func.value, named)
    told = node.args[0] if node.args else None
    name = told.attr if isinstance(told, ast.Attribute) else told.id if isinstance(told, ast.Name) else ""
    return isinstance(node.func, ast.Name) and node.func.id == "str" and any(it in name for it in ERRORS)


def _is_text(node: ast.expr) -> bool:
    """Text that says something: blanks and ends of lines do not, and whether there is any at all may be asked."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(_is_text, node.elts))
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and bool(node.value.strip())
    if isinstance(node, ast.JoinedStr):
        return True
    return isinstance(node, ast.Name) and node.id.strip("_").isupper()


def test_nothing_reads_its_own_words() -> None:
    found = {str(path.relative_to(ROOT)): sorted(set(decisions(path.read_text("utf-8")))) for path in SOURCES}
    found = {name: lines for name, lines in found.items() if lines}
    own = {name: lines for name, lines in found.items() if name not in NOT_OURS}
    assert not own, "these lines decide by words of the program's own: let a typed fact tell"
    assert found.keys() == NOT_OURS.keys(), "exceptions that nothing needs any more"


def test_what_goes_wrong_is_told_from_the_rest_by_its_type() -> None:
    """`--quiet` shows problems only: they are `support.text.Problem`, however they begin."""
    for path in SOURCES:
        source = path.read_text("utf-8")
        if not any(beginning in source for beginning in BEGINNINGS):
            continue
        texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
        begins = [text for text in texts if isinstance(text, str) and text.startswith(BEGINNINGS)]
        assert not begins or path == ROOT / "support" / "text.py", path


@pytest.mark.parametrize(
    "source",
    [
        "event.text.endswith(FIELD_TOO_MANY)",
        'event.kind is TRAP and event.text.startswith("exception")',
        '"interrupt" in event.text.partition("(")[0]',
        'event.kind is SYNC and "trigger" not in event.text',
        'event.text in ("tracing stops", "tracing starts")',
        "if mark.why in (CUT_OFF, NO_BEGIN): pass",
        'found._replace(notice=found.notice and found.notice.replace("branch trace record", "list"))',
        "is_cut = LOST_AFTER in group[-1].note",
        'notes = [note for note in request.note.split("; ") if note]',
        'if "session has ended" not in str(error): raise',
        'def f():\n    message = str(error)\n    return message.startswith("expected")',
        're.search("lost", event.text)',
    ],
)
def test_the_ways_it_was_done_are_found(source: str) -> None:
    """As they stood in the program."""
    assert list(decisions(source))


@pytest.mark.parametrize(
    "source",
    ["event.kind is EventKind.TRAP", "if event.text: pass", "' '.join(str(error).split())", "shown == event.text"],
)
def test_showing_words_is_no_decision(source: str) -> None:
    assert not list(decisions(source))


def test_every_fact_has_words() -> None:
    reasons = (*StartReason, *StopReason, *TrapKind, *Open, *LossCause, *NoteCause)
    by_count = {LossCause.SKIPPED, NoteCause.IGNORED, NoteCause.INITIALIZED}  # their words depend on a number
    assert {reason for reason in reasons if not reason.text} == by_count
    assert accesses._NOTES.keys() == set(AccessNote)
