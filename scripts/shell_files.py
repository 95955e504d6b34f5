"""Write the manual page and the completions of shells into share/, from where an installation takes them.

usage: scripts/shell_files.py     Run it after a change to the command line. `--print` prints them instead.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rvtrace_gdb.console.main import parser
from rvtrace_gdb.console.shell_files.completion import completion
from rvtrace_gdb.console.shell_files.manual import page

SHARE = Path(__file__).resolve().parent.parent / "share"
COMPLETIONS = {
    "bash": "bash-completion/completions/rvtrace",
    "zsh": "zsh/site-functions/_rvtrace",
    "fish": "fish/vendor_completions.d/rvtrace.fish",
}


def files() -> dict[str, str]:
    """Return the texts by the names of their files in share/."""
    made = {file: completion(shell, parser()) for shell, file in COMPLETIONS.items()}
    return {"man/man1/rvtrace.1": page(parser()), **made}


def main() -> None:
    for name, text in files().items():
        if sys.argv[1:] == ["--print"]:
            print(text, end="")
            continue
        file = SHARE / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
