"""Profiles in the programs that they are for: speedscope's page in Chromium, and FlameGraph's flamegraph.pl.

speedscope saves what it has read in its own form: so what it has understood of each form can be compared.
"""

import base64
import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.helpers.chromium import Page, chromium
from tests.helpers.cross_compiler import HOME
from tests.helpers.reference_streams import golden
from tests.session.exports import exported
from tests.session.exports.exported import export, options, ran_in, retired, stream
from tests.session.exports.profiles.test_profiles import READERS, Stacks

SPEEDSCOPE = HOME / ".tools" / "speedscope" / "node_modules" / "speedscope" / "dist" / "release"
FLAMEGRAPH = Path("/usr/share/perl5/Devel/NYTProf/flamegraph.pl")
# What an importer does goes on behind the load event; what is saved would go to a folder of downloads.
LOADED = """new Promise((done) => { const text = () => document.body?.innerText ?? "", look = () =>
    /Sandwich|went wrong/.test(text()) ? done(text()) : requestAnimationFrame(look); look(); })"""
SAVED = """HTMLAnchorElement.prototype.click = () => {};
    window.saved = new Promise((done) => { URL.createObjectURL = (it) => { it.text().then(done); return "#"; }; }); 0"""
CTRL = 2


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    assert SPEEDSCOPE.exists(), "scripts/setup-speedscope installs what this needs"
    with chromium() as page:
        page.appearance()
        yield page


def read_by_speedscope(page: Page, name: str, data: bytes, folder: Path) -> dict[str, Any]:
    """Open a file of that name in speedscope, as its command line does, and return what it saves then."""
    script = folder / "load.js"
    script.write_text(f"speedscope.loadFileFromBase64({json.dumps(name)}, '{base64.b64encode(data).decode()}')")
    page.call("Page.navigate", url="about:blank")
    page.call("Page.navigate", url=f"{(SPEEDSCOPE / 'index.html').as_uri()}#localProfilePath={script}")
    assert "Sandwich" in page.value(LOADED)
    page.value(SAVED)
    page.call("Input.dispatchKeyEvent", type="keyDown", key="s", code="KeyS", modifiers=CTRL, windowsVirtualKeyCode=83)
    saved: dict[str, Any] = json.loads(page.value("window.saved"))
    return saved


def stacks_of(saved: dict[str, Any]) -> Stacks:
    """What ran by stacks, the name of the profile first: of profiles that open and close frames."""
    names = [frame["name"] for frame in saved["shared"]["frames"]]
    found: Counter[tuple[str, ...]] = Counter()
    for profile in saved["profiles"]:
        stack, before = [profile["name"].partition(",")[0]], profile["startValue"]
        for event in profile["events"]:
            found[tuple(stack)] += event["at"] - before
            before = event["at"]
            if event["type"] == "O":
                stack.append(names[event["frame"]])
            else:
                assert stack.pop() == names[event["frame"]]
    return {stack: count for stack, count in found.items() if count}


def test_files_are_as_its_schema_says(tmp_path: Path) -> None:
    schema = json.loads((SPEEDSCOPE / "file-format-schema.json").read_bytes())
    trace, words = exported.two_harts(tmp_path)
    two = json.loads(export("speedscope", tmp_path / "x", trace, words))
    jsonschema.validate(two, schema)
    lost = export("speedscope", tmp_path / "x", exported.damaged(tmp_path), options("towers"))
    jsonschema.validate(json.loads(lost), schema)
    del two["profiles"][1]["weights"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(two, schema)


@pytest.mark.parametrize("form", READERS)
def test_speedscope_reads_what_ran(form: str, browser: Page, tmp_path: Path) -> None:
    trace, words = exported.two_harts(tmp_path)
    more = () if form == "speedscope" else ("--hart", "1")  # of the other forms, speedscope makes one profile
    data = export(form, tmp_path / "x", trace, words, *more)
    name = {"speedscope": "x.speedscope.json", "folded": "x.txt", "pprof": "x.pb.gz"}[form]
    found, expected = stacks_of(read_by_speedscope(browser, name, data, tmp_path)), READERS[form](data)
    if form == "speedscope":
        assert found == {stack: count for stack, count in expected.items() if count}
        assert {stack[0] for stack in found} == {"hart 1", "hart 2"}
    else:
        harts = 0 if form == "folded" else 1  # of a pprof the hart is a label
        assert {stack[1:]: count for stack, count in found.items()} == {
            stack[harts:]: count for stack, count in expected.items() if count
        }
        assert sum(found.values()) == golden("median")[0]


def test_speedscope_reads_timelines(browser: Page, tmp_path: Path) -> None:
    """Without times, a nanosecond is an instruction."""
    data = export("chrome", tmp_path / "x", stream("towers"), options("towers"), "--resolution", "0")
    alone: Counter[str] = Counter()
    for stack, length in stacks_of(read_by_speedscope(browser, "x.json", data, tmp_path)).items():
        alone[re.sub(r" \{.*\}$", "", stack[-1]).removesuffix(" [trap]")] += round(length * 1000)
    assert alone == ran_in("towers", retired("towers"), set(alone))


def test_its_table_shows_the_totals(browser: Page, tmp_path: Path) -> None:
    data = export("speedscope", tmp_path / "x", stream("towers"), options("towers"))
    read_by_speedscope(browser, "x.speedscope.json", data, tmp_path)
    browser.key("3")
    rows = browser.value("[...document.querySelectorAll('tr')].map((row) => row.innerText.split('\\n\\t'))")
    own = Counter[str]()
    for stack, count in READERS["speedscope"](data).items():
        own[stack[-1]] += count
    for name, count in own.most_common(5):
        [row] = [row for row in rows if row[-1] == name]
        assert row[1].startswith(f"{count:,} (")


def test_flamegraph_draws_what_ran(tmp_path: Path) -> None:
    """Of two harts: the titles of its frames are sums over the stacks that begin alike."""
    trace, words = exported.two_harts(tmp_path)
    stacks = READERS["folded"](export("folded", tmp_path / "x", trace, words))
    command = ["perl", str(FLAMEGRAPH), "--minwidth=0", str(tmp_path / "x")]
    drawn = subprocess.run(command, check=True, capture_output=True, text=True)
    assert drawn.stderr == ""
    titles = Counter((name, int(count.replace(",", ""))) for name, count in re.findall(
        r"<title>(.*) \(([\d,]+) samples, .*\)</title>", drawn.stdout
    ))  # fmt: skip
    frames = Counter[tuple[str, ...]]()
    for stack, count in stacks.items():
        for depth in range(len(stack)):
            frames[stack[: depth + 1]] += count
    frames[("all",)] = sum(stacks.values())
    assert titles == Counter((stack[-1], count) for stack, count in frames.items())
    assert frames[("hart 1",)] == golden("median")[0]
