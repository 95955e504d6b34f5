"""Write the tables of options in the documentation anew, from the tables that the programs have them from.

    .venv/bin/python scripts/option_tables.py [--print]

*--print*: on standard output, and nothing is written. Between the marks of a page nothing is written by hand; a test
compares.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from rvtrace_gdb.console.options.etrace import option as raw_option
from rvtrace_gdb.controlregs.encoder_features import NTRACE, EncoderFeature
from rvtrace_gdb.gdbext.options import Option
from rvtrace_gdb.gdbext.start_options import GROUPS
from rvtrace_gdb.session.capture.etrace_settings import SETTINGS, Owner
from rvtrace_gdb.transport.usb.adapters import ADAPTERS, Adapter

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- options: written by scripts/option_tables.py -->\n", "<!-- end of options -->\n"


def start_options() -> str:
    """A heading and a table for each group of options of `trace start`."""

    def row(option: Option) -> str:
        usage = option.usage.replace("|", "\\|")
        return f"| `{usage}` | {' '.join(option.help)} |\n"

    return "".join(
        f"\n### {group.title}\n\n| option | |\n|---|---|\n{''.join(map(row, group.options))}" for group in GROUPS
    )


def ntrace_features() -> str:
    """What must be known of an encoder's features to read N-Trace."""

    def option(feature: EncoderFeature) -> str:
        name = f"--{feature.ntrace.replace('_', '-')}{' MODE' if feature.words else ''}"
        return "none" if feature.in_messages else f"`{name}`"

    rows = "".join(f"| {it.field} | {option(it)} | {it.meaning} | {it.wrong} |\n" for it in NTRACE)
    return f"\n| register field | option | if it is on | without the option |\n|---|---|---|---|\n{rows}"


def etrace_modes() -> str:
    """The settings of E-Trace that are modes of the encoder."""
    rows = (
        f"| `{key}` | `{raw_option(key)}{' on' if key == 'implicit_return' else ''}` ({it.told_by}) | switch |"
        f" {it.meaning} |\n"
        for key, it in SETTINGS.items() if it.owner is Owner.MODES
    )  # fmt: skip
    return f"\n| setting | option | values | meaning |\n|---|---|---|---|\n{''.join(rows)}"


def usb_adapters() -> str:
    """The adapters for USB without OpenOCD."""

    def ids(adapter: Adapter) -> str:
        return ", ".join(f"`{vendor:04x}:{product:04x}`" for vendor, product in adapter.ids)

    rows = "".join(f'| `"{it.name}"` | {ids(it)}: {it.devices} | {it.found_in} |\n' for it in ADAPTERS.values())
    return f"\n| `adapter` | devices | found in |\n|---|---|---|\n{rows}"


PAGES: Mapping[str, Callable[[], str]] = {
    "trace-start.md": start_options, "ntrace.md": ntrace_features, "etrace.md": etrace_modes, "usb.md": usb_adapters,
}  # fmt: skip
"""The pages with marks, and what stands between them."""


def renewed(page: str, tables: str) -> str:
    """*page* with the tables as they are to be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{tables}\n{END}{after}"


def main() -> None:
    for name, tables in PAGES.items():
        if sys.argv[1:] == ["--print"]:
            print(tables())
            continue
        page = (DOCS / name).read_text(encoding="utf-8")
        if BEGIN not in page or END not in page:
            sys.exit(f"{name} has no marks {BEGIN.strip()} and {END.strip()}")
        (DOCS / name).write_text(renewed(page, tables()), encoding="utf-8")


if __name__ == "__main__":
    main()
