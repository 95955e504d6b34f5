"""What the options of `trace start` can choose from, as the target description says it."""

import os
from collections.abc import Mapping

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description import DescriptionError, Sink


def choices(context: Context, environ: Mapping[str, str] = os.environ) -> dict[str, list[str]]:
    """{option: words}; nothing is raised, it is for completion. *environ*: may name the target description."""
    try:
        description = context.description(environ)
    except DescriptionError:
        return {}
    sinks: tuple[Sink, ...] = (*description.sinks, *description.pib_sinks, *description.bridges)
    return {"-to": [sink.name for sink in (*sinks, *description.tandem)], "-hart": list(map(str, description.harts))}
