"""The keys for going backward are the same in the window, on its page and in the file for other gdbs."""

import ast
import re

from tests.helpers.cross_compiler import HOME


def keys_of_the_window() -> dict[str, str]:
    """`KEYS` of gdbext/tui/window.py, which is loaded inside gdb alone."""
    for statement in ast.parse((HOME / "gdbext" / "tui" / "window.py").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "KEYS":
            found = ast.literal_eval(statement.value)
            assert isinstance(found, dict)
            return found
    raise AssertionError("KEYS is not there")


def test_the_page_has_the_keys() -> None:
    page = (HOME / "docs" / "tui.md").read_text(encoding="utf-8")
    assert dict(re.findall(r"\| `(\S)` \| `([^`]+)`", page)) == keys_of_the_window()


def test_the_file_for_readline_has_the_keys() -> None:
    text = (HOME / "examples" / "gdb.inputrc").read_text(encoding="utf-8")
    single = text.partition("set keymap SingleKey\n")[2].partition("set keymap ")[0]
    assert dict(re.findall(r'^"(\S)": " (.+)\\r"$', single, re.M)) == keys_of_the_window()
