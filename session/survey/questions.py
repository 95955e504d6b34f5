"""What only the user knows of a board: questions, their answers, and where an answer comes from.

The code here decides what has to be asked. Who asks, on a terminal or by options of a command line, is an `Ask`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from rvtrace_gdb.support.errors import RvtraceError

QuestionValue = TypeVar("QuestionValue")


class BoardError(RvtraceError):
    """Why no target description can be made; one line with what to do."""


class Unfit(BoardError):
    """An answer that cannot be used."""


class MissingAnswer(BoardError):
    """There is nobody to ask. *option*: of the command line, gives the answer."""

    def __init__(self, text: str, option: str, default: str | None) -> None:
        self.option = option
        other = f', or --yes for the default "{default}"' if default is not None else ""
        super().__init__(f"{text}: there is no terminal to ask on; give {option}{other}")


class SurveySetting(NamedTuple):
    """A value of the target description. *source*: where it comes from, for the comment beside it."""

    value: object
    source: str


@dataclass(frozen=True)
class Question(Generic[QuestionValue]):
    """*option*: the option of the command line that has the answer as well. *key*: what it is about, if the option is
    given for several.

    *default*: the answer of who only presses Enter, None if there has to be one; *because*: why it is the default.
    *parse*: raises Unfit. *explanation*: a line for who is asked. *obvious*: the default is taken unless the option is
    given. *optional*: so it is where there is no terminal.
    """

    text: str
    option: str
    parse: Callable[[str], QuestionValue]
    default: str | None = None
    because: str = ""
    key: str = ""
    explanation: str = ""
    obvious: bool = False
    optional: bool = False

    @property
    def spelt(self) -> str:
        """The option as it is typed."""
        name, _, form = self.option.partition(" ")
        return f"{name} {self.key + '=' if self.key else ''}{form}".rstrip()


class Answered(NamedTuple, Generic[QuestionValue]):
    """An answer. *source*: "given by you (--hart)", or why it is the default."""

    value: QuestionValue
    source: str


class Ask(Protocol):
    """Gets answers. *tell* says what was found meanwhile, a line at a time."""

    def ask(self, question: Question[QuestionValue]) -> Answered[QuestionValue]:
        """Return the answer. Raises MissingAnswer, Unfit."""
        ...

    def tell(self, line: str) -> None:
        """Show a line."""
        ...


def yes_or_no(text: str) -> bool:
    """Parse the answer to a question for yes or no. Raises Unfit."""
    if text.lower() in ("y", "yes", "n", "no"):
        return text.lower().startswith("y")
    raise Unfit(f'"{text}": answer y or n')
