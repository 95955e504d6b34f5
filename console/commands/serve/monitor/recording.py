"""`start`, `stop`, `status` and `save` of `monitor trace`, where there is a target: what is about the recording."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rvtrace_gdb.console.commands.serve.monitor.request import MonitorRequest, OwnCommand
from rvtrace_gdb.gdbext import start_options
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.proxy.backend import ExtensionContext
from rvtrace_gdb.session.target.link import MARK
from rvtrace_gdb.support.errors import RvtraceError

_OPENOCD = "Open On-Chip Debugger"
"""What OpenOCD says of its version; QEMU has no such command."""


class RecordingUsage(RvtraceError):
    """Words that say nothing of how to record, or a file that nobody named."""


class RecordingCommands:
    """The commands. *output*: the file that `save` writes, as the server's user named it."""

    def __init__(self, output: str | None) -> None:
        self._output = output
        self._client: ExtensionContext | None = None  # whose OpenOCD is known

    def own_commands(self) -> Mapping[str, OwnCommand]:
        """Return them by their names."""
        places = "Options with places of the program take addresses alone, such as 0x80000100."
        usage = start_options.usage().removeprefix("Usage: ")
        return {
            "start": OwnCommand("start tracing", f"{usage}\n\n{start_options.explained()}\n\n{places}", self._start),
            "stop": OwnCommand("stop tracing and read out the trace", "monitor trace stop", self._stop),
            "status": OwnCommand("show the state of the trace", "monitor trace status", self._status),
            "save": OwnCommand("write the trace to the file that --output named", "monitor trace save", self._save),
        }

    def context(self, request: MonitorRequest) -> Context:
        """Return the context, with the mark by which the session knows the OpenOCD that the client is connected to:
        it would trace another chip if its Tcl port were that of another one.
        """
        connection, debugger = request.connection, request.debugger
        if connection is not self._client and connection.live():
            self._client, mark = connection, None
            if _OPENOCD in connection.monitor("version"):
                mark = os.urandom(8).hex()
                connection.monitor(f"set {MARK} {mark}")
            debugger.context = replace(debugger.context, openocd=mark)
        return replace(debugger.context, thread_hart=request.hart)

    def _start(self, request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
        try:
            options = start_options.parse(words)
        except start_options.OptionError as error:
            raise RecordingUsage(f"trace start: {error}") from None
        yield from request.session.start(self.context(request), _with_addresses(options), request.progress)

    def _stop(self, request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
        _refuse_words("stop", words)
        yield from request.session.stop(request.progress, self.context(request))

    def _status(self, request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
        _refuse_words("status", words)
        yield from request.session.status(self.context(request), request.progress)

    def _save(self, request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
        _refuse_words("save", words)
        if self._output is None:
            raise RecordingUsage("trace save: the server was started without --output FILE, which names the file")
        yield from request.session.save(self._output, self.context(request), request.progress)


def _with_addresses(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with addresses in place of their texts. Raises RecordingUsage."""
    placed = {option.key for option in start_options.OPTIONS if option.symbols}
    return {key: _addresses(key, value) if key in placed else value for key, value in options.items()}


def _addresses(key: str, texts: Sequence[str]) -> list[Any]:
    words = [word for text in texts for word in text.split(",")]
    try:
        numbers = [int(word.removeprefix("+"), 0) for word in words]
    except ValueError:
        raise RecordingUsage(f"trace start: -{key.replace('_', '-')}: give addresses, such as 0x80000100") from None
    if key == "function":
        return [[word, number] for word, number in zip(words, numbers, strict=True)]
    if key != "range":
        return numbers
    ends = zip(words[1::2], numbers[::2], numbers[1::2], strict=False)
    return [[begin, begin + end if word.startswith("+") else end] for word, begin, end in ends]


def _refuse_words(name: str, words: Sequence[str]) -> None:
    if words:
        raise RecordingUsage(f"Usage: monitor trace {name}")
