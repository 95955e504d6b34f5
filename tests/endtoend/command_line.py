"""`rvtrace ...` as users type it, in this process: starting a Python for each costs more than what it does."""

import contextlib
import io

from rvtrace_gdb.console.main import main


def printed(*words: object, failing: bool = False) -> str:
    """What a command prints. *failing*: it may also fail."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main([str(word) for word in words])
    assert failing or status == 0, out.getvalue()
    return out.getvalue()
