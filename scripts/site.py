"""`make docs`: the documentation site in build/site, from the same Markdown.

    .venv/bin/python scripts/site.py [--pages]

The pages, and the files of the repository that they link, are collected in build/site-pages with the folders they have
here, so that all links stay as they are. The navigation is that of docs/README.md; the reference of the Python API is
made of the docstrings of what `rvtrace_gdb` exports. *--pages*: only collect, which needs no mkdocs.
"""

import logging
import re
import shutil
import sys
from pathlib import Path

import rvtrace_gdb

HOME = Path(__file__).resolve().parent.parent
PAGES = HOME / "build" / "site-pages"
INDEX = "docs/README.md"
TOP = {"Home": "README.md", "Documentation": INDEX}
API = "docs/api.md"
LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#:]+)(?:#[^()\s]*)?\)")


def pages() -> list[Path]:
    """All pages, relative to the repository."""
    found = [
        HOME / "README.md",
        HOME / "CHANGELOG.md",
        HOME / "CONTRIBUTING.md",
        *sorted((HOME / "docs").rglob("*.md")),
    ]
    return [page.relative_to(HOME) for page in found]


def collect() -> None:
    """Copy the pages and what they link to PAGES, and write the page of the API."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for page in pages():
        text = (HOME / page).read_text(encoding="utf-8")
        linked = [(HOME / page.parent / link).resolve() for _, link in LINK.findall(text)]
        for file in [HOME / page, *(file for file in linked if file.is_file())]:
            copy = PAGES / file.relative_to(HOME)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
    (PAGES / API).write_text(api())


def api() -> str:
    """The page of the Python API: each public name, from where it is defined."""
    text = "# The Python API\n\n`import rvtrace_gdb`: these names are public, and no others. "
    text += "[Scripts](scripts.md#in-python) shows them at work.\n"
    for name in rvtrace_gdb.__all__:
        module, original = rvtrace_gdb._HOMES[name]
        text += f"\n::: {module}.{original}\n    options:\n      heading: {name}\n"
    return text


def navigation() -> list[dict[str, object]]:
    """The sections of docs/README.md with the pages that they link, each page where it comes first."""
    seen = set(TOP.values())
    sections: list[dict[str, object]] = [{title: page} for title, page in TOP.items()]
    for section in re.split(r"^## ", (HOME / INDEX).read_text(encoding="utf-8"), flags=re.M)[1:]:
        heading, _, text = section.partition("\n")
        rows: list[dict[str, str]] = []
        for name, link in LINK.findall(text):
            page = (HOME / "docs" / link).resolve().relative_to(HOME).as_posix()
            if page.endswith(".md") and page not in seen:
                seen.add(page)
                title = " ".join(name.replace("`", "").split())
                rows.append({title[0].upper() + title[1:]: page})
        if rows:
            sections.append({heading: rows})
    return [*sections, {"The Python API": API}]


def main() -> int:
    collect()
    if "--pages" in sys.argv[1:]:
        return 0
    logging.basicConfig(level=logging.WARNING, format="docs: %(message)s")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import MkDocsException

    try:
        build(load_config(str(HOME / "mkdocs.yml"), nav=navigation(), strict=True))
    except MkDocsException as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    print(f"docs: {HOME / 'build' / 'site' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
