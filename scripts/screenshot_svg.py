"""What a terminal shows, with its colours, as a picture (SVG). Standard library only.

The input is what `tmux capture-pane -e -p` prints: text with the escape sequences that set colours (ECMA-48, SGR).
"""

import re
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby

CELL_WIDTH, CELL_HEIGHT, BASELINE = 8.4, 18.0, 13.5
MARGIN, BAR = 12.0, 30.0
FONTS = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"
FOREGROUND, BACKGROUND, FRAME = "#d6dae3", "#1b1e27", "#2b303c"
PALETTE = (
    "#3b4150", "#f2777a", "#98c379", "#e5c07b", "#69a7f0", "#c993dd", "#5fc3cf", "#d6dae3",
    "#6b7386", "#ff8f91", "#b5e08f", "#ffd68a", "#8cc0ff", "#dcaeee", "#83dce6", "#ffffff",
)  # fmt: skip
_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)m")
# Box-drawing characters as lines from the middle of the cell: left, right, up, down.
_LINES = {"─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu"}
_ENDS = {"l": (0.0, 0.5), "r": (1.0, 0.5), "u": (0.5, 0.0), "d": (0.5, 1.0)}


@dataclass(frozen=True)
class Style:
    """How a character looks. Colours are "#rrggbb", None: the terminal's own."""

    colour: str | None = None
    background: str | None = None
    bold: bool = False
    dim: bool = False
    reverse: bool = False

    def ink(self) -> str:
        return (self.background or BACKGROUND) if self.reverse else (self.colour or FOREGROUND)

    def paper(self) -> str | None:
        return (self.colour or FOREGROUND) if self.reverse else self.background


def picture(screen: str, title: str) -> str:
    """The SVG of a screen."""
    rows = cells(screen)
    columns = max((len(row) for row in rows), default=1)
    width, height = columns * CELL_WIDTH + 2 * MARGIN, len(rows) * CELL_HEIGHT + 2 * MARGIN + BAR
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}"'
        f' height="{height:g}" font-family="{escape(FONTS)}" font-size="14" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:g}" height="{height:g}" rx="8" fill="{FRAME}"/>',
        f'<text x="{width / 2:g}" y="20" text-anchor="middle" fill="{FOREGROUND}" opacity=".8">{escape(title)}</text>',
        f'<path d="M0 {BAR:g}H{width:g}V{height - 8:g}a8 8 0 0 1 -8 8H8a8 8 0 0 1 -8 -8z" fill="{BACKGROUND}"/>',
        f'<g transform="translate({MARGIN:g} {BAR + MARGIN:g})" xml:space="preserve">',
    ]
    for number, row in enumerate(rows):
        parts += _row(row, number * CELL_HEIGHT)
    return "\n".join([*parts, "</g>", "</svg>", ""])


def cells(screen: str) -> list[list[tuple[str, Style]]]:
    """Characters with their looks, by rows; empty rows at the end are left out. A style goes on in the next row."""
    rows, style = [], Style()
    for line in screen.rstrip("\n").split("\n"):
        row: list[tuple[str, Style]] = []
        at = 0
        for match in [*_SEQUENCE.finditer(line), None]:
            row += [(char, style) for char in line[at : match.start() if match else len(line)]]
            if match:
                style, at = _changed(style, match.group(1)), match.end()
        rows.append(row)
    while rows and not any(char != " " or style.paper() for char, style in rows[-1]):
        rows.pop()
    return rows


def _changed(style: Style, sequence: str) -> Style:
    codes = [int(code or 0) for code in sequence.split(";")]
    while codes:
        code = codes.pop(0)
        if code in (38, 48) and codes:
            colour = _extended(codes)
            style = replace(style, colour=colour) if code == 38 else replace(style, background=colour)
        else:
            style = _simple(style, code)
    return style


def _simple(style: Style, code: int) -> Style:
    if code == 0:
        return Style()
    if code in (1, 2):
        return replace(style, bold=code == 1, dim=code == 2)
    if code == 22:
        return replace(style, bold=False, dim=False)
    if code in (7, 27):
        return replace(style, reverse=code == 7)
    for first, offset in ((30, 0), (90, 8)):
        if first <= code < first + 8:
            return replace(style, colour=PALETTE[code - first + offset])
        if first + 10 <= code < first + 18:
            return replace(style, background=PALETTE[code - first - 10 + offset])
    if code == 39:
        return replace(style, colour=None)
    return replace(style, background=None) if code == 49 else style


def _extended(codes: list[int]) -> str | None:
    """One of 256 colours (5;N) or any (2;R;G;B); takes its codes away."""
    kind = codes.pop(0)
    if kind == 2 and len(codes) >= 3:
        red, green, blue = (codes.pop(0) for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    number = codes.pop(0) if codes else 0
    if number < 16:
        return PALETTE[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    levels = (0, 95, 135, 175, 215, 255)
    number -= 16
    return "#" + "".join(f"{levels[number // step % 6]:02x}" for step in (36, 6, 1))


def _row(row: list[tuple[str, Style]], top: float) -> list[str]:
    parts, column = [], 0
    for style, group in groupby(row, key=lambda cell: cell[1]):
        text = "".join(char for char, _ in group)
        left = column * CELL_WIDTH
        if style.paper():
            size = f'width="{len(text) * CELL_WIDTH:g}" height="{CELL_HEIGHT:g}"'
            parts.append(f'<rect x="{left:g}" y="{top:g}" {size} fill="{style.paper()}"/>')
        parts += _boxes(text, column, top, style)
        parts += _words(text, column, top, style)
        column += len(text)
    return parts


def _words(text: str, column: int, top: float, style: Style) -> list[str]:
    """Each stretch at its own place and of its own length, so that columns are straight in any font."""
    plain = "".join(" " if char in _LINES else char for char in text)
    look = (
        f'fill="{style.ink()}"' + (' font-weight="bold"' if style.bold else "") + (' opacity=".6"' if style.dim else "")
    )
    return [
        f'<text x="{(column + match.start()) * CELL_WIDTH:g}" y="{top + BASELINE:g}"'
        f' textLength="{len(match.group()) * CELL_WIDTH:g}" {look}>{escape(match.group())}</text>'
        for match in re.finditer(r"\S+(?: \S+)*", plain)
    ]


def _boxes(text: str, column: int, top: float, style: Style) -> list[str]:
    """Lines of frames, drawn, because glyphs do not meet in all fonts. Neighbours are one line."""
    paths = []
    for match in re.finditer(r"─+|[│┌┐└┘]", text):
        left, run = (column + match.start()) * CELL_WIDTH, match.group()
        if run[0] == "─":
            paths.append(f"M{left:g} {top + CELL_HEIGHT / 2:g}h{len(run) * CELL_WIDTH:g}")
            continue
        middle = f"M{left + CELL_WIDTH / 2:g} {top + CELL_HEIGHT / 2:g}"
        for end in _LINES[run]:
            x, y = _ENDS[end]
            paths.append(f"{middle}L{left + x * CELL_WIDTH:g} {top + y * CELL_HEIGHT:g}")
    return [f'<path d="{"".join(paths)}" stroke="{style.ink()}" fill="none"/>'] if paths else []
