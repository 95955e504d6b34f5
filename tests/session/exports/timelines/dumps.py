"""A dump of waveforms as other programs read it: PyPI pyvcd, and GTKWave's converter of FST."""

import io
import subprocess
from pathlib import Path
from typing import NamedTuple

from vcd.reader import ScalarChange, StringChange, TokenKind, VectorChange, tokenize

SignalValue = int | str | None


class Moment(NamedTuple):
    """The signals of a hart from a *time* on. None: unknown."""

    time: int
    levels: dict[str, SignalValue]


class Waves:
    """A dump as pyvcd reads it. An FST is converted back first."""

    def __init__(self, file: Path, form: str) -> None:
        text = file.read_bytes()
        if form == "fst":
            text = subprocess.run(["fst2vcd", "-f", str(file)], check=True, capture_output=True).stdout
        self.timescale = ""
        self.harts: dict[str, list[Moment]] = {}
        names, scopes, now = dict[str, tuple[str, str]](), list[str](), 0
        levels: dict[str, dict[str, SignalValue]] = {}
        changed: set[str] = set()
        for token in tokenize(io.BytesIO(text)):
            if token.kind is TokenKind.TIMESCALE:
                self.timescale = str(token.timescale)
            elif token.kind is TokenKind.SCOPE:
                scopes.append(token.scope.ident)
            elif token.kind is TokenKind.UPSCOPE:
                scopes.pop()
            elif token.kind is TokenKind.VAR:
                names[token.var.id_code] = scopes[-1], token.var.reference
                levels.setdefault(scopes[-1], {})[token.var.reference] = None
                self.harts.setdefault(scopes[-1], [])
            elif token.kind is TokenKind.CHANGE_TIME:
                self._keep(levels, changed, now)
                now = token.time_change
            elif isinstance(change := token.data, ScalarChange | VectorChange | StringChange):
                scope, name = names[change.id_code]
                levels[scope][name] = _level(change.value, name)
                changed.add(scope)
        self._keep(levels, changed, now)

    def _keep(self, levels: dict[str, dict[str, SignalValue]], changed: set[str], now: int) -> None:
        for scope in changed:
            self.harts[scope].append(Moment(now, dict(levels[scope])))
        changed.clear()

    def instructions(self, hart: str) -> list[Moment]:
        """What each numbered instruction, or gap, has."""
        return [moment for moment in self.harts[hart] if moment.levels["number"] is not None]


def _level(value: int | str, name: str) -> SignalValue:
    if name == "function":
        return str(value).replace("\\x20", " ").replace("\\040", " ")
    if isinstance(value, int):
        return value
    return None if set(value) <= set("xX") else int(value, 2)
