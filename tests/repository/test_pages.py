"""The pages of docs/ lead somewhere, are in the index, and quote messages that the program has."""

import re
import runpy
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import rvtrace_gdb
from tests.repository.test_files import HOME
from tests.repository.test_rooms import PACKAGE, ROOMS

DOCS = HOME / "docs"
PAGES = [*HOME.glob("*.md"), *DOCS.rglob("*.md")]
FENCE = re.compile(r"^```.*?^```|^    .*?$|`[^`\n]*`", re.M | re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")


@cache
def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub and mkdocs name them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def broken(page: Path) -> list[str]:
    """Links of a page to files that do not exist, and to headings that a page does not have."""
    found = []
    for link in LINK.findall(FENCE.sub("", text_of(page))):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        there = (page.parent / name).resolve() if name else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One [x](page.md) two\n[a](none.md) [b\nc](#one-x-two) [d](#three) `[e](none)`\n")
    assert broken(page) == ["none.md", "#three"]


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "README.md"
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in LINK.findall(text_of(index))}
    assert set(DOCS.rglob("*.md")) - {index} - linked == set()


def test_the_site_has_all_pages_and_what_they_link() -> None:
    """As `make docs` collects them for mkdocs, which a test would have to install."""
    site = runpy.run_path(str(HOME / "scripts" / "site.py"))
    site["collect"]()
    collected = site["PAGES"]
    copies = list(collected.rglob("*.md"))
    assert {page: links for page in copies if (links := broken(page))} == {}
    titles = [title for section in site["navigation"]() for title in section.values()]
    rows = [page for rows in titles if isinstance(rows, list) for row in rows for page in row.values()]
    named = [*(page for page in titles if isinstance(page, str)), *rows]
    assert sorted(named) == sorted(page.relative_to(collected).as_posix() for page in copies)


def test_the_reference_has_all_public_names() -> None:
    text = runpy.run_path(str(HOME / "scripts" / "site.py"))["api"]()
    names = re.findall(r"^::: ([\w.]+)\.(\w+)\n    options:\n      heading: (\w+)$", text, re.M)
    assert {public for _, _, public in names} == set(rvtrace_gdb.__all__)
    for module, name, public in names:
        assert getattr(import_module(module), name) is getattr(rvtrace_gdb, public)


@cache
def spoken() -> str:
    """The program's source with its string constants in one piece each."""
    files = [path for room in ROOMS for path in (PACKAGE / room).rglob("*.py")]
    return "\n".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")) for path in files)


def said(message: str) -> bool:
    """Whether the program's source has *message*, whose `...` stand for what differs, in this order."""
    parts = message.strip(".").split("...")
    return re.search("[^\n]*?".join(map(re.escape, parts)), spoken()) is not None


@pytest.mark.parametrize("message", re.findall(r"^### `(.*)`$", text_of(DOCS / "troubleshooting.md"), re.M))
def test_messages_that_are_explained_are_the_programs(message: str) -> None:
    assert said(message)


def test_other_messages_are_not_the_programs() -> None:
    assert not said("no OpenOCD at ...: stop OpenOCD")
