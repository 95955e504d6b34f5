"""`--parameters FILE`: how an E-Trace encoder was built, from a file of another tool.

JSON and TOML are read as such, the names at any depth. Other files, such as the reference models' `.scf` and `.ucf`,
have a line `name = value` each. What is of no use to a decoder is not looked at; what is of use is taken or refused,
never left out.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from rvtrace_gdb.session.etrace_settings import SETTINGS, BadSetting, Kind, Value, checked
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import shown

_MOST = 1 << 20
_SWITCHES = {"true": 1, "false": 0}
_OTHER_NAMES = {
    "no_address": "data_no_address",
    "no_data": "data_no_data",
    "full_daddress": "data_full_address",
    "full_data": "data_full_data",
    "full_iaddress": "full_address",
    "implicit_except": "implicit_exception",
    "branch_predictor": "branch_prediction",
    "branch_pred": "branch_prediction",
    "jtc": "jump_target_cache",
    "ir_ext": "iret_ext",
    "si_jump": "sijump",
}
"""What support packets and the reference models' files call modes."""

_WIDTHS = {"nocontext": "context_width", "notime": "time_width"}
"""Switches, and the settings that are 0 where they are on."""

_LINE = re.compile(r"""["']?(?P<name>[\w-]+)["']?\s*[=:]\s*(?P<quote>["']?)(?P<value>[\w.+-]+)(?P=quote)\s*,?""")
_SETS = re.compile(r"""["']?([\w-]+)["']?\s*[=:]""")
_COMMENT = re.compile(r"[#;].*")


class BadParametersFile(RvtraceError):
    """A file for --parameters that cannot be read, or says nothing usable."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"--parameters {name}: {problem}")


class _Said:
    """What a file says, by setting; each may be said again, but not otherwise."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[str, tuple[str, Value]] = {}
        self._absent: list[str] = []

    def add(self, name: str, value: Any, line: int | None = None) -> None:
        """Raises BadParametersFile."""
        if value is None:
            return
        key, where = _key(name), "" if line is None else f"line {line}: "
        width = _WIDTHS.get(name.lower().removesuffix("_p"))
        if width is not None and self._number(name, value, where):
            self._absent.append(width)
        if key is None:
            return
        number = self._number(name, value, where)
        if SETTINGS[key].kind is Kind.FLAG:
            if number not in (0, 1):
                raise BadParametersFile(self._file, f"{where}{name} is {value}, must be true or false")
            number = bool(number)
        before, known = self._found.get(key, (name, number))
        if known != number and name.endswith("_p") == before.endswith("_p"):
            raise BadParametersFile(self._file, f"{where}{name} is {value}, but {before} is {known}: leave one out")
        if key not in self._found or before.endswith("_p"):  # sijump_p says what there is, sijump what is on
            self._found[key] = (name, number)

    def settings(self) -> dict[str, Value]:
        return {key: value for key, (_, value) in self._found.items()} | dict.fromkeys(self._absent, 0)

    def _number(self, name: str, value: Any, where: str) -> int:
        """A value: some files have numbers for switches, or everything in quotes."""
        if isinstance(value, int):
            return int(value)
        number = _SWITCHES.get(value.lower()) if isinstance(value, str) else None
        try:
            return int(value, 0) if number is None else number
        except (TypeError, ValueError):
            raise BadParametersFile(self._file, f"{where}{name} is {shown(value)}, which is no number") from None


def read(name: str) -> dict[str, Value]:
    """The settings in a file. Raises BadParametersFile."""
    text, said = _text(name), _Said(name)
    if text.lstrip()[:1] == "{":
        _add(said, _json(name, text))
    else:
        try:
            _add(said, tomllib.loads(text))
        except (ValueError, RecursionError):  # TOMLDecodeError is one, and so is a number with too many digits
            _add_lines(said, name, text)
    try:
        found = checked(said.settings())
    except BadSetting as error:
        raise BadParametersFile(name, str(error)) from None
    if not found:
        raise BadParametersFile(name, "has neither lines like `iaddress_width_p = 64` nor JSON with such names")
    return found


def _text(name: str) -> str:
    try:
        with open(name, encoding="utf-8-sig") as file:
            text = file.read(_MOST + 1)
    except OSError as error:
        raise BadParametersFile(name, f"cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError):
        raise BadParametersFile(name, "is no text") from None
    if len(text) > _MOST:
        raise BadParametersFile(name, f"is longer than {_MOST} characters, which no parameters are")
    return text


def _json(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadParametersFile(name, f"is no JSON: line {error.lineno} column {error.colno}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise BadParametersFile(name, "is no JSON that can be read: too deep, or a number is too long") from None


def _add(said: _Said, found: Any) -> None:
    """What a JSON or TOML file says, at any depth."""
    for name, value in _pairs(found):
        said.add(name, value)


def _pairs(found: Any) -> Iterator[tuple[str, Any]]:
    """(name, value) of all that is neither an object nor a list, and of the latter where a number is due."""
    waiting = [found]
    while waiting:
        here = waiting.pop(0)
        for name, value in here.items() if isinstance(here, Mapping) else ():
            if isinstance(value, Mapping | list) and _key(name) is None:
                waiting.append(value)
            else:
                yield name, value
        waiting += here if isinstance(here, list) else []


def _add_lines(said: _Said, file: str, text: str) -> None:
    for number, whole in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", whole).strip()
        found = _LINE.fullmatch(line)
        if found is not None:
            said.add(found["name"], found["value"], number)
        elif any(_key(name) is not None for name in _SETS.findall(line)):
            raise BadParametersFile(file, f"line {number}: `{line}` is not one `name = value`")


def _key(name: str) -> str | None:
    """The setting that a file calls so, None where it is of no use to a decoder."""
    key = name.lower().replace("-", "_").removesuffix("_p")
    key = _OTHER_NAMES.get(key, key)
    return key if key in SETTINGS and SETTINGS[key].kind in (Kind.NUMBER, Kind.FLAG) else None
