"""The exports of coverage, for coverage that is not of one capture alone."""

from importlib import import_module
from typing import BinaryIO, Protocol, cast

from rvtrace_gdb.session.exports import export
from rvtrace_gdb.session.exports.coverage.covered_sources import CoveredSources
from rvtrace_gdb.session.exports.export import EXPORTS, Written

FORMS = tuple(row.name for row in EXPORTS if row.module.startswith("coverage."))
"""The names of the exports of coverage."""


class _SourcesWriter(Protocol):
    def write_sources(self, sources: CoveredSources, file: BinaryIO) -> Written: ...


def write_sources(name: str, sources: CoveredSources, file: BinaryIO) -> Written:
    """Write the coverage of some source files in a form. Raises what *file* raises."""
    writer = cast(_SourcesWriter, import_module(f"{export.__package__}.{export.named(name).module}"))
    return writer.write_sources(sources, file)
