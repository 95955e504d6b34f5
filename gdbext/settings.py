"""`set trace ...` and `show trace ...`: the addresses of the trace components and of OpenOCD, and other settings.

One table has all settings. Each entry becomes a gdb parameter; the ones that are set are sent to the session, where
they override the target description.
"""

from __future__ import annotations

import os
import re
from typing import Any, Callable, NamedTuple

import gdb

from rvtrace_gdb.gdbext import completion, neutral


class Setting(NamedTuple):
    """A parameter: its name after `set trace`, the kind of its value, the session's name for it, and its documentation.

    *choices*: the values of a "choice"; the first one is the default. *of_target*: it is instead of what the target
    description says.
    """

    name: str
    kind: str  # "file", "address", "number", "port", "ranges", "text", "choice", "fraction" or "scale" (above 0)
    key: str
    doc: str
    choices: tuple[str, ...] = ()
    of_target: bool = False


SETTINGS = (
    Setting(
        "target",
        "file",
        "target_file",
        "the target description (TOML): trace components, base addresses, connections;\n"
        "or the name of one that comes with rvtrace: `rvtrace targets` lists them.\n"
        "Without it: $RVTRACE_TARGET, else rvtrace.toml beside the program.",
        of_target=True,
    ),
    Setting(
        "encoder-base",
        "address",
        "encoder_base",
        "base address of the trace encoder (trTe* registers).",
        of_target=True,
    ),
    Setting(
        "ram-sink-base", "address", "ram_sink_base", "base address of the RAM sink (trRam* registers).", of_target=True
    ),
    Setting(
        "buffer-start", "address", "buffer_start", "first address of the trace buffer (SMEM mode).", of_target=True
    ),
    Setting("buffer-size", "address", "buffer_size", "size of the trace buffer in bytes (SMEM mode).", of_target=True),
    Setting(
        "openocd-host", "text", "openocd_host", "host OpenOCD's Tcl RPC server runs on (127.0.0.1).", of_target=True
    ),
    Setting("openocd-port", "port", "openocd_port", "port of OpenOCD's Tcl RPC server (6666).", of_target=True),
    Setting(
        "hart",
        "number",
        "hart",
        "the hart whose history is shown, if there are several.\n"
        "`trace goto` goes in its past, and selects its thread.\n"
        "auto: the hart of the selected thread, else the first in the trace.",
    ),
    Setting(
        "ctr-access",
        "choice",
        "ctr_access",
        "how the CSRs of Control Transfer Records are reached.\n"
        "openocd: OpenOCD's Tcl server; packets: the remote protocol's packets for\n"
        "registers, by number; named: gdb's registers, by name; usb: the adapter in\n"
        "the table [usb] of the target description, whatever gdb is connected to;\n"
        "auto: the first of these that gdb's connection has; usb if it has none.",
        ("auto", "openocd", "packets", "named", "usb"),
    ),
    Setting(
        "ctr-version",
        "choice",
        "ctr_version",
        "which version of Control Transfer Records the hart has.\n"
        "1.0 was ratified, 0.1.4 is a draft with other CSRs; auto: what the hart has.",
        ("auto", "1.0", "0.1.4"),
    ),
    Setting(
        "save-memory",
        "ranges",
        "save_memory",
        "which memory is saved by `trace start -with-memory` and `trace save`:\n"
        "ranges BEGIN-END or BEGIN,+SIZE, separated by spaces, or none.\n"
        "Without it: the RAM that the target description declares; `trace save`\n"
        "keeps the program's data and stack of that, unless it is little.",
    ),
    Setting(
        "position",
        "choice",
        "position",
        "where gdb shows the number of the instruction it is at in the past.\n"
        "stop: after each stop, as [1661 of 2007]; prompt: in the prompt, as\n"
        "(past 1661/2007); off: `trace position` and `trace status` show it.",
        ("stop", "prompt", "off"),
    ),
    Setting(
        "values",
        "choice",
        "values",
        "which values of the past are reconstructed from a trace that has only\n"
        "addresses: registers and memory from the instructions that ran.\n"
        "on: registers and memory; registers: no memory, for a target whose memory\n"
        "others also write; off: none, the past has only pc. `trace values` says\n"
        "what is known. Traces that contain values show these in any case.",
        ("on", "registers", "off"),
    ),
    Setting(
        "rtos",
        "text",
        "rtos",
        "the operating system whose tasks `trace tasks` lists: freertos, zephyr,\n"
        "rt-thread, linux, or a file that describes another one (docs/tasks.md).\n"
        "auto: the one that the program has symbols of; off: none.",
    ),
    Setting(
        "waves-cursor",
        "choice",
        "waves_cursor",
        "what happens when the cursor of a waveform viewer is moved by hand\n"
        "(`trace waves`).\n"
        "goto: gdb goes there, as `trace goto cursor` does, while it is in the past,\n"
        "at its prompt, and nothing is typed; off: it stays where it is.",
        ("goto", "off"),
    ),
    Setting(
        "waves-offset",
        "fraction",
        "waves_offset",
        "which time of the waveform viewer is time 0 of the trace: a number, in the\n"
        "viewer's units, such as 1200 or -10/3.\n"
        "auto: 0.",
    ),
    Setting(
        "waves-scale",
        "scale",
        "waves_scale",
        "how many units of the waveform viewer's time a tick of the trace is, or an\n"
        "instruction if the trace has no times: a number such as 10 or 5/2.\n"
        "auto: as in the file that `trace export` has written; 1 for any other.",
    ),
)


_MOST = {"port": 65535, "number": (1 << 63) - 1}
_FRACTIONS = ("fraction", "scale")
_FRACTION = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20}|/[1-9][0-9]{0,19})?")


def _parse(setting: Setting, text: str) -> Any:
    """Return the value of a setting; an empty text unsets it, or auto. Raises gdb.GdbError, one line."""
    if text == "auto" and setting.kind in ("address", "port", "number", *_FRACTIONS):
        return None
    if setting.kind == "ranges":
        _check_ranges(setting, text)
    if text and setting.kind in _FRACTIONS:
        _check_fraction(setting, text)
    if not text or setting.kind in ("file", "text", "choice", "ranges", *_FRACTIONS):
        return text or None
    try:
        value = int(neutral.evaluate(text))
    except (gdb.error, OverflowError):
        raise gdb.GdbError(f"set trace {setting.name}: {text!r} is not a number or expression.") from None
    if value < 0 or value > _MOST.get(setting.kind, value):
        raise gdb.GdbError(f"set trace {setting.name}: {text} is out of range.")
    return value


_ADDRESS = r"(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})"
_RANGE = re.compile(rf"{_ADDRESS}(?:,\+|[-,]){_ADDRESS}")


def _check_ranges(setting: Setting, text: str) -> None:
    """Raise gdb.GdbError, one line, if a text is not ranges, or none; the session reads it."""
    for word in () if text == "none" else text.split():
        if not _RANGE.fullmatch(word):
            hint = "give BEGIN-END or BEGIN,+SIZE, as in 0x80000000,+0x10000"
            raise gdb.GdbError(f"set trace {setting.name}: {word} is not a range: {hint}.")


def _check_fraction(setting: Setting, text: str) -> None:
    """Raise gdb.GdbError, one line, if a text is not a fraction; the session reads it."""
    if not _FRACTION.fullmatch(text):
        raise gdb.GdbError(f"set trace {setting.name}: {text} is not a number such as 1200, 2.5, 10/3 or auto.")
    if setting.kind == "scale" and (text.startswith("-") or not text.partition("/")[0].strip("0.")):
        raise gdb.GdbError(f"set trace {setting.name}: {text} is out of range.")


class _Parameter(gdb.Parameter):
    """One `set trace NAME`; the text is evaluated when it is set, so that `set trace encoder-base $base` works."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.parsed: Any = None
        self.__doc__ = f"The {setting.name} of the trace target."
        self.set_doc = f"Set {setting.doc}"
        self.show_doc = f"Show {setting.doc}"
        name = f"trace {setting.name}"
        if setting.choices:
            super().__init__(name, gdb.COMMAND_DATA, gdb.PARAM_ENUM, setting.choices)
            self.value = self.parsed = setting.choices[0]
        else:
            is_file = setting.kind == "file"
            super().__init__(name, gdb.COMMAND_DATA, gdb.PARAM_OPTIONAL_FILENAME if is_file else gdb.PARAM_STRING)
            self.value = ""
        self._accepted = self.value

    def get_set_string(self) -> str:
        text = str(self.value or "")
        try:
            self.parsed = _parse(self.setting, text)
        except gdb.GdbError:
            self.value = self._accepted
            raise
        was, self._accepted = self._accepted, text
        if was != text and self.setting.key in changed:
            changed[self.setting.key]()
        return ""

    def get_show_string(self, svalue: str) -> str:
        if not svalue or self.parsed is None:
            return f"The trace {self.setting.name} is not set."
        shown = f"{self.parsed:#x}" if self.setting.kind == "address" else svalue
        return f"The trace {self.setting.name} is {shown}."


class _Prefix(gdb.Command):
    def __init__(self, verb: str) -> None:
        self.__doc__ = f"{verb.capitalize()} where the trace hardware of the target is, and how it is reached."
        super().__init__(f"{verb} trace", gdb.COMMAND_DATA, gdb.COMPLETE_NONE, True)


class _SetTarget(gdb.Command):
    """In the place of gdb's own `set trace target`, which completes names of files alone; `with` does not take it."""

    def __init__(self, parameter: _Parameter) -> None:
        self._parameter = parameter
        self.__doc__ = parameter.set_doc
        super().__init__(f"set trace {parameter.setting.name}", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        self._parameter.value = os.path.expanduser(argument.strip())
        self._parameter.get_set_string()

    def complete(self, text: str, word: str | None) -> list[str] | int:
        names = [name for name in target_names() if name.startswith(text)]
        if not names:
            return gdb.COMPLETE_FILENAME
        files = [name for name in os.listdir() if name.startswith(text)]
        return completion.words(text, word, [*names, *files])


_LIBRARY = os.path.join("session", "description", "library", "targets")


def target_names() -> list[str]:
    """Return the names of the target descriptions that come with rvtrace, which has a folder for each."""
    room = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        return sorted(entry.name for entry in os.scandir(os.path.join(room, _LIBRARY)) if entry.is_dir())
    except OSError:
        return []


_parameters: list[_Parameter] = []
changed: dict[str, Callable[[], None]] = {}
"""What is called after a setting was changed, by the setting's key."""


def register() -> None:
    """Define `set trace` and `show trace` with everything below them."""
    _Prefix("set")
    _Prefix("show")
    _parameters[:] = [_Parameter(setting) for setting in SETTINGS]
    _SetTarget(next(it for it in _parameters if it.setting.name == "target"))


def target_settings() -> tuple[str | None, dict[str, Any]]:
    """Return (target description file, overrides of the description that are set)."""
    given = (it for it in _parameters if it.setting.of_target and it.parsed is not None)
    values = {parameter.setting.key: parameter.parsed for parameter in given}
    return values.pop("target_file", None), values


def hart() -> int | None:
    """Return the hart that was set, None if none was."""
    value: int | None = _setting_value("hart")
    return value


def ctr_access() -> str:
    """Return how to access the CSRs of Control Transfer Records: auto, openocd, packets, named or usb."""
    return str(_setting_value("ctr_access"))


def ctr_version() -> str | None:
    """Return the version of Control Transfer Records that was set, None: the one that the hart has."""
    version = str(_setting_value("ctr_version"))
    return None if version == "auto" else version


def position() -> str:
    """Return where gdb shows the number of the instruction it is at in the past: stop, prompt or off."""
    return str(_setting_value("position"))


def save_memory() -> str | None:
    """Return which memory is saved with a trace, None if nothing was set."""
    value: str | None = _setting_value("save_memory")
    return value


def values() -> str:
    """Return which values of the past are reconstructed: on, registers or off."""
    return str(_setting_value("values"))


def rtos() -> str:
    """Return the operating system that was set: auto, off, a name, or the path of a file."""
    text = str(_setting_value("rtos") or "auto")
    path = os.path.expanduser(text)
    return os.path.abspath(path) if os.path.isfile(path) else text


def waves_cursor() -> str:
    """Return what a moved cursor of a waveform viewer does: goto, or off."""
    return str(_setting_value("waves_cursor"))


def waves_scale() -> dict[str, str | None]:
    """Return offset and scale of a waveform viewer's times, None for what was not set."""
    return {"offset": _setting_value("waves_offset"), "scale": _setting_value("waves_scale")}


def openocd() -> tuple[str | None, int | None]:
    """Return host and port of OpenOCD's Tcl server; None for what was not set."""
    return _setting_value("openocd_host"), _setting_value("openocd_port")


def _setting_value(key: str) -> Any:
    return next(parameter.parsed for parameter in _parameters if parameter.setting.key == key)
