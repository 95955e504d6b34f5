"""Write the tables of options in docs/trace-start.md anew, from the one that gdb and the console have them from.

    .venv/bin/python scripts/option_tables.py [--print]

*--print*: on standard output, and nothing is written. Between the two marks of the page nothing is written by hand; a
test compares.
"""

import sys
from pathlib import Path

from rvtrace_gdb.gdbext.options import Option
from rvtrace_gdb.gdbext.start_options import GROUPS

HOME = Path(__file__).resolve().parent.parent
PAGE = HOME / "docs" / "trace-start.md"
BEGIN, END = "<!-- options: written by scripts/option_tables.py -->\n", "<!-- end of options -->\n"


def tables() -> str:
    """A heading and a table for each group of options."""

    def row(option: Option) -> str:
        usage = option.usage.replace("|", "\\|")
        return f"| `{usage}` | {' '.join(option.help)} |\n"

    return "".join(
        f"\n### {group.title}\n\n| option | |\n|---|---|\n{''.join(map(row, group.options))}" for group in GROUPS
    )


def renewed(page: str) -> str:
    """*page* with the tables as they are to be."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{tables()}\n{END}{after}"


def main() -> None:
    if sys.argv[1:] == ["--print"]:
        print(tables())
        return
    page = PAGE.read_text(encoding="utf-8")
    if BEGIN not in page or END not in page:
        sys.exit(f"{PAGE} has no marks {BEGIN.strip()} and {END.strip()}")
    PAGE.write_text(renewed(page), encoding="utf-8")


if __name__ == "__main__":
    main()
