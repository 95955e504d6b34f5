"""The waveform viewer of a session: what the debugger's place in the past is there, and its cursor in the history."""

import os
from collections.abc import Callable
from contextlib import suppress

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.waves.viewer import Viewer, ViewerError
from rvtrace_gdb.session.waves.viewer_axis import ViewerAxis, ViewerScale, viewer_axis
from rvtrace_gdb.session.waves.waveform_file import WaveformFile, waveform_file
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.text import warning

Histories = Callable[[], list[History]]
"""Returns the histories of all harts, as an export has them."""


class CursorUnknown(ViewerError):
    """The viewer has said nothing that could be gone to."""


class Bell:
    """Tells the debugger, which waits for nobody, that there is something new: by a byte through a FIFO of its own."""

    def __init__(self, path: str | None) -> None:
        self._file: int | None = None
        if path is not None:
            with suppress(OSError, ValueError):  # the debugger has gone: it looks at its next prompt
                self._file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)

    def ring(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # it is full, which tells the same; or nobody hears it any more
                os.write(self._file, b"!")

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


class Waves(Closeable):
    """A viewer that follows the debugger. *file*: the waveforms that it was asked to show."""

    def __init__(self, viewer: Viewer, file: str | None, bell: Bell) -> None:
        self.viewer, self._bell = viewer, bell
        self._asked_file = file
        self._files: dict[str, WaveformFile] = {}
        self._axis: tuple[History, WaveformFile, ViewerScale, ViewerAxis] | None = None
        self._shown: tuple[History, int, ViewerScale] | None = None
        self._is_end_told = False

    def close(self) -> None:
        self.viewer.close()
        self._bell.close()

    @property
    def file(self) -> str | None:
        """The waveforms that the viewer shows, as far as that is known."""
        return self.viewer.file or self._asked_file

    def move_cursor(self, history: History, number: int, histories: Histories, scale: ViewerScale) -> None:
        """Move the viewer's cursor to an instruction by its number, at the end to the newest one.

        It stays where the user has put it if that is this instruction, or if the debugger has not moved since.
        """
        place = history, min(number, len(history)) - 1, scale
        if self._shown is not None and self._shown[0] is history and self._shown[1:] == place[1:]:
            return
        self._shown = place
        axis, cursor = self.axis(history, histories, scale), self.viewer.cursor
        if cursor is not None and axis.position(history, cursor) == place[1]:
            self.viewer.agree()
        else:
            self.viewer.move_cursor(axis.time(history, place[1]))

    def number(self, history: History, histories: Histories, scale: ViewerScale) -> int:
        """Return the number of the instruction at the viewer's cursor. Raises CursorUnknown."""
        time = self.viewer.cursor
        if time is None:
            raise CursorUnknown(self._why_unknown())
        position = self.axis(history, histories, scale).position(history, time)
        if position is None:
            explained = self.axis(history, histories, scale).explained()
            raise CursorUnknown(
                f"the cursor of {self.viewer.name} is at {time}, where the trace has nothing: {explained} (`set trace"
                " waves-offset`, `set trace waves-scale`)"
            )
        return position + 1

    def _why_unknown(self) -> str:
        name = self.viewer.name
        if self.viewer.ended is not None:
            return f"{name} is not connected any more: {self.viewer.ended}"
        if self.viewer.is_reporting:
            return f"the cursor of {name} is where the debugger has put it"
        return f"{name} has not said yet where its cursor is: move it (not every viewer says that, see docs/waves.md)"

    def axis(self, history: History, histories: Histories, scale: ViewerScale) -> ViewerAxis:
        """Return the axis of the viewer for the trace that *history* belongs to."""
        file = self._facts()
        if self._axis is None or self._axis[0] is not history or self._axis[1:3] != (file, scale):
            found = viewer_axis([it for it in histories() if len(it)] or [history], file, scale)
            self._axis = history, file, scale, found
        return self._axis[3]

    def _facts(self) -> WaveformFile:
        name = self.file
        if name is None:
            return WaveformFile()
        if name not in self._files:
            try:
                self._files[name] = waveform_file(name)
            except (OSError, ValueError):  # a file that the viewer alone has
                self._files[name] = WaveformFile()
        return self._files[name]

    def news(self) -> list[str]:
        """Return what is to be said of the viewer, once."""
        viewer, lines = self.viewer, list[str]()
        refused, viewer.error = viewer.error, None
        if refused:
            lines.append(warning(f"{viewer.name} refuses: {refused}"))
        if viewer.ended is not None and not self._is_end_told:
            self._is_end_told = True
            lines.append(f"{viewer.name} does not follow any more: {viewer.ended.rstrip('.?!')}.")
        return lines

    def status(self) -> str:
        """Return whether and what the viewer shows. `news` does not say then that it has ended."""
        state = "is not there yet"
        if self.viewer.ended is not None:
            self._is_end_told = True
            state = f"does not follow any more: {self.viewer.ended}"
        elif self.viewer.is_connected:
            state = "follows"
        return f"{self.viewer.name} {state}{f', with {self.file}' if self.file and not self.viewer.ended else ''}"
