"""The tools that the server has: their names, what they are for, and their arguments, which are checked here."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rvtrace_gdb.console.commands.mcp.answers import tool_call
from rvtrace_gdb.console.commands.mcp.derived import QUESTIONS
from rvtrace_gdb.session.queries.lists.search import KINDS
from rvtrace_gdb.support import typed
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable

GAP_KIND = "gap"
_MOST = (1 << 63) - 1
_LONGEST = 300  # characters of a text


class BadCall(RvtraceError):
    """A call that no tool takes. *then*: the call that would be right."""

    def __init__(self, message: str, then: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.then = then


class ToolArgument(NamedTuple):
    """An argument: its JSON schema, and whether a call needs it."""

    schema: Mapping[str, Any]
    read: Callable[[object], Any]
    takes: str
    needed: bool = False


class TraceTool(NamedTuple):
    """A tool. *example*: arguments that any trace takes."""

    about: str
    arguments: Mapping[str, ToolArgument]
    example: Mapping[str, Any] = {}

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments."""
        return {
            "type": "object",
            "properties": {name: dict(it.schema) for name, it in self.arguments.items()},
            "required": [name for name, it in self.arguments.items() if it.needed],
            "additionalProperties": False,
        }


def checked_arguments(name: str, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a call. Raises BadCall."""
    tool = TOOLS.get(name)
    if tool is None:
        raise BadCall(f"there is no tool {_printable_name(name)}: {', '.join(TOOLS)}", tool_call("overview"))
    then, values = tool_call(name, **tool.example), {}
    for key, value in (given or {}).items():
        argument = tool.arguments.get(key)
        if argument is None:
            known = ", ".join(tool.arguments)
            raise BadCall(f"{name}: there is no argument {_printable_name(key)}, but {known}", then)
        if value is not None:
            values[key] = argument.read(value)
            if values[key] is None:
                raise BadCall(f"{name}: {key} is {argument.takes}", then)
    for key, argument in tool.arguments.items():
        if argument.needed and key not in values:
            raise BadCall(f"{name}: {key} is missing: {argument.takes}", then)
    return values


def remedy(name: str, hart: int | None = None) -> dict[str, Any]:
    """Return the call that helps when a tool cannot answer what it was asked of a hart."""
    names = {"find": ("calls", 0), "value": ("at", None)}
    tool, depth = names.get(name, ("overview", None))
    return tool_call(tool, depth=depth, hart=hart)


def _printable_name(text: str) -> str:
    return printable(text[:60])


def _number_argument(about: str, least: int = 1, most: int = _MOST, *, needed: bool = False) -> ToolArgument:
    schema = {"type": "integer", "minimum": least, "description": about}
    if most < _MOST:
        schema["maximum"] = most
    takes = f"a whole number from {least}" + (f" to {most}" if most < _MOST else "")
    return ToolArgument(schema, typed.number_in(range(least, most + 1)), takes, needed)


def _unmistakable_name(value: object, longest: int = _LONGEST) -> str | None:
    """Return a text that a command cannot take for an option."""
    text = typed.text(value)
    is_name = text is not None and 0 < len(text) <= longest and text.isprintable() and text[0] not in "-/ "
    return text if is_name else None


def _text_argument(about: str, *, needed: bool = False, longest: int = _LONGEST) -> ToolArgument:
    takes = f"a text of at most {longest} printable characters that begins with neither - nor /"
    schema = {"type": "string", "description": about}
    return ToolArgument(schema, lambda value: _unmistakable_name(value, longest), takes, needed)


def _choice_argument(about: str, *words: str, needed: bool = False) -> ToolArgument:
    schema = {"type": "string", "enum": list(words), "description": about}

    def read(value: object) -> str | None:
        return value if isinstance(value, str) and value in words else None

    return ToolArgument(schema, read, f"one of {', '.join(words)}", needed)


def _places_argument(about: str, *, needed: bool = True) -> ToolArgument:
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 8, "description": about}
    takes = "a list of 1 to 8 places, each a text that begins with neither - nor /"

    def read(value: object) -> list[str] | None:
        found = typed.list_of(value, _unmistakable_name)
        return found if found and len(found) <= 8 else None

    return ToolArgument(schema, read, takes, needed)


_HART = {"hart": _number_argument("the hart (default: the first)", 0, (1 << 32) - 1)}
_SKIP = {"skip": _number_argument("rows that were seen already, as `more` says", 0)}
_SINCE = {"since": _number_argument("only from this instruction on")}
_KIND = "only these; gap: where trace is lost"
_PLACES = "FUNCTION, FILE:LINE, FILE:FUNCTION, or 0xADDRESS"

TOOLS: Mapping[str, TraceTool] = {
    "overview": TraceTool(
        "Begin here: what the trace has and lacks, the tree of calls, the first traps and losses, and where it ends.",
        _HART,
    ),
    "calls": TraceTool(
        "Who called whom, as a tree: how often, and how many instructions ran there.",
        {"depth": _number_argument("levels (default 4), 0: all", 0, 1000), **_SKIP, **_HART},
    ),
    "functions": TraceTool(
        "The functions in the order in which they ran, each from instruction `begin` to `end`, with their level.",
        {"first": _number_argument("the first row (default 1)"), **_HART},
        {"first": 1},
    ),
    "find": TraceTool(
        "When functions were entered or lines ran, and where from. Of several places: one list, in their order.",
        {"where": _places_argument(f"places: {_PLACES}"), **_SINCE, **_SKIP, **_HART},
        {"where": ["main"]},
    ),
    "history": TraceTool(
        "The instructions that ran, with their source lines, and what happened between them.",
        {
            "first": _number_argument("the number of the first instruction", needed=True),
            "count": _number_argument("how many (default 15)", 1, 100),
            **_HART,
        },
        {"first": 1},
    ),
    "events": TraceTool(
        "What happened between instructions: traps, losses, returns to where no call came from.",
        {"kind": _choice_argument(_KIND, *KINDS, GAP_KIND), **_SINCE, **_SKIP, **_HART},
    ),
    "at": TraceTool(
        "The state before an instruction: it, the calls under way, the registers as far as they are known.",
        {"number": _number_argument("the instruction (default: the last one)"), **_HART},
    ),
    "frame": TraceTool(
        "A call that is under way at an instruction: its arguments, where it began and ended, what it returned, what it"
        " called, which of its lines ran.",
        {
            "number": _number_argument("an instruction in it", needed=True),
            "level": _number_argument("0: the function that runs there, 1: its caller, ...", 0, 1000),
            **_HART,
        },
        {"number": 1},
    ),
    "value": TraceTool(
        "A register, a variable or memory before an instruction, and which instructions wrote it before that.",
        {
            "what": _text_argument("$REGISTER, SYMBOL, 0xADDRESS, or 0xADDRESS,SIZE", needed=True),
            "number": _number_argument("the instruction (default: the end of the trace)"),
            "writers": _number_argument("how many writers (default 3)", 1, 10),
            **_HART,
        },
        {"what": "$sp"},
    ),
    "ask": TraceTool(
        "Questions about the whole run. explain: how it ended, what went wrong, what to ask next. why: what made a"
        " value, back to its origins, and which branches let that run; of $pc: what led to an instruction. log: values"
        " each time a place ran. calls-of: each call of a function with arguments and result. stack: how deep it was."
        " intervals: how long calls, traps or ways between places took. sql: SELECT of the tables of the trace. diff:"
        " where this run and the server's other one part.",
        {
            "question": _choice_argument("which", *QUESTIONS, needed=True),
            "what": _text_argument(
                "why: $REGISTER, VARIABLE, 0xADDRESS, $pc. log: EXPR, EXPR. calls-of: FUNCTION. intervals: FUNCTION,"
                " trap, interrupt, exception. sql: the query (default: the tables)", longest=2000
            ),
            "where": _places_argument("log: one place. intervals: from where, to where", needed=False),
            "number": _number_argument("why: before this instruction (default: the end of the trace)"),
            **_SKIP,
            **_HART,
        },
        {"question": "explain"},
    ),
}  # fmt: skip
