"""What somebody needs who joins: the licences go along, and a commit is checked as `make check` does it."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_licences_go_along() -> None:
    """A build puts what `license-files` names into the wheel and into the source distribution."""
    text = (HOME / "LICENSE").read_text(encoding="utf-8")
    assert text.startswith("MIT License\n\nCopyright (c) The rvtrace authors\n")
    assert "LICENSE" in PROJECT["license-files"]
    assert [file for file in PROJECT["license-files"] if not (HOME / file).is_file()] == []


def test_the_licence_is_that_of_all_files() -> None:
    """Files under another licence than LICENSE say so themselves."""
    lines = subprocess.run(
        ["grep", "-rhoE", "--include=*.[chS]", "--include=*.py", "SPDX-License-Identifier: [A-Za-z0-9.-]+", "."],
        cwd=HOME / "transport", capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert {"MIT", *(line.split()[-1] for line in lines)} == set(PROJECT["license"].split(" AND "))


def test_a_commit_is_checked_as_make_check_does_it() -> None:
    makefile = (HOME / "Makefile").read_text(encoding="utf-8")
    recipe = re.search(r"^check:.*\n((?:\t.*\n)+)", makefile, re.M)
    assert recipe is not None
    commands = [line.replace("$(BIN)", ".venv/bin") for line in recipe[1].split("\n\t") if "$(BIN)" in line]
    hooks = (HOME / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"^ +entry: (.*)$", hooks, re.M) == [line.strip() for line in commands]
    assert set(re.findall(r"\brepo: (.*)$", hooks, re.M)) == {"local"}


PAGES = [*HOME.glob("*.md"), *HOME.glob("docs/*.md")]


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    """In code quotes, with their whole path; NAME stands for any. The changelog names what there was."""
    rooms = "console|controlregs|decode|gdbext|reports|rows|session|support|transport|views"
    tops = f"{rooms}|tests|benchmarks|scripts|examples"
    named = re.findall(rf"`((?:{tops})/[\w/.-]*)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (HOME / name).exists() and "NAME" not in name] == []
