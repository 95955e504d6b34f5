"""A database of SQLite with the tables of `rvtrace sql`, for other programs: see docs/sql.md.

It is made in a temporary file, because SQLite writes where it wants and a pipe takes bytes in order.
"""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.support.errors import Progress


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write all tables of all harts. Raises SqlError: no room for the temporary file."""
    from rvtrace_gdb.session.questions.sql.database import TraceDatabase  # the question asks exports for traces
    from rvtrace_gdb.session.questions.sql.schema import TABLES

    with TemporaryDirectory(prefix="rvtrace-sql-") as folder:
        made = Path(folder, "trace.db")
        with TraceDatabase(trace, made, progress) as database:
            database.fill([it.name for it in TABLES])
        with made.open("rb") as content:
            shutil.copyfileobj(content, file)
    return Written()
