"""`start`, `stop`, `status` and `save` of `monitor trace`, where there is a target: what is about the recording."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rvtrace_gdb.console.commands.serve.monitor.request import MonitorRequest, OwnCommand
from rvtrace_gdb.gdbext import start_options
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.support.errors import RvtraceError


class RecordingUsage(RvtraceError):
    """Words that say nothing of how to record, or a file that nobody named."""


def recording_commands(output: str | None) -> Mapping[str, OwnCommand]:
    """Return the commands by their names. *output*: the file that `save` writes, as the server's user named it."""
    places = "Options with places of the program take addresses alone, such as 0x80000100."

    def save(request: MonitorRequest, words: Sequence[str]) -> list[str]:
        _refuse_words("save", words)
        if output is None:
            raise RecordingUsage("trace save: the server was started without --output FILE, which names the file")
        return list(request.session.save(output, _context(request), request.progress))

    return {
        "start": OwnCommand(
            "start tracing",
            f"{start_options.usage().removeprefix('Usage: ')}\n\n{start_options.explained()}\n\n{places}",
            _start,
        ),
        "stop": OwnCommand("stop tracing and read out the trace", "monitor trace stop", _stop),
        "status": OwnCommand("show the state of the trace", "monitor trace status", _status),
        "save": OwnCommand("write the trace to the file that --output named", "monitor trace save", save),
    }


def _context(request: MonitorRequest) -> Context:
    return replace(request.debugger.context, thread_hart=request.hart)


def _start(request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
    try:
        options = start_options.parse(words)
    except start_options.OptionError as error:
        raise RecordingUsage(f"trace start: {error}") from None
    yield from request.session.start(_context(request), _with_addresses(options), request.progress)


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


def _stop(request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
    _refuse_words("stop", words)
    yield from request.session.stop(request.progress, _context(request))


def _status(request: MonitorRequest, words: Sequence[str]) -> Iterator[str]:
    _refuse_words("status", words)
    yield from request.session.status(_context(request), request.progress)


def _refuse_words(name: str, words: Sequence[str]) -> None:
    if words:
        raise RecordingUsage(f"Usage: monitor trace {name}")
