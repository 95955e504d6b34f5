"""Logs of what a hart did, as other simulators and cores write them, become tandem traces.

`commits` has what all of them share, each other module reads one form of log; `FORMS` has their names.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rvtrace_gdb.decode.tandem.logs.commits import CommitReader

FORMS = {"spike": "CommitLog", "qemu": "QemuStates", "ibex": "IbexTrace"}
"""The readers by the name of their form, which is their module's: in the order in which they are tried."""


def reader_of(form: str) -> "type[CommitReader]":
    """Return the reader of a form of `FORMS`."""
    reader: type[CommitReader] = getattr(import_module(f"{__name__}.{form}"), FORMS[form])
    return reader


def recognized_form(head: Sequence[bytes]) -> str | None:
    """Return the form of a log that begins with these lines; None: it has none of them."""
    return next((form for form in FORMS if reader_of(form).recognizes(head)), None)
