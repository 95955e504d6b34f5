"""`rvtrace report --html`: what the shell says; the page itself is tested in tests/reports/html."""

import json
import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.exports import extra_library
from tests.helpers.reference_streams import golden
from tests.session.exports.exported import elf, options, stream

ELF = elf("towers")
WORDS = [str(stream("towers")), *options("towers")]


def test_the_page_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "it.html"
    assert main(["report", *WORDS, "--html", str(page)]) == 0
    assert capsys.readouterr().err.endswith(f"The report is in {page}: open it in a browser.\n")
    first = page.read_bytes()
    assert first.startswith(b"<!DOCTYPE html>") and first.rstrip().endswith(b"</html>")
    assert main(["report", *WORDS, "--html", str(page), "--json", "--quiet"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["file"] == str(page) and said["instructions"] > 1000
    assert page.read_bytes() == first


def test_a_part_says_that_it_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, other = tmp_path / "part.html", tmp_path / "export.html"
    assert main(["report", *WORDS, "101,1100", "--html", str(page), "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["instructions"] == 1000
    assert main(["export", *WORDS, "--to", "report-html", "--range", "101,1100", "-o", str(other), "--quiet"]) == 0
    whole = golden("towers")[0]
    timeline = {"begin": 100, "end": 1100, "partial": "true"}
    for file in (page, other):
        assert f"Hart 0: instructions 101 to 1,100 of {whole:,} alone." in file.read_text()
        assert '<dd id="instructions">1,000</dd>' in file.read_text()
        assert all(re.search(rf'"{name}": ?{value}\b', file.read_text()) for name, value in timeline.items())


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--html", "x", "lines"], "lines: a page has all sections; leave it out, or --html"),
        (["--html", "-", "--json"], "--json and --html - would both write to standard output"),
        (["--html", str(ELF)], str(ELF)),
    ],
)
def test_what_does_not_fit(words: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *WORDS, *words]) == 1
    said = capsys.readouterr().err
    assert error in said and said.count("\n") == 1


def test_without_the_library_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(extra_library, "import_module", absent)
    assert main(["report", *WORDS, "--html", str(tmp_path / "none")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("rvtrace: --html: jinja2 is not installed: ") and error.count("\n") == 1
    assert not (tmp_path / "none").exists()
