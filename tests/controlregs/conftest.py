"""No pause of the machine makes a component late: what waits for one has a clock that goes on only while it sleeps."""

from collections.abc import Iterator

import pytest

from tests.controlregs.interruptions import no_waiting


@pytest.fixture(autouse=True, scope="module")
def _no_waiting() -> Iterator[None]:
    with no_waiting():
        yield
