"""A client of the SDK that asks the server about a capture, in this process.

The SDK is loaded by those who ask: that takes a second, and each of pytest's workers loads all modules of tests.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from rvtrace_gdb.console.commands.mcp import AskedTrace, McpRequest
from rvtrace_gdb.console.options.inputs import Programs
from rvtrace_gdb.console.options.request import RequestedTrace

if TYPE_CHECKING:
    from mcp import Client

    from rvtrace_gdb.console.commands.mcp.server import AnswerFunction

MOST = 5200
"""Characters of some 2,000 tokens: of 2,700 answers about the programs of examples/ those with the most tokens had 2.43
characters in each, by the encodings o200k and cl100k.
"""


class Answer(NamedTuple):
    is_error: bool
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def rows(self) -> list[Any]:
        return list(self.json.get("rows", []))


Asker = Callable[..., Awaitable[Answer]]


@contextmanager
def asked_trace(file: Path, *, sources: bool = True) -> Iterator[AskedTrace]:
    trace = AskedTrace(McpRequest(RequestedTrace(str(file), None, Programs(())), sources))
    try:
        yield trace
    finally:
        trace.close()


def client_of(ask: "AnswerFunction") -> "Client":
    """Return a client of a server that answers with *ask*, for `async with`."""
    from mcp import Client

    from rvtrace_gdb.console.commands.mcp.server import QuestionServer

    return Client(QuestionServer(ask).server())


def asking(trace: AskedTrace, talk: Callable[[Asker], Awaitable[None]]) -> None:
    """Let *talk* ask: `await ask("find", where=["main"])`. No answer is longer than one may be."""

    async def run() -> None:
        async with client_of(trace.ask) as client:

            async def ask(tool: str, **arguments: Any) -> Answer:
                found = await client.call_tool(tool, arguments)
                (content,) = found.content
                text = str(getattr(content, "text", ""))
                assert len(text) <= MOST and isinstance(json.loads(text), dict) and text.isascii()
                return Answer(bool(found.is_error), text)

            await talk(ask)

    anyio.run(run)
