"""The methods of the session protocol for listings of instructions with what happened between them."""

from collections.abc import Callable, Mapping
from typing import Any

from session.params import Params
from session.session import Session
from support.progress import Progress

METHODS: Mapping[str, Callable[[Session, Params, Progress], Any]] = {}
