"""The options for raw E-Trace bytes: one for each setting of `session.etrace_settings`.

Where N-Trace has an option of the same meaning, that one is used.
"""

import argparse
import re
from collections.abc import Mapping
from typing import Any

from rvtrace_gdb.console import addresses, etrace_file
from rvtrace_gdb.decode.etrace.dialects import DEFAULTS
from rvtrace_gdb.decode.etrace.options import Dialect
from rvtrace_gdb.session.etrace import ETrace, default, made
from rvtrace_gdb.session.etrace_settings import SETTINGS, BadSetting, Kind, Owner, Setting, Value, checked
from rvtrace_gdb.support.errors import RvtraceError

SHARED = {
    "src_bits": "src_bits",
    "sijump": "sequential_jump",
    "implicit_return": "implicit_return",
    "dialect": "dialect",
}
"""Settings that options of N-Trace say, too: the names of these."""

_SPELLED = {"pinned": "pin_modes", "trap_handlers": "trap_handler"}
_GROUPS = {
    Owner.ENCAPSULATION: ("raw E-Trace: transport", "With --etrace: how packets are put into the trace."),
    Owner.PARAMETERS: (
        "raw E-Trace: parameters",
        "With --etrace: how the encoder was built. In parentheses: what tells it (docs/etrace.md).",
    ),
    Owner.MODES: ("raw E-Trace: modes", "With --etrace: what is on, until a support packet says otherwise."),
    Owner.OPTIONS: ("raw E-Trace: more", "With --etrace."),
}


class BadETrace(RvtraceError):
    """Options for raw E-Trace that have no usable value, or do not fit together."""


def dest(key: str) -> str:
    """What the option of a setting is called in the parsed arguments."""
    return SHARED.get(key) or _SPELLED.get(key, key)


def option(key: str) -> str:
    """The option of a setting as users write it."""
    return f"--{dest(key).replace('_', '-')}"


def own_options() -> list[str]:
    """What the options of E-Trace alone are called in the parsed arguments."""
    return [*(dest(key) for key, setting in SETTINGS.items() if _is_option(key, setting)), "parameters"]


def add_arguments(parser: argparse.ArgumentParser, *, raw: bool = True) -> None:
    """The options that are of E-Trace alone. *raw*: they say how raw bytes were made, else how to make them."""
    for owner, (title, text) in _GROUPS.items():
        if not raw:
            title, text = title.removeprefix("raw E-Trace: "), text.removeprefix("With --etrace: ").capitalize()
        group = parser.add_argument_group(title, text)
        for key, setting in SETTINGS.items():
            if setting.owner is owner and _is_option(key, setting):
                _add(group, key, setting)
        if owner is Owner.PARAMETERS:
            group.add_argument(
                "--parameters", metavar="FILE",
                help="a file with lines `name = value`, TOML, or JSON: parameters and modes by their names in the"
                " specification, with or without _p",
            )  # fmt: skip


def add_shared(group: Any) -> None:
    """The options of `SHARED`, for a command that has them of E-Trace only."""
    group.add_argument("--src-bits", type=_number(SETTINGS["src_bits"]), metavar="N", help="width of srcID")
    for key, *other in (("sijump", "--sijump"), ("implicit_return",)):
        group.add_argument(option(key), *other, action="store_const", const=True, help=_text(SETTINGS[key]))
    group.add_argument("--dialect", choices=list(SETTINGS["dialect"].allowed), help="whose packets (default standard)")


def whole_number(bits: int) -> Any:
    """An argparse type: a number of so many bits."""
    return _number(Setting(Owner.NOTHING, Kind.NUMBER, "", "", range(1 << bits)))


def how(args: argparse.Namespace, xlen: int | None) -> ETrace:
    """How the bytes were made. *xlen*: of the program, if it is known. Raises `BadETrace`.

    A dialect goes with parameters and a transport of its own, unless others are said.
    """
    values: dict[str, Any] = {"iaddress_width": xlen or 64}
    values |= DEFAULTS[Dialect(args.dialect or Dialect.STANDARD)]
    if args.parameters is not None:
        values |= etrace_file.read(args.parameters)
    values |= {key: value for key in SETTINGS if (value := _given(args, key)) is not None}
    try:
        return made(checked(values))
    except BadSetting as error:
        raise BadETrace(f"{option(error.key)} {error.problem}") from None


def _is_option(key: str, setting: Setting) -> bool:
    return key not in SHARED and setting.owner is not Owner.NOTHING


def _add(group: Any, key: str, setting: Setting) -> None:
    text = _text(setting)
    common: dict[str, Any] = {"dest": dest(key), "default": None}
    if setting.kind is Kind.FLAG:
        group.add_argument(option(key), action="store_const", const=True, help=text, **common)
    elif setting.kind is Kind.CHOICE:
        text += f" (default {default(key)})"
        group.add_argument(option(key), choices=list(setting.allowed), help=text, **common)
    elif setting.kind is Kind.NUMBER:
        shown = "XLEN" if key == "iaddress_width" else default(key)
        text += "" if "default" in text or shown is None else f", default {shown}"
        group.add_argument(option(key), type=_number(setting), metavar="N", help=text, **common)
    elif setting.kind is Kind.ADDRESS:
        group.add_argument(option(key), type=_address, metavar="TVEC", help=text, **common)
    else:
        text += ': the number of the cause, of an interrupt with an "i" before; may be repeated'
        group.add_argument(option(key), type=_handler, action="append", metavar="CAUSE=ADDRESS", help=text, **common)


def _text(setting: Setting) -> str:
    return setting.meaning + (f" ({setting.told_by})" if setting.told_by else "")


def _given(args: argparse.Namespace, key: str) -> Value | None:
    """What an option says, None where it is not there."""
    value = getattr(args, dest(key), None)
    if key == "implicit_return":
        return None if value is None else value != "off"
    if key == "trap_handlers":
        return dict(value) if value else None
    return None if value is False else value


def _number(setting: Setting) -> Any:
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


def _address(text: str) -> str:
    return f"{addresses.argument(text):#x}"


def _handler(text: str) -> tuple[str, str]:
    cause, equals, handler = text.partition("=")
    if not equals or not re.fullmatch(r"i?\d{1,19}", cause):
        raise argparse.ArgumentTypeError(f"{text!r} is not a cause and a handler, as in 2=0x80000100 or i7=0x80000200")
    return cause, _address(handler)


def words(said: Mapping[str, Value], better: Mapping[str, Value]) -> list[str]:
    """How the command line changes from one set of settings to another, e.g. "with --src-bits 8".

    With a dialect what it goes with comes and goes, too, but for the width of addresses, which the program tells.
    """
    old, new = (DEFAULTS[Dialect(values.get("dialect", Dialect.STANDARD))] for values in (said, better))
    own = {key: value for key, value in said.items() if key == "iaddress_width" or old.get(key) != value}
    effective = said if old is new else {**new, **own}
    return [
        _change(key, better.get(key), by_dialect=key in new)
        for key in sorted(SETTINGS, key=lambda key: key != "dialect")
        if SETTINGS[key].owner is not Owner.NOTHING
        and _value(key, better) != _value(key, said if key == "dialect" else effective)
    ]


def _value(key: str, values: Mapping[str, Value]) -> Value | None:
    return values.get(key, default(key))


def _change(key: str, value: Value | None, *, by_dialect: bool) -> str:
    """What to write for a setting to have a value. *by_dialect*: leaving it out would mean another."""
    if value is None and by_dialect:
        value = default(key)
    if value is None or value is False or value == {}:
        return f"without {option(key)}"
    if key == "implicit_return":
        return f"with {option(key)} on"
    return f"with {option(key)}" + ("" if value is True else f" {value}")
