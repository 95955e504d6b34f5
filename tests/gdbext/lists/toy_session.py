"""A session with a method and a list more, as docs/architecture.md describes them: `python toy_session.py`.

| method | params | result                        |
|--------|--------|-------------------------------|
| toy    | name   | {lines}                       |

The list toys has 5000 rows, which are called *name*.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rvtrace_gdb.session.__main__ import main
from rvtrace_gdb.session.queries.lists.pages import Cursor
from rvtrace_gdb.session.rpc import server
from rvtrace_gdb.session.rpc.lists import pages
from rvtrace_gdb.session.rpc.lists.list_selection import ListSelection, Range
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.rpc.questions import analysis
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent.parent))
LENGTH = 5000
CURSOR = Cursor("toy box")


def toy(session: Session, params: Params, progress: Progress) -> Any:
    return {"lines": [f"The toy is called {params.text('name')}."]}


def toys(session: Session, params: Params, asked: Range, progress: Progress) -> ListSelection:
    name = params.text("name")

    def fetch(begin: int, end: int) -> Sequence[tuple[int, str]]:
        return [(number, f"{name} {number}") for number in range(begin, end)]

    selection = asked.select(LENGTH, lambda args, size: CURSOR.select(args, size, LENGTH))
    return ListSelection(LENGTH, selection, fetch, [f"{LENGTH} toys"], None)


if __name__ == "__main__":
    analysis.METHODS = {**analysis.METHODS, "toy": toy}
    server.MODULES["toy"] = "questions.analysis"
    pages.LISTS = {**pages.LISTS, "toys": toys}
    sys.exit(main())
