"""What an editor and lldb-dap are sent: requests to go back become commands of the console, everything else stays."""

from typing import Any

import pytest

from rvtrace_gdb.console.commands.lldb_dap.messages import framed, message_fields
from rvtrace_gdb.console.commands.lldb_dap.translation import Translation

STOPPED = framed({"type": "event", "event": "stopped", "seq": 4})
OUTPUT = framed({"type": "event", "event": "output", "seq": 5})


def request(command: str, number: int = 7, **arguments: Any) -> bytes:
    return framed({"seq": number, "type": "request", "command": command, "arguments": arguments})


def evaluated(result: str, number: int = 7, *, success: bool = True) -> bytes:
    answer = {"seq": 90, "type": "response", "request_seq": number, "command": "evaluate", "success": success}
    return framed({**answer, **({"body": {"result": result}} if success else {"message": result})})


@pytest.mark.parametrize(("sent", "typed"), [
    (request("stepBack", threadId=2), "`reverse-next --thread-id 2"),
    (request("stepBack", threadId=2, granularity="line"), "`reverse-next --thread-id 2"),
    (request("stepBack", granularity="instruction"), "`reverse-stepi"),
    (request("reverseContinue", threadId=1, singleThread=True), "`reverse-continue --thread-id 1"),
])  # fmt: skip
def test_requests_are_commands_of_the_console(sent: bytes, typed: str) -> None:
    arguments = {"expression": typed, "context": "repl"}
    changed = {"command": "evaluate", "arguments": arguments}
    assert message_fields(Translation().for_adapter(sent)) == {**message_fields(sent), **changed}


def test_commands_begin_as_the_configuration_says() -> None:
    translation = Translation()
    attach = request("attach", commandEscapePrefix=":")
    assert translation.for_adapter(attach) == attach
    assert message_fields(translation.for_adapter(request("stepBack")))["arguments"]["expression"] == ":reverse-next"


def test_the_answer_comes_before_the_stop_and_what_follows() -> None:
    translation = Translation()
    translation.for_adapter(request("stepBack"))
    assert translation.for_editor(OUTPUT) == [OUTPUT]
    assert translation.for_editor(STOPPED) == translation.for_editor(OUTPUT) == []
    answer, *rest = translation.for_editor(evaluated(""))
    expected = {"seq": 90, "type": "response", "request_seq": 7, "command": "stepBack", "success": True}
    assert message_fields(answer) == expected
    assert rest == [STOPPED, OUTPUT]
    assert translation.for_editor(STOPPED) == [STOPPED]


def test_events_that_wait_are_not_lost_when_lldb_dap_ends() -> None:
    translation = Translation()
    translation.for_adapter(request("reverseContinue"))
    translation.for_editor(STOPPED)
    assert translation.rest() == [STOPPED]


@pytest.mark.parametrize("answer", [
    evaluated("error: this is the beginning of the trace\n"),
    evaluated("error: this is the beginning of the trace", success=False),
])  # fmt: skip
def test_a_step_that_cannot_be_made_fails(answer: bytes) -> None:
    translation = Translation()
    translation.for_adapter(request("stepBack"))
    [failed] = map(message_fields, translation.for_editor(answer))
    assert not failed["success"] and failed["message"] == "this is the beginning of the trace"
    assert failed["body"]["error"]["showUser"] and failed["body"]["error"]["format"] == failed["message"]


def test_a_lldb_without_the_commands_is_told() -> None:
    translation = Translation()
    translation.for_adapter(request("stepBack"))
    [failed] = map(message_fields, translation.for_editor(evaluated("error: 'reverse-next' is not a valid command.\n")))
    assert not failed["success"] and "postRunCommands" in failed["message"]


def test_step_back_is_among_the_capabilities() -> None:
    initialized = {"seq": 1, "type": "response", "request_seq": 1, "command": "initialize", "success": True}
    body = {"supportsSteppingGranularity": True}
    [answer] = Translation().for_editor(framed({**initialized, "body": body}))
    assert message_fields(answer) == {**initialized, "body": {**body, "supportsStepBack": True}}


@pytest.mark.parametrize("message", [
    b"no message", b"Content-Length: 2\r\n\r\n[]", b'Content-Length: 30\r\n\r\n{ "type" : "request", "seq": 1 }',
    request("evaluate", expression="x"), evaluated("1"), STOPPED,
    framed({"seq": 1, "type": "response", "command": "initialize", "request_seq": [], "success": False}),
    framed({"seq": "x", "type": "request", "command": "stepBack", "arguments": {}}),
])  # fmt: skip
def test_all_other_messages_keep_their_bytes(message: bytes) -> None:
    translation = Translation()
    assert translation.for_adapter(message) == message
    assert translation.for_editor(message) == [message]
