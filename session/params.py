"""The parameters of a request of the session protocol, checked."""

from collections.abc import Mapping
from typing import Any

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.finding import Events, Executions, Gaps, Question
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import is_file_name, printable

PROTOCOL = 1
ROWS_AT_MOST = 4096


class BadRequest(RvtraceError):
    """A request that is not of the protocol: the client is of another version, or wrong."""


class BadName(RvtraceError):
    """A text in the place of a file's name that no file can have."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{printable(name)[:200]}: no file can be called that: it has a NUL in it, or a character that is none"
        )
        self.name = name


class Params:
    """The parameters of a request to *method*, asked for by kind. Raises `BadRequest`; unknown ones are ignored."""

    def __init__(self, values: object, method: str) -> None:
        if not isinstance(values, dict):
            raise BadRequest(f"{method}: params must be an object")
        self._values, self._method = values, method

    def text(self, name: str, default: str | None = None) -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise self._bad(name)
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self._values.get(name) is None else self.text(name)

    def path(self, name: str) -> str:
        """The name of a file. Raises BadName besides."""
        return _possible(self.text(name))

    def optional_path(self, name: str) -> str | None:
        return None if self._values.get(name) is None else self.path(name)

    def paths(self, name: str) -> list[str]:
        """[] where it is not there."""
        return [_possible(text) for text in self.texts(name)]

    def number(self, name: str) -> int:
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._bad(name)
        return value

    def optional_number(self, name: str) -> int | None:
        return self.number(name) if self.given(name) else None

    def size(self) -> int:
        """How many are shown at once, 0 for all."""
        return self.optional_number("size") or 0

    def page(self, what: str) -> tuple[int, int]:
        """*begin* and *end* of what is fetched at once."""
        begin, end = self.number("begin"), self.number("end")
        if not 1 <= begin <= end <= begin + ROWS_AT_MOST:
            raise BadRequest(f"{what} {begin} to {end}: at most {ROWS_AT_MOST} from 1 on can be asked for at once")
        return begin, end

    def texts(self, name: str) -> list[str]:
        """None where it is not there."""
        value = self._values.get(name) or []
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self._bad(name)
        return value

    def numbers(self, name: str) -> list[int]:
        """None where it is not there."""
        value = self._values.get(name) or []
        if not isinstance(value, list) or not all(isinstance(number, int) and number >= 0 for number in value):
            raise self._bad(name)
        return value

    def place(self, name: str) -> tuple[int, int] | None:
        """[address, size] of some memory."""
        value = self._values.get(name)
        if value is None:
            return None
        numbers = [it for it in value if isinstance(it, int) and it >= 0] if isinstance(value, list) else []
        if len(numbers) != 2 or len(value) != 2:
            raise self._bad(name)
        return numbers[0], numbers[1]

    def question(self) -> Question:
        """What is to be found: *what* and the rest of it."""
        what = self.text("what")
        if what == "events":
            return Events(tuple(self.texts("kinds")))
        if what == "gaps":
            return Gaps()
        if what != "executions":
            raise self._bad("what")
        last = self.optional_number("last")
        name, first, others = self.text("name"), self.number("first"), self.numbers("others")
        functions = tuple(self.numbers("functions"))
        return Executions(name, first, last, self.given("function"), tuple(others), functions)

    def memory(self, name: str) -> list[bytes | None] | None:
        """Pieces of memory in hex; null where one could not be read."""
        value = self._values.get(name)
        if value is None:
            return None
        try:
            return [None if text is None else bytes.fromhex(text) for text in value]
        except (TypeError, ValueError):
            raise self._bad(name) from None

    def table(self, name: str) -> Mapping[str, Any]:
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._bad(name)
        return value

    def context(self) -> Context:
        inner = Params(self.table("context"), self._method)
        return Context(
            inner.optional_path("elf"),
            inner.optional_path("target_file"),
            inner.table("overrides"),
            inner.optional_number("runs"),
            inner.optional_number("hart"),
            inner.optional_number("thread_hart"),
            inner.optional_number("tvec"),
        )

    def given(self, name: str) -> bool:
        """Whether it is there and not null."""
        return self._values.get(name) is not None

    def _bad(self, name: str) -> BadRequest:
        return BadRequest(
            f"{self._method}: {name} is {self._values.get(name)!r}, which is not what protocol {PROTOCOL} says"
        )


def _possible(name: str) -> str:
    if name and not is_file_name(name):
        raise BadName(name)
    return name
