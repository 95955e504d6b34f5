"""The pictures of terminals: what they show is what the terminal showed."""

import importlib.util
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parent.parent.parent
IMAGES = sorted((HOME / "docs" / "images").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
SCREEN = """\
\x1b[31mred\x1b[39m plain \x1b[1;7mbold & reversed
still so\x1b[0m \x1b[38;5;208morange\x1b[39m <tag>

│ framed │

"""


@pytest.fixture(scope="module")
def texts() -> list[ElementTree.Element]:
    spec = importlib.util.spec_from_file_location("screenshot_svg", HOME / "scripts" / "screenshot_svg.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["screenshot_svg"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    drawing = ElementTree.fromstring(module.picture(SCREEN, "a <title>"))
    assert drawing.findtext(f"{SVG}title") == "a <title>"
    return drawing.findall(f"{SVG}g/*")


def test_all_words_are_there_in_order(texts: list[ElementTree.Element]) -> None:
    words = " ".join(element.text or "" for element in texts if element.tag == f"{SVG}text")
    assert words == "red plain bold & reversed still so orange <tag> framed"


def test_words_stand_in_their_columns(texts: list[ElementTree.Element]) -> None:
    places = {element.text: (element.get("x"), element.get("y")) for element in texts if element.tag == f"{SVG}text"}
    red, framed, tag = places["red"], places["framed"], places["<tag>"]
    width = float(places["plain"][0] or 0) / 4
    assert red[0] == "0"
    assert float(tag[0] or 0) == pytest.approx(16 * width)
    assert float(framed[0] or 0) == pytest.approx(2 * width)
    assert places["orange"][1] == tag[1] != red[1]


def test_colours_and_reverse(texts: list[ElementTree.Element]) -> None:
    looks = {element.text: element for element in texts if element.tag == f"{SVG}text"}
    papers = [element for element in texts if element.tag == f"{SVG}rect"]
    assert looks["orange"].get("fill") == "#ff8700"  # colour 208 of xterm's 256
    assert looks["red"].get("fill") not in (looks["plain"].get("fill"), None)
    assert len(papers) == 2  # a style goes on in the next line, until it ends
    assert {paper.get("fill") for paper in papers} == {looks["plain"].get("fill")}
    assert looks["still so"].get("font-weight") == "bold"


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: image.stem)
def test_the_pictures_in_the_documentation(image: Path) -> None:
    """Each is shown somewhere, is well-formed, and tells nothing about the machine it was made on."""
    drawing = ElementTree.parse(image).getroot()
    words = " ".join(element.text or "" for element in drawing.iter(f"{SVG}text"))
    assert ("(rvtrace)" if image.stem == "console" else "(gdb)") in words
    assert "Traceback" not in words and str(HOME) not in words and str(Path.home()) not in words
    assert any(f"images/{image.name}" in page.read_text() for page in (HOME / "docs").glob("*.md"))


def test_there_are_pictures() -> None:
    assert len(IMAGES) >= 5
