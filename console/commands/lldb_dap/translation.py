"""What is changed between an editor and lldb-dap, so that the editor has step back and reverse continue.

lldb-dap is told the commands of rvtrace_lldb.py as if they were typed in the debug console. A request keeps its number,
and so has its answer: no message is added, and none is left out.
"""

import threading
from pathlib import Path

import rvtrace_gdb
from rvtrace_gdb.console.commands.lldb_dap.messages import AdapterMessage, framed, message_fields

_LINE, _INSTRUCTION, _RUN = "reverse-next", "reverse-stepi", "reverse-continue"
_BACKWARD = frozenset(("stepBack", "reverseContinue"))
_PREFIX = "`"
"""What lldb-dap takes for the beginning of a command, if the editor's configuration does not say otherwise."""
_ERROR, _UNKNOWN = "error: ", "is not a valid command"
_SCRIPT = Path(rvtrace_gdb.__file__).resolve().parent.parent / "rvtrace_lldb.py"
_IMPORT = f'LLDB has not imported rvtrace_lldb.py: "postRunCommands": ["command script import {_SCRIPT}"]'


class Translation:
    """The messages of one connection. Each direction may have a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._prefix = _PREFIX
        self._asked: dict[int, str] = {}
        self._held: list[bytes] = []

    def for_adapter(self, raw: bytes) -> bytes:
        """Return what lldb-dap is sent for a message of the editor."""
        message = message_fields(raw)
        command, arguments, number = (message.get(key) for key in ("command", "arguments", "seq"))
        if message.get("type") != "request" or not isinstance(arguments, dict):
            return raw
        if command in ("attach", "launch"):
            self._prefix = str(arguments.get("commandEscapePrefix", _PREFIX))
        if command not in _BACKWARD or not isinstance(number, int):
            return raw
        with self._lock:
            self._asked[number] = command
        typed = self._prefix + _typed(command, arguments)
        return framed({**message, "command": "evaluate", "arguments": {"expression": typed, "context": "repl"}})

    def for_editor(self, raw: bytes) -> list[bytes]:
        """Return what the editor is sent for a message of lldb-dap.

        That the program has stopped, and the events behind it, wait for the answer of a command that is under way: an
        editor that hears of the stop first takes it that the program runs.
        """
        message = message_fields(raw)
        is_response = message.get("type") == "response"
        with self._lock:
            command = self._asked.pop(message.get("request_seq", 0), None) if is_response else None
            if command is not None:
                return [framed(_request_answer(message, command)), *(self._rest() if not self._asked else [])]
            is_stop = message.get("event") == "stopped" or self._held
            if self._asked and message.get("type") == "event" and is_stop:
                self._held.append(raw)
                return []
        return [_with_step_back(message) or raw]

    def rest(self) -> list[bytes]:
        """Return the events that still wait where lldb-dap has ended."""
        with self._lock:
            return self._rest()

    def _rest(self) -> list[bytes]:
        held, self._held = self._held, []
        return held


def _typed(command: str, arguments: AdapterMessage) -> str:
    """Return the command of rvtrace_lldb.py for a request."""
    step = _INSTRUCTION if arguments.get("granularity") == "instruction" else _LINE
    thread = arguments.get("threadId")
    option = "" if thread is None else f" --thread-id {thread}"
    return (_RUN if command == "reverseContinue" else step) + option


def _request_answer(evaluated: AdapterMessage, command: str) -> AdapterMessage:
    """Return the answer of a request that went to lldb-dap as a command. A command that fails says `error:`."""
    answer: AdapterMessage = {key: evaluated[key] for key in ("seq", "type", "request_seq") if key in evaluated}
    body = evaluated.get("body")
    printed = str((body if isinstance(body, dict) else {}).get("result", ""))
    if evaluated.get("success") and not printed.lstrip().startswith(_ERROR):
        return {**answer, "command": command, "success": True}
    said = printed or str(evaluated.get("message", ""))
    text = _IMPORT if _UNKNOWN in said else said.replace(_ERROR, "").strip()
    error = {"id": 1, "format": text, "showUser": True}
    return {**answer, "command": command, "success": False, "message": text, "body": {"error": error}}


def _with_step_back(message: AdapterMessage) -> bytes | None:
    """Return the capabilities with the one that lldb-dap lacks; None for other messages."""
    body = message.get("body")
    if message.get("command") != "initialize" or not message.get("success") or not isinstance(body, dict):
        return None
    return framed({**message, "body": {**body, "supportsStepBack": True}})
