"""Places in the program as the commands of the shell take them: the LOCATIONs of `trace find` in gdb."""

from collections.abc import Iterator
from typing import Any

from rvtrace_gdb.console import commands
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.names.function_symbols import did_you_mean, is_function, names_of
from rvtrace_gdb.decode.program.source.source_lines import SourceLines, is_named
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable

_FILES = 3  # that a message names


class LocationError(RvtraceError):
    """A text that is not a place of the program."""


class Locations:
    """Places in a program."""

    def __init__(self, image: Image) -> None:
        self._image, self._lines = image, SourceLines(image)

    def search(self, text: str) -> dict[str, Any]:
        """Return the parameters of a search for what `trace find` takes. Raises LocationError."""
        parts = _split(text, ",")
        if len(parts) > 1:
            begin, end = self.address(",".join(parts[:-1])), self.address(parts[-1])
            if end < begin:
                raise LocationError(f"{text}: the second address is before the first")
            return {"name": text, "first": begin, "last": end}
        if text.startswith("*"):
            return {"name": text, "first": self.address(text[1:]), "others": []}
        functions = self.functions(text)
        if functions:
            return {"name": text, "first": functions[0], "functions": functions[1:], "function": True, "others": []}
        line = next(((file, int(name)) for file, name in _in_files(text) if name.isdecimal()), None)
        places = [self.address(text)] if line is None else self._of_line(text, *line)
        return {"name": text, "first": places[0], "others": places[1:]}

    def functions(self, text: str) -> list[int]:
        """Return the addresses of all functions that are meant by FUNCTION, or FILE:FUNCTION. Raises LocationError: the
        file is one of the program, and has no such function.
        """
        text = _unquoted(text)
        found = sorted({address for address, _ in self._image.symbols_named(text)})
        if found:
            return found
        for file, name in _in_files(text):
            functions = [] if name.isdecimal() else sorted({at for at, _ in self._image.symbols_named(_unquoted(name))})
            found = [at for at in functions if (row := self._lines.row(at)) is not None and is_named(row.path, file)]
            if found:
                return found
            if functions:
                self._check_file(text, file)
                raise LocationError(f"{text}: {file} has no function {name}, another file has")
        return []

    def address(self, text: str) -> int:
        """Return an address, or that of the only function of that name. Raises LocationError."""
        functions = self.functions(text)
        if len(functions) == 1:
            return functions[0]
        try:
            return commands.address(text)
        except commands.Unclear as error:
            raise LocationError(str(error)) from None
        except commands.NoAddress:
            near = "" if functions else did_you_mean(text, names_of(self._image))
            raise LocationError(f"{text}: {self._no_address(functions)}{near and f'.{near}'}") from None

    def _no_address(self, functions: list[int]) -> str:
        if not functions:
            return "neither a function of the program, nor an address"
        names = [name[0] for at in functions if (name := self._image.symbol(at)) is not None]
        several = f": {', '.join(map(printable, names[:_FILES]))}" if len(set(names)) > 1 else ""
        return f"several functions have that name{several}"

    def _of_line(self, text: str, file: str, line: int) -> list[int]:
        places = self._lines.addresses(file, line)
        if not places:
            self._check_file(text, file)
            raise LocationError(f"{text}: no code of the program is from that line")
        return places

    def _check_file(self, text: str, file: str) -> None:
        """Raise LocationError if there is no such source file, or if that cannot be known."""
        paths = self._lines.paths()
        if any(is_named(path, file) for path in paths):
            return
        if self._lines.problems:
            raise LocationError(f"{text}: no line is known: {printable(self._lines.problems[0])}")
        same = sorted(path for path in paths if is_named(path, file.rpartition("/")[2]))
        known = f"; it has {', '.join(map(printable, same[:_FILES]))}" if same else ""
        raise LocationError(f"{text}: the program has no source file {file}{known}")


def check_data(text: str, image: Image, file: str) -> None:
    """Raise LocationError if a name is that of a function, which has no value. *file*: the trace, for what to type."""
    if any(is_function(image, address) for address, _ in image.symbols_named(text)):
        raise LocationError(
            f"{text} is a function, and has no value: `rvtrace calls-of {file} {text}` shows its calls,"
            f" `rvtrace why {file} '$pc' --branches --at N` why instruction N ran"
        )


def memory_place(text: str, image: Image) -> tuple[int, int] | None:
    """Return (address, size) of what ADDRESS, ADDRESS,SIZE or a symbol stands for; None: it is not one of these. A SIZE
    is what the user gave. Raises LocationError: it is unclear whether the address is decimal.
    """
    address, comma, size = text.partition(",")
    try:
        return commands.address(address), int(size, 0) if comma else 1
    except commands.Unclear as error:
        raise LocationError(str(error)) from None
    except ValueError:
        return next(((found, max(length, 1)) for found, length in image.symbols_named(text)), None)


def _in_files(text: str) -> Iterator[tuple[str, str]]:
    """Yield (FILE, what follows) for each colon of a text that can be the end of a file's name: not those of `::`."""
    for place, character in enumerate(text):
        if character == ":" and text[place - 1 : place] != ":" and text[place + 1 : place + 2] not in (":", ""):
            yield _unquoted(text[:place]), text[place + 1 :]


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] and text[0] in "'\"" else text


def _split(text: str, separator: str) -> list[str]:
    """Return the parts between separators that are not in parentheses, templates or quotes."""
    parts, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += (character in "([{<") - (character in ")]}>")
        if character == separator and depth <= 0 and not quote:
            parts.append("")
        else:
            parts[-1] += character
    return parts
