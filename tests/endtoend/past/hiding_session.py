"""A session whose pasts know only some of their values: `python hiding_session.py SHARE`, SHARE % are hidden."""

import sys

from rvtrace_gdb.session.__main__ import main
from rvtrace_gdb.session.past import choice
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.selected_history import SelectedHistory
from tests.endtoend.past.hiding_past import HidingPast

SHARE = int(sys.argv.pop())
whole = choice.new_past


def hiding(
    selected: SelectedHistory,
    facts: choice.Facts = lambda: None,
    states_name: choice.StatesName = lambda facts: None,
) -> Past | None:
    past = whole(selected, facts, states_name)
    return None if past is None else HidingPast(past, SHARE)


choice.new_past = hiding

if __name__ == "__main__":
    main()
