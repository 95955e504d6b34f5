"""The options for raw E-Trace bytes: one for each setting of `session.capture.etrace_settings`, and
`--parameters FILE`.

A setting for which N-Trace has an option of the same meaning uses that option.

`--parameters FILE` reads the parameters of an E-Trace encoder from a file of another tool. JSON and TOML may have the
names at any depth. Other files, such as the reference models' `.scf` and `.ucf`, have lines `name = value`. Names that
a decoder does not need are ignored; a value that it needs is used or refused, never ignored.
"""

import argparse
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.console import commands
from rvtrace_gdb.console.help_pages import ENCODER, RAW, group_of
from rvtrace_gdb.controlregs.encoder_features import ETRACE
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.decode.etrace.packet import LAYOUTS
from rvtrace_gdb.session.capture.etrace_settings import (
    SETTINGS,
    BadSetting,
    EtraceSetting,
    EtraceTraceOptions,
    Owner,
    SettingKind,
    SettingValue,
    check_settings,
    default,
    etrace_of,
)
from rvtrace_gdb.support import toml
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import open_input
from rvtrace_gdb.support.json_text import NotJson, json_value
from rvtrace_gdb.support.text import value_text

_MOST = 1 << 20
_SWITCHES = {"true": 1, "false": 0}
_OTHER_NAMES = {
    **{entry.name: entry.setting for table in LAYOUTS.values() for entry in table.entries if entry.setting},
    "branch_pred": "branch_prediction",
    "jtc": "jump_target_cache",
    "ir_ext": "iret_ext",
    "si_jump": "sijump",
}
"""The names that support packets have for settings, and those of the reference models' files."""

_WIDTHS = {"nocontext": "context_width", "notime": "time_width"}
"""Switches, with the settings that are 0 if they are on."""

_LINE = re.compile(r"""["']?(?P<name>[\w-]+)["']?\s*[=:]\s*(?P<quote>["']?)(?P<value>[\w.+-]+)(?P=quote)\s*,?""")
_SETS = re.compile(r"""["']?([\w-]+)["']?\s*[=:]""")
_COMMENT = re.compile(r"[#;].*")


class BadParametersFile(RvtraceError):
    """A file for --parameters that cannot be read, or has no usable value."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"--parameters {name}: {problem}")


class _FileValues:
    """The values in a file, by setting; a setting may be repeated, but only with the same value."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._values: dict[str, tuple[str, SettingValue]] = {}
        self._absent: list[str] = []

    def add(self, name: str, value: Any, line: int | None = None) -> None:
        """Add a value. Raises BadParametersFile."""
        if value is None:
            return
        key, where = _key(name), "" if line is None else f"line {line}: "
        width = _WIDTHS.get(name.lower().removesuffix("_p"))
        if width is not None and self._number_of_value(name, value, where):
            self._absent.append(width)
        if key is None:
            return
        number = self._number_of_value(name, value, where)
        if SETTINGS[key].kind is SettingKind.FLAG:
            if number not in (0, 1):
                raise BadParametersFile(self._file, f"{where}{name} is {value}, must be true or false")
            number = bool(number)
        before, known = self._values.get(key, (name, number))
        if known != number and name.endswith("_p") == before.endswith("_p"):
            raise BadParametersFile(self._file, f"{where}{name} is {value}, but {before} is {known}: leave one out")
        if key not in self._values or before.endswith("_p"):  # sijump_p: the encoder can do it, sijump: it is on
            self._values[key] = (name, number)

    def settings(self) -> dict[str, SettingValue]:
        return {key: value for key, (_, value) in self._values.items()} | dict.fromkeys(self._absent, 0)

    def _number_of_value(self, name: str, value: Any, where: str) -> int:
        """Return a value as a number: some files have numbers for switches, or all values in quotes."""
        if isinstance(value, int):
            return int(value)
        number = _SWITCHES.get(value.lower()) if isinstance(value, str) else None
        try:
            return int(value, 0) if number is None else number
        except (TypeError, ValueError):
            problem = f"{where}{name} is {value_text(value)}, which is not a number"
            raise BadParametersFile(self._file, problem) from None


def read_parameters(name: str) -> dict[str, SettingValue]:
    """Read the settings in a file. Raises BadParametersFile."""
    text, said = _text_of_file(name), _FileValues(name)
    if text.lstrip()[:1] == "{":
        _add_setting(said, _json(name, text))
    else:
        try:
            _add_setting(said, toml.loads(text))
        except (ValueError, RecursionError):  # TOMLDecodeError is one, and so is a number with too many digits
            _add_lines(said, name, text)
    try:
        found = check_settings(said.settings())
    except BadSetting as error:
        raise BadParametersFile(name, str(error)) from None
    if not found:
        raise BadParametersFile(name, "has neither lines like `iaddress_width_p = 64` nor JSON with such names")
    return found


def _text_of_file(name: str) -> str:
    try:
        with io.TextIOWrapper(open_input(name), encoding="utf-8-sig") as file:
            text = file.read(_MOST + 1)
    except OSError as error:
        raise BadParametersFile(name, f"cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, ValueError):
        raise BadParametersFile(name, "is not text") from None
    if len(text) > _MOST:
        raise BadParametersFile(name, f"is longer than {_MOST} characters, which no parameters are")
    return text


def _json(name: str, text: str) -> Any:
    try:
        return json_value(text)
    except NotJson as error:
        raise BadParametersFile(name, str(error)) from None


def _add_setting(values: _FileValues, found: Any) -> None:
    """Add the values in a JSON or TOML file, at any depth."""
    for name, value in _pairs(found):
        values.add(name, value)


def _pairs(found: Any) -> Iterator[tuple[str, Any]]:
    """Return (name, value) of all values except objects and lists; of these too if the name is that of a setting."""
    waiting = [found]
    while waiting:
        here = waiting.pop(0)
        for name, value in here.items() if isinstance(here, Mapping) else ():
            if isinstance(value, Mapping | list) and _key(name) is None:
                waiting.append(value)
            else:
                yield name, value
        waiting += here if isinstance(here, list) else []


def _add_lines(values: _FileValues, file: str, text: str) -> None:
    for number, whole in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", whole).strip()
        found = _LINE.fullmatch(line)
        if found is not None:
            values.add(found["name"], found["value"], number)
        elif any(_key(name) is not None for name in _SETS.findall(line)):
            raise BadParametersFile(file, f"line {number}: `{line}` is not one `name = value`")


def _key(name: str) -> str | None:
    """Return the setting for a name in a file, None if a decoder does not need it."""
    key = name.lower().replace("-", "_").removesuffix("_p")
    key = _OTHER_NAMES.get(key, key)
    return key if key in SETTINGS and SETTINGS[key].kind in (SettingKind.NUMBER, SettingKind.FLAG) else None


SHARED = {
    "src_bits": "src_bits",
    "dialect": "dialect",
    **{feature.etrace: feature.ntrace for feature in ETRACE if feature.ntrace},
}
"""Settings that share an option with N-Trace, with the name of the option."""

_SPELLED = {"pinned": "pin_modes", "trap_handlers": "trap_handler"}
_GROUPS = {
    Owner.ENCAPSULATION: ("raw E-Trace: transport", "With --etrace: how packets are put into the trace."),
    Owner.PARAMETERS: (
        "raw E-Trace: parameters",
        "With --etrace: how the encoder was built. In parentheses: where that is specified (docs/etrace.md).",
    ),
    Owner.MODES: ("raw E-Trace: modes", "With --etrace: the modes that are on, until a support packet says otherwise."),
    Owner.OPTIONS: ("raw E-Trace: more", "With --etrace."),
}


class BadETrace(RvtraceError):
    """Options for raw E-Trace that have no usable value, or exclude each other."""


def dest(key: str) -> str:
    """Return the name of a setting's option in the parsed arguments."""
    return SHARED.get(key) or _SPELLED.get(key, key)


def option(key: str) -> str:
    """Return the option of a setting as users write it."""
    return f"--{dest(key).replace('_', '-')}"


def own_options() -> list[str]:
    """Return the names, in the parsed arguments, of the options that only E-Trace has."""
    return [*(dest(key) for key, setting in SETTINGS.items() if _is_option(key, setting)), "parameters"]


def add_arguments(parser: argparse.ArgumentParser, *, raw: bool = True) -> None:
    """Add the options that only E-Trace has. *raw*: they describe existing raw bytes, else how to encode new ones."""
    for owner, (title, text) in _GROUPS.items():
        if not raw:
            title, text = title.removeprefix("raw E-Trace: "), text.removeprefix("With --etrace: ").capitalize()
        group = group_of(parser, RAW if raw else ENCODER, title, text)
        for key, setting in SETTINGS.items():
            if setting.owner is owner and _is_option(key, setting):
                _add_setting_option(group, key, setting)
        if owner is Owner.PARAMETERS:
            group.add_argument(
                "--parameters", metavar="FILE",
                help="a file with lines `name = value`, TOML, or JSON: parameters and modes by their names in the"
                " specification, with or without _p",
            )  # fmt: skip


def add_shared(group: Any) -> None:
    """Add the options in `SHARED`, for a command without N-Trace."""
    group.add_argument("--src-bits", type=_default_number(SETTINGS["src_bits"]), metavar="N", help="width of srcID")
    for key in (feature.etrace for feature in ETRACE if feature.ntrace):
        names = dict.fromkeys((option(key), f"--{key.replace('_', '-')}"))
        group.add_argument(*names, action="store_const", const=True, help=_setting_help(SETTINGS[key]))
    group.add_argument(
        "--dialect", choices=list(SETTINGS["dialect"].allowed),
        help="the encoder that sent the packets (default standard)",
    )  # fmt: skip


def whole_number(bits: int) -> Any:
    """Return an argparse type: a number of at most *bits* bits."""
    return _default_number(EtraceSetting(Owner.NOTHING, SettingKind.NUMBER, "", "", range(1 << bits)))


@dataclass(frozen=True)
class GivenSettings:
    """The settings on the command line. *parameters*: the file of --parameters. *values*: by setting."""

    dialect: Dialect
    parameters: str | None
    values: Mapping[str, SettingValue]

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "GivenSettings":
        """Return what a command with the options of `add_arguments` says."""
        values = {key: value for key in SETTINGS if (value := _given(args, key)) is not None}
        return cls(Dialect(args.dialect or Dialect.STANDARD), args.parameters, values)

    def settings(self) -> dict[str, SettingValue]:
        """Return all settings. Raises BadParametersFile.

        A dialect has default parameters and a default transport, which the file and other options override.
        """
        settings: dict[str, SettingValue] = {**DEFAULTS[self.dialect]}
        if self.parameters is not None:
            settings |= read_parameters(self.parameters)
        return {**settings, **self.values}


def trace_options(settings: Mapping[str, SettingValue], xlen: int | None) -> EtraceTraceOptions:
    """Return how bytes with these settings were encoded. *xlen*: that of the program, if known. Raises `BadETrace`."""
    try:
        return etrace_of(check_settings({"iaddress_width": xlen or 64, **settings}))
    except BadSetting as error:
        raise BadETrace(f"{option(error.key)} {error.problem}") from None


def _is_option(key: str, setting: EtraceSetting) -> bool:
    return key not in SHARED and setting.owner is not Owner.NOTHING


def _add_setting_option(group: Any, key: str, setting: EtraceSetting) -> None:
    text = _setting_help(setting)
    common: dict[str, Any] = {"dest": dest(key), "default": None}
    if setting.kind is SettingKind.FLAG:
        group.add_argument(option(key), action="store_const", const=True, help=text, **common)
    elif setting.kind is SettingKind.CHOICE:
        text += f" (default {default(key)})"
        group.add_argument(option(key), choices=list(setting.allowed), help=text, **common)
    elif setting.kind is SettingKind.NUMBER:
        shown = "XLEN" if key == "iaddress_width" else default(key)
        text += "" if "default" in text or shown is None else f", default {shown}"
        group.add_argument(option(key), type=_default_number(setting), metavar="N", help=text, **common)
    elif setting.kind is SettingKind.ADDRESS:
        group.add_argument(option(key), type=_address_argument, metavar="TVEC", help=text, **common)
    else:
        text += ': the number of the cause, of an interrupt with an "i" before; may be repeated'
        group.add_argument(option(key), type=_handler, action="append", metavar="CAUSE=ADDRESS", help=text, **common)


def _setting_help(setting: EtraceSetting) -> str:
    return setting.meaning + (f" ({setting.source})" if setting.source else "")


def _given(args: argparse.Namespace, key: str) -> SettingValue | None:
    """Return the value of an option, None if it was not given."""
    value = getattr(args, dest(key), None)
    if key == "implicit_return":
        return None if value is None else value != "off"
    if key == "trap_handlers":
        return dict(value) if value else None
    return None if value is False else value


def _default_number(setting: EtraceSetting) -> Any:
    def number(text: str) -> int:
        assert isinstance(setting.allowed, range)
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if value not in setting.allowed:
            span = f"{setting.allowed[0]} to {setting.allowed[-1]}"
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {span}")
        return value

    return number


def _address_argument(text: str) -> str:
    return f"{commands.address_argument(text):#x}"


def _handler(text: str) -> tuple[str, str]:
    cause, equals, handler = text.partition("=")
    if not equals or not re.fullmatch(r"i?\d{1,19}", cause):
        raise argparse.ArgumentTypeError(f"{text!r} is not a cause and a handler, as in 2=0x80000100 or i7=0x80000200")
    return cause, _address_argument(handler)


def words(settings: Mapping[str, SettingValue], better: Mapping[str, SettingValue]) -> list[str]:
    """Return how the command line changes from one set of settings to another, e.g. "with --src-bits 8".

    A change of dialect also changes its default values, except the width of addresses, which the program determines.
    """
    old, new = (DEFAULTS[Dialect(values.get("dialect", Dialect.STANDARD))] for values in (settings, better))
    own = {key: value for key, value in settings.items() if key == "iaddress_width" or old.get(key) != value}
    effective = settings if old is new else {**new, **own}
    return [
        _change(key, better.get(key), by_dialect=key in new)
        for key in sorted(SETTINGS, key=lambda key: key != "dialect")
        if SETTINGS[key].owner is not Owner.NOTHING
        and _setting_value(key, better) != _setting_value(key, settings if key == "dialect" else effective)
    ]


def _setting_value(key: str, values: Mapping[str, SettingValue]) -> SettingValue | None:
    return values.get(key, default(key))


def _change(key: str, value: SettingValue | None, *, by_dialect: bool) -> str:
    """Return the change that gives a setting a value. *by_dialect*: whether the dialect has another default."""
    if value is None and by_dialect:
        value = default(key)
    if value is None or value is False or value == {}:
        return f"without {option(key)}"
    if key == "implicit_return":
        return f"with {option(key)} on"
    return f"with {option(key)}" + ("" if value is True else f" {value}")
