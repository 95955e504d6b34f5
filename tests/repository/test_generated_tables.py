"""The tables in docs/ and the files in share/ that scripts write are those of the program."""

import re
import subprocess
import sys

from tests.helpers.cross_compiler import HOME


def test_the_tables_are_those_that_the_script_writes() -> None:
    """`scripts/option_tables.py` writes them again."""
    pages = [HOME / "docs" / name for name in ("trace-start.md", "ntrace.md", "etrace.md", "usb.md", "export.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    command = [sys.executable, "scripts/option_tables.py", "--print"]
    tables = subprocess.run(command, cwd=HOME, check=True, capture_output=True, text=True).stdout
    written = re.findall(r"<!-- (\w+): written by scripts/option_tables.py -->\n(.*?)<!-- end of \1 -->", text, re.S)
    assert "".join(table for _, table in written).split() == tables.split()


def test_the_manual_page_and_the_completions_are_those_that_the_script_writes() -> None:
    """`make shell-files` writes them again."""
    command = [sys.executable, "scripts/shell_files.py", "--print"]
    made = subprocess.run(command, cwd=HOME, check=True, capture_output=True, text=True).stdout
    names = ("man/man1/rvtrace.1", "bash-completion/completions/rvtrace", "zsh/site-functions/_rvtrace",
             "fish/vendor_completions.d/rvtrace.fish")  # fmt: skip
    assert made == "".join((HOME / "share" / name).read_text(encoding="utf-8") for name in names)
