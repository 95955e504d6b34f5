"""Write the tables in the documentation anew, from the tables that the programs have them from.

    .venv/bin/python scripts/option_tables.py [--print]

*--print*: on standard output, and nothing is written. Between the marks of a page nothing is written by hand; a test
compares.
"""

import sys
from pathlib import Path

from rvtrace_gdb.console.options.etrace import option as raw_option
from rvtrace_gdb.controlregs.encoder_features import NTRACE, EncoderFeature
from rvtrace_gdb.decode.ntrace.messages import Sync
from rvtrace_gdb.gdbext.options import Option
from rvtrace_gdb.gdbext.start_options import GROUPS
from rvtrace_gdb.session.capture.etrace_settings import SETTINGS, Owner
from rvtrace_gdb.session.exports.export import EXPORTS
from rvtrace_gdb.session.exports.selection import OPTIONS
from rvtrace_gdb.transport.usb.adapters import ADAPTERS, Adapter

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- {}: written by scripts/option_tables.py -->\n", "<!-- end of {} -->\n"


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
        f"| `{key}` | `{raw_option(key)}{' on' if key == 'implicit_return' else ''}` ({it.source}) | switch |"
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


def sync_reasons() -> str:
    """The values of SYNC."""

    def flow(sync: Sync) -> str:
        if sync.begins:
            return "tracing starts"
        return "the flow goes on" + ("; no event" if sync.silent else "") if sync.goes_on else "the flow is interrupted"

    rows = "".join(f"| {int(it)} | {it.reason.text} | {flow(it)} |\n" for it in Sync)
    return f"\n| SYNC | reason | |\n|---|---|---|\n{rows}"


def exports() -> str:
    """The forms in which a trace can be exported."""
    head = "\n| export | what it writes | harts | options |\n|---|---|---|---|\n"
    return head + "".join(
        f"| `{it.name}` | {it.help} | {'all' if it.several else 'one'} |"
        f" {', '.join(f'`--{name}`' for name in OPTIONS if name in it.options) or '-'} |\n"
        for it in EXPORTS
    )


TABLES = (
    ("trace-start.md", "options", start_options),
    ("ntrace.md", "options", ntrace_features),
    ("ntrace.md", "SYNC", sync_reasons),
    ("etrace.md", "options", etrace_modes),
    ("usb.md", "adapters", usb_adapters),
    ("export.md", "exports", exports),
)
"""The pages with marks, the marks' names, and what stands between them."""


def renewed(page: str, name: str, table: str) -> str:
    """*page* with the table between the marks *name* as it is to be."""
    before, begin, rest = page.partition(BEGIN.format(name))
    _, end, after = rest.partition(END.format(name))
    if not begin or not end:
        sys.exit(f"there are no marks {BEGIN.format(name).strip()} and {END.format(name).strip()}")
    return f"{before}{begin}{table}\n{end}{after}"


def main() -> None:
    for file, name, table in TABLES:
        if sys.argv[1:] == ["--print"]:
            print(table())
            continue
        page = (DOCS / file).read_text(encoding="utf-8")
        (DOCS / file).write_text(renewed(page, name, table()), encoding="utf-8")


if __name__ == "__main__":
    main()
