"""The page of coverage: a parser of HTML reads its lines, which gcov counts on this machine."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.reports.coverage.html.page import WORDS
from rvtrace_gdb.session.exports import extra_library
from tests.reports.coverage.traced import PROGRAMS, gcov, program, retired, trace

MAIN = PROGRAMS / "main.c"


class Page(HTMLParser):
    """The rows of the source tables: by file, what the cells of each line say. *loaded*: what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[list[str]]] = {}
        self.loaded: list[str] = []
        self._file, self._row = "", list[str]()
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)
        places = [value or "" for name, value in attrs if name in ("src", "href")]
        self.loaded += [place for place in places if not place.startswith("#")]
        if tag == "tr":
            self._row = []
        elif tag in ("td", "th"):
            self._row.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "tr" and "details" in self.open and len(self._row) == 4:
            self.rows.setdefault(self._file, []).append(self._row)

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["summary"]:
            self._file = data.rpartition(": ")[0] or self._file
        elif self._row and {"td", "th"} & set(self.open):
            self._row[-1] += data


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    elf = program(folder)
    trace(elf, retired(elf), folder / "it.rvt")
    return folder


def exported_page(folder: Path) -> Page:
    file = folder / "page.html"
    assert main(["export", str(folder / "it.rvt"), "--to", "coverage-html", "-o", str(file), "--quiet"]) == 0
    return Page(file.read_text(encoding="utf-8"))


def test_the_lines_are_those_of_gcov(folder: Path, tmp_path: Path) -> None:
    found = exported_page(folder)
    rows = {int(row[0]): row for row in found.rows[str(MAIN)] if row[0].isdecimal()}
    text = MAIN.read_text(encoding="utf-8").splitlines()
    assert [rows[number][3].splitlines()[0] if rows[number][3] else "" for number in rows][:3] == text[:3]
    compared = 0
    for line, (count, branches) in gcov(tmp_path)[str(MAIN)].items():
        said = text[line - 1].strip()
        if line in rows and rows[line][2] and said != "}" and "switch" not in said:
            word = "not run" if not count else "ran, not each way" if 0 in branches else "ran"
            assert (line, rows[line][2], re.sub(r"^\W+", "", rows[line][1])) == (line, str(count), word), said
            compared += 1
    assert compared > 30
    assert not found.open and not found.loaded


def test_hostile_text_is_text(folder: Path, tmp_path: Path) -> None:
    """A source with tags in it, and one that is gone."""
    source = tmp_path / "it.c"
    source.write_text('int main(void) { return "</code><script>alert(1)</script>"[0] == 1; } // & <b>\n')
    elf = program(tmp_path, [source])
    trace(elf, retired(elf), tmp_path / "it.rvt")
    found = exported_page(tmp_path)
    assert found.rows[str(source)][-1][3].startswith('int main(void) { return "</code><script>')
    source.unlink()
    assert [row[0] for row in exported_page(tmp_path).rows[str(source)]][-1] == "1"


def test_every_state_has_a_word() -> None:
    assert len(set(WORDS.values())) == len(WORDS) == 5


def test_without_the_library_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(extra_library, "import_module", absent)
    words = ["--to", "coverage-html", "-o", str(folder / "none"), "--quiet"]
    assert main(["export", str(folder / "it.rvt"), *words]) == 1
    error = capsys.readouterr().err
    assert error.startswith("rvtrace: coverage-html: jinja2 is not installed: ") and error.count("\n") == 1
