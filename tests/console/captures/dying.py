"""A reader of a capture whose process is killed, as often as a folder has files."""

import os
import signal
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.console.commands.report.captures import ProfiledTrace, TraceProfiles
from rvtrace_gdb.console.options.inputs import Programs
from rvtrace_gdb.console.options.request import LoadedTrace, RequestedTrace
from rvtrace_gdb.support.errors import Progress, silent


class DyingReader(NamedTuple):
    """It removes a file of the folder each time."""

    trace: RequestedTrace | LoadedTrace
    folder: Path
    reads_sources: bool = False

    @classmethod
    def of(cls, capture: Path, folder: Path) -> "DyingReader":
        """Return the reader of a capture."""
        return cls(RequestedTrace(str(capture), None, Programs()), folder)

    def with_trace(self, trace: LoadedTrace) -> "DyingReader":
        return self._replace(trace=trace)

    def read(self, progress: Progress = silent) -> TraceProfiles:
        for file in self.folder.iterdir():
            try:
                file.unlink()
            except FileNotFoundError:  # another process has removed it meanwhile
                continue
            os.kill(os.getpid(), signal.SIGKILL)
        return ProfiledTrace(self.trace, None, "", self.trace.name).read(progress)
