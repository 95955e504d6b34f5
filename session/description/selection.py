"""Which target description applies to a request: that of a file, or one of single values that the user gave."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rvtrace_gdb.session.description.library import shipped
from rvtrace_gdb.session.description.model import (
    Description,
    DescriptionError,
    EncoderDescription,
    OpenOcdDescription,
    RamSinkDescription,
)

FILE_BESIDE_ELF = "rvtrace.toml"
VARIABLE = "RVTRACE_TARGET"
# The overrides that are addresses or sizes, and what they must be multiples of.
_ADDRESSES = {"encoder_base": 0x1000, "ram_sink_base": 0x1000, "buffer_start": 4, "buffer_size": 4}


def is_described(
    elf: str | None, target_file: str | None, overrides: Mapping[str, object], environ: Mapping[str, str]
) -> bool:
    """Return whether there is something that says what the target is, right or wrong."""
    given = {key for key, value in overrides.items() if value is not None}
    return bool(given & _ADDRESSES.keys()) or _named(elf, target_file, environ) is not None


def selected(
    elf: str | None, target_file: str | None, overrides: Mapping[str, object], environ: Mapping[str, str]
) -> Description:
    """Return the fields of `session.context.Context` that describe the target. Raises `DescriptionError`."""
    overrides = _checked(overrides)
    named = _named(elf, target_file, environ)
    if named is not None:
        return _overridden(shipped.load(named), overrides)
    if not overrides.keys() & _ADDRESSES.keys():
        raise DescriptionError(
            "no target description: name one with `set trace target FILE` or $RVTRACE_TARGET, or put it beside the"
            f" ELF as {FILE_BESIDE_ELF}; `rvtrace init` writes one: it has the addresses of encoder and RAM sink;"
            " `rvtrace targets` lists boards that rvtrace knows by name"
        )
    return _from_overrides(overrides)


def _named(elf: str | None, target_file: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the file of a description, or the name of a shipped target."""
    if target_file:
        return target_file
    if environ.get(VARIABLE):
        return environ[VARIABLE]
    if elf:
        beside = Path(elf).parent / FILE_BESIDE_ELF
        return str(beside) if os.path.exists(beside) else None
    return None


def _checked(overrides: Mapping[str, object]) -> dict[str, object]:
    """Return the overrides that are set, each known and of the right type."""
    checked = {key: value for key, value in overrides.items() if value is not None}
    for key, value in checked.items():
        if key in _ADDRESSES:
            _check_number(key, value, _ADDRESSES[key])
        elif key == "openocd_port":
            if not isinstance(value, int) or not 1 <= value <= 65535:
                raise DescriptionError(f"{value!r} is not a TCP port (1 to 65535)", key=key)
        elif key != "openocd_host":
            raise DescriptionError("there is no such setting", key=key)
        elif not isinstance(value, str) or not value:
            raise DescriptionError(f"{value!r} is not a host name", key=key)
    return checked


def _check_number(key: str, value: object, alignment: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
        raise DescriptionError(f"{value!r} is not a number from 0 to 2**64 - 1", key=key)
    if value % alignment or (value == 0 and key == "buffer_size"):
        raise DescriptionError(f"{value:#x} is not a multiple of {alignment:#x}" if value else "is 0", key=key)


def _overridden(description: Description, overrides: Mapping[str, Any]) -> Description:
    """Return *description* with single values replaced; it must be clear to which component they belong."""
    encoders, sinks = description.encoders, description.sinks
    if "encoder_base" in overrides:
        _only("encoder_base", encoders, "encoders")
        encoders = (replace(encoders[0], base=overrides["encoder_base"]),)
    for key, attribute in (("ram_sink_base", "base"), ("buffer_start", "start"), ("buffer_size", "size")):
        if key in overrides:
            _only(key, sinks, "RAM sinks")
            sinks = (replace(sinks[0], **{attribute: overrides[key]}),)
    openocd = OpenOcdDescription(
        overrides.get("openocd_host", description.openocd.host),
        overrides.get("openocd_port", description.openocd.tcl_port),
    )
    usb = None if overrides.keys() & {"openocd_host", "openocd_port"} else description.usb
    return replace(description, encoders=encoders, sinks=sinks, openocd=openocd, usb=usb)


def _only(key: str, components: tuple[object, ...], plural: str) -> None:
    if len(components) != 1:
        raise DescriptionError(f"the target description has {len(components)} {plural}, which one is meant?", key=key)


def _from_overrides(overrides: Mapping[str, Any]) -> Description:
    """Return a description with one encoder and one RAM sink. Without a buffer the sink is used in SRAM mode."""
    for key in ("encoder_base", "ram_sink_base"):
        if key not in overrides:
            raise DescriptionError("is not set, and no target description has it", key=key)
    for key, other in (("buffer_start", "buffer_size"), ("buffer_size", "buffer_start")):
        if key in overrides and other not in overrides:
            raise DescriptionError(f"is set, {other} is not: the buffer needs both", key=key)
    mode = "SMEM" if "buffer_start" in overrides else "SRAM"
    encoder = EncoderDescription("encoder", overrides["encoder_base"], 0, ("ram_sink",))
    sink = RamSinkDescription("ram_sink", overrides["ram_sink_base"], mode, None, None)
    return _overridden(Description("the target", "", None, OpenOcdDescription(), (encoder,), (sink,)), overrides)
