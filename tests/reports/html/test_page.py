"""The page in a real browser: figures against what a stepped hart retired, keys, search, names, and no network."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.program.image import Image
from tests.gdbext.commands.test_dump import ELF, STREAM
from tests.helpers import reference_streams
from tests.helpers.chromium import Page, chromium
from tests.helpers.cross_compiler import symbol_address
from tests.helpers.hostile_program import renamed
from tests.reports.coverage.traced import PROGRAMS, gcov, program, retired, trace

HOSTILE = {
    b"same_name_elsewhere": b"</script><script>x(",
    b"collatz": b"\x1b[2J\n<b",
    b"letter": b"\xe2\x80\xae&lt",
}
MAIN = str(PROGRAMS / "main.c")


def report(file: Path, *options: str) -> Path:
    """The page of a trace."""
    page = file.with_suffix(".html")
    assert main(["report", str(file), "--html", str(page), "--quiet", *options]) == 0
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    with chromium() as page:
        yield page


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return program(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def pcs(elf: Path) -> list[int]:
    return retired(elf)


@pytest.fixture(scope="module")
def whole(elf: Path, pcs: list[int]) -> Path:
    """The page of a trace without losses."""
    return report(trace(elf, pcs, elf.parent / "x.rvt"))


@pytest.fixture(scope="module")
def damaged(elf: Path, pcs: list[int]) -> Path:
    """The page of one of which bytes are damaged."""
    raw = trace(elf, pcs, elf.parent / "raw.bin", "--sync-max", "2", "--sync-mode", "messages")
    data = bytearray(raw.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 20] = bytes([0x55]) * 20
    raw.write_bytes(data)
    return report(raw, "--ntrace", "--elf", str(elf))


@pytest.fixture
def shown(browser: Page, whole: Path) -> Page:
    browser.requests.clear()
    browser.appearance()
    browser.show(whole)
    return browser


def column(page: Page, number: int) -> list[str]:
    """The texts of a column of the table of calls."""
    cells = f"#calls-table tbody tr > :nth-child({number})"
    texts: list[str] = page.value(f"[...document.querySelectorAll('{cells}')].map((it) => it.textContent)")
    return texts


def amounts(texts: list[str]) -> list[int]:
    return [int(text.replace(",", "")) for text in texts]


def test_it_opens_from_disk_without_a_network(shown: Page, whole: Path) -> None:
    assert shown.requests == [whole.as_uri()] and shown.problems == []


def test_figures_are_those_of_the_retired_list(shown: Page, elf: Path, pcs: list[int]) -> None:
    assert shown.text("#instructions") == f"{len(pcs):,}" and shown.text("#gaps") == "0"
    image = Image.from_elf(elf)
    own = Counter(image.function(pc) for pc in pcs)
    assert sorted(amounts(column(shown, 3))) == sorted(own.values())
    assert shown.value("flame.whole") == len(pcs) == shown.value("flame.own.reduce((sum, it) => sum + it)")
    calls = sum(image.instruction(before).itype.name.endswith("CALL") for before, _ in pairwise(pcs))
    assert sum(amounts(column(shown, 2))) == calls
    drawn = shown.value("timeline.view.rows.reduce((sum, row) => sum + row.count, 0)")
    assert drawn == calls + 2, "_start was not called, and it goes on in _exit"


def test_keys_zoom_and_move(shown: Page, pcs: list[int]) -> None:
    shown.value("document.getElementById('timeline-box').focus()")
    assert shown.text("#range") == f"Hart 0, instructions 0 to {len(pcs):,}: the whole trace."
    shown.key("+")
    half = f"{len(pcs) // 4:,} to {len(pcs) * 3 // 4:,}"
    assert shown.text("#range") == f"Hart 0, instructions {half}: 50 % of the trace."
    assert shown.text("#timeline-live") == shown.text("#range")
    shown.key("ArrowLeft")
    begin = len(pcs) // 4 - len(pcs) // 10
    assert abs(shown.value("timeline.view.begin") - begin) <= 1
    shown.key("-")
    assert shown.text("#range").endswith("the whole trace.")


def test_keys_go_through_calls(shown: Page, elf: Path, pcs: list[int]) -> None:
    shown.value("document.getElementById('timeline-box').focus()")
    entry = pcs.index(symbol_address(elf, "main"))
    shown.key("ArrowDown")
    assert shown.text("#timeline-live").startswith("_start; ")
    shown.key("ArrowDown")
    assert re.match(rf"main; [\d,]+ instructions, level 2; instructions {entry:,} to ", shown.text("#timeline-live"))
    shown.key("ArrowDown")
    first = pcs.index(symbol_address(elf, "collatz"))
    assert f"level 3; instructions {first:,} to " in shown.text("#timeline-live")
    shown.key("Enter")
    assert "% of the trace" in shown.text("#range")


def test_search_finds_each_call(shown: Page, elf: Path, pcs: list[int]) -> None:
    address = symbol_address(elf, "collatz")
    places = [at for at, pc in enumerate(pcs) if pc == address]
    shown.type("#find", "COLLA")
    assert shown.text("#found") == f"{len(places)} calls of 1 function"
    for place in places[:3]:
        shown.key("Enter")
        assert re.match(rf"collatz; .*level 3; instructions {place:,} to ", shown.text("#timeline-live"))
    shown.key("Enter", shift=True)
    assert f"instructions {places[1]:,} to " in shown.text("#timeline-live")
    shown.type("#flame-find", "collatz")
    assert shown.text("#flame-found").startswith("1 place, ")


def test_losses_can_be_seen_and_heard(browser: Page, damaged: Path) -> None:
    browser.show(damaged)
    gaps = amounts([browser.text("#gaps")])[0]
    assert gaps > 0 and browser.value("timeline.view.missing.length") >= gaps
    red = browser.value(
        """(() => { const canvas = document.getElementById("timeline-canvas"), pen = canvas.getContext("2d");
        const place = timeline.view.missing[0], x = (place.begin + place.end) / 2 / timeline.view.length * canvas.width;
        const data = pen.getImageData(x - 2, 22, 4, 12).data;
        let red = 0;
        for (let i = 0; i < data.length; i += 4) red += data[i] > 1.3 * data[i + 1];
        return red; })()"""
    )
    assert red > 8
    browser.value("document.getElementById('loss-next').click()")
    assert browser.text("#timeline-live").startswith("Missing: ")
    assert "! lost" in browser.text("#missing") and "unknown" in browser.text("#missing")
    browser.value("document.getElementById('next-unknown').click()")
    assert re.match(r"Line \d+: |There is no unknown line", browser.text("#source-live"))


def test_the_table_is_sorted_by_its_buttons(shown: Page) -> None:
    def press(number: int) -> str:
        head = f"document.querySelector('#calls-table thead th:nth-child({number})')"
        shown.value(f"{head}.firstElementChild.focus()")
        shown.key("Enter")
        return str(shown.value(f"{head}.ariaSort"))

    assert press(1) == "ascending" and column(shown, 1) == sorted(column(shown, 1))
    assert press(2) == "descending" and amounts(column(shown, 2)) == sorted(amounts(column(shown, 2)), reverse=True)
    assert press(2) == "ascending" and amounts(column(shown, 2)) == sorted(amounts(column(shown, 2)))
    assert shown.value("document.querySelectorAll('#calls-table [aria-sort]:not([aria-sort=none])').length") == 1


def test_the_source_has_the_counts_of_gcov(shown: Page, tmp_path: Path) -> None:
    rows = shown.value(
        "[...document.querySelectorAll('#source-box tr')].map((row) => [...row.cells].map((it) => it.textContent))"
    )
    text = Path(MAIN).read_text(encoding="utf-8").splitlines()
    assert [row[2] for row in rows] == text
    compared = 0
    for line, (count, _) in gcov(tmp_path)[MAIN].items():
        said = text[line - 1].strip()
        if rows[line - 1][1] and said != "}" and "switch" not in said:
            assert rows[line - 1][1] == (f"{count}\N{MULTIPLICATION SIGN}" if count else "✗ not run"), (line, said)
            compared += 1
    assert compared > 30


def test_hostile_names_are_text(browser: Page, elf: Path, pcs: list[int], tmp_path: Path) -> None:
    page = report(trace(renamed(elf, HOSTILE, tmp_path / "it.elf"), pcs, tmp_path / "x.rvt"))
    browser.show(page)
    assert browser.problems == [] and browser.text("#instructions") == f"{len(pcs):,}"
    names = column(browser, 1)
    assert {"</script><script>x(", r"\x1b[2J\n<b", r"\u202e&lt"} <= set(names)
    assert browser.value("document.scripts.length") == 2
    assert set(names) == set(browser.value("flame.names"))
    browser.type("#find", "</script>")
    assert browser.text("#found") == "1 call of 1 function"


def test_what_a_screen_reader_finds(shown: Page) -> None:
    nodes = shown.call("Accessibility.getFullAXTree")["nodes"]
    found = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    roles = Counter(role for role, _ in found)
    assert [roles[one] for one in ("banner", "main", "contentinfo", "navigation")] == [1, 1, 1, 1]
    controls = [name for role, name in found if role in ("button", "searchbox", "combobox", "application", "link")]
    assert len(controls) > 20 and all(controls)
    # Names say what is pressed without what is around it.
    buttons = [name for role, name in found if role == "button"]
    assert len(set(buttons)) == len(buttons)
    opened = [name.rpartition(": ")[2] for role, name in found if role == "DisclosureTriangle" and ": " in name]
    assert sorted(opened) == sorted(name for role, name in found if role == "figure") and len(opened) > 3
    shown.value("document.body.focus()")
    shown.key("Tab")
    assert shown.value("document.activeElement.className") == "skip"
    shown.value("document.getElementById('timeline-table').open = true")
    shown.value("document.getElementById('flame-table').open = true")
    shown.frame()
    for table in ("timeline-table", "flame-table"):
        assert "_start" in shown.text(f"#{table} table")


CONTRASTS = (Path(__file__).parent / "contrasts.js").read_text(encoding="utf-8")
"""Returns the texts with less contrast than AA asks for, and the colours of functions, with both colours."""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast_is_that_of_wcag_aa(shown: Page, dark: bool) -> None:
    shown.appearance(dark=dark)
    assert shown.value(CONTRASTS) == []


def test_nothing_is_wider_than_a_narrow_window(shown: Page) -> None:
    shown.appearance(400, 800)
    assert shown.value("document.documentElement.scrollWidth") <= 400


def test_intervals_of_calls_are_those_that_ran(shown: Page, elf: Path, pcs: list[int]) -> None:
    """`collatz` calls nothing: each of its calls is a run of its own instructions."""
    image = Image.from_elf(elf)
    address = symbol_address(elf, "collatz")
    starts = [image.function(pc) for pc in pcs]
    lengths: list[int] = []
    for at in (at for at, pc in enumerate(pcs) if pc == address):
        end = next(after for after in range(at, len(pcs)) if starts[after] != address)
        lengths.append(end - at)
    texts = shown.value("[...document.querySelectorAll('figure')].map((it) => it.textContent)")
    [text] = [it for it in texts if it.strip().startswith("calls of collatz")]
    said = re.search(r"(\d+) measured; instructions: least (\d+), mean ([\d.]+), .*greatest (\d+)", text)
    assert said is not None, text
    mean = f"{sum(lengths) / len(lengths):.1f}"
    assert said.groups() == (str(len(lengths)), str(min(lengths)), mean, str(max(lengths)))
    number = texts.index(text)
    table = f"[...document.querySelectorAll('figure')[{number}].querySelectorAll('tbody td')]"
    assert sum(amounts(shown.value(f"{table}.map((it) => it.textContent)"))) == len(lengths)


def test_two_harts_each_have_a_timeline(browser: Page, tmp_path: Path) -> None:
    """Of the second one there is only the beginning: what ran is what the reference encoder's stream has."""
    harts = [reference_streams.from_source(STREAM, 2, 0), reference_streams.from_source(STREAM[:400], 2, 1)]
    (tmp_path / "x.bin").write_bytes(reference_streams.in_turn(*harts))
    lengths = [decode(data, Image.from_elf(ELF), Options()).instructions for data in (STREAM, STREAM[:400])]
    browser.show(report(tmp_path / "x.bin", "--ntrace", "--elf", str(ELF), "--src-bits", "2"))
    assert browser.problems == []
    assert browser.text("#instructions") == f"{sum(lengths):,}" and sum(amounts(column(browser, 3))) == sum(lengths)
    assert browser.text("#range").startswith("Hart 0, ")
    browser.value("document.getElementById('hart').focus()")
    browser.key("ArrowDown")
    assert browser.text("#range").startswith("Hart 1, ")
    assert abs(browser.value("timeline.view.length") - lengths[1]) <= browser.value("timeline.view.missing.length")


def test_an_export_has_the_figures_of_the_retired_list(
    browser: Page, elf: Path, pcs: list[int], tmp_path: Path
) -> None:
    page = tmp_path / "it.html"
    file = trace(elf, pcs, tmp_path / "x.rvt")
    assert main(["export", str(file), "--to", "report-html", "-o", str(page), "--quiet"]) == 0
    browser.show(page)
    assert browser.problems == [] and browser.text("#instructions") == f"{len(pcs):,}"
    image = Image.from_elf(elf)
    assert sorted(amounts(column(browser, 3))) == sorted(Counter(image.function(pc) for pc in pcs).values())
    assert browser.value("document.title").startswith(elf.name)
