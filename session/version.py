"""The name and the version of this program."""

import sys
from functools import cache
from glob import escape, glob
from os.path import basename, join


def tool_and_kernel() -> str:
    """Return the name and version of this program, and whether it decodes with its compiled kernel."""
    from rvtrace_gdb.decode.kernel.loading import absence

    why = absence()
    return f"{tool()}, " + (f"without the compiled kernel ({why})" if why else "with the compiled kernel")


@cache
def tool() -> str:
    """Return the name and version of this program."""
    # pip's folder has the version in its name. Loading importlib.metadata would take a tenth of every start.
    for folder in sys.path:
        for found in glob(join(escape(folder), "rvtrace_gdb-*.dist-info")):
            return "rvtrace " + basename(found).removeprefix("rvtrace_gdb-").removesuffix(".dist-info")
    from importlib import metadata

    try:
        return f"rvtrace {metadata.version('rvtrace-gdb')}"
    except metadata.PackageNotFoundError:
        return "rvtrace"
