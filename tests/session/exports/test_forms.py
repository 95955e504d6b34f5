"""Each export is read by something that knows its form and is not the writer."""

import re

import pytest

from rvtrace_gdb.session.exports.export import EXPORTS
from tests.helpers.cross_compiler import HOME

READ_BY = {
    "spike": ("console/commands/tandem/test_convert.py", "test_the_log_is_the_one_spike_writes"),
    "riscv-dv": ("console/commands/tandem/test_convert.py", "test_the_csv_as_riscv_dv_writes_it"),
    "rvvi": ("session/exports/logs/test_rvvi.py", "test_the_events_are_what_spike_did"),
    "tandem": ("console/commands/test_export.py", "test_the_instructions_are_those_that_ran"),
    "folded": ("session/exports/profiles/test_speedscope.py", "test_flamegraph_draws_what_ran"),
    "speedscope": ("session/exports/profiles/test_speedscope.py", "test_speedscope_reads_what_ran"),
    "csv": ("session/exports/tables/test_tables.py", "test_the_rows_are_what_ran"),
    "jsonl": ("session/exports/tables/test_tables.py", "test_the_rows_are_what_ran"),
    "sqlite": ("session/questions/sql/test_tables.py", "test_the_database_counts_what_ran"),
    "perfetto": ("session/exports/timelines/test_timelines.py", "test_the_slices_are_what_ran"),
    "chrome": ("session/exports/timelines/test_timelines.py", "test_the_slices_are_what_ran"),
    "report-html": ("reports/html/test_page.py", "test_an_export_has_the_figures_of_the_retired_list"),
    "pprof": ("session/exports/profiles/test_profiles.py", "test_the_totals_are_those_of_what_ran"),
    "callgrind": ("session/exports/profiles/test_callgrind.py", "test_callgrind_annotate_counts_what_ran"),
    "perf-script": ("session/exports/perf/test_exports.py", "test_llvm_profgen_counts_what_ran"),
    "perf-data": ("session/exports/perf/test_exports.py", "test_perf_counts_what_ran"),
    "perf-stacks": ("session/exports/perf/test_exports.py", "test_the_stacks_are_those_of_the_folded_ones"),
    "ctf": ("session/exports/timelines/test_ctf.py", "test_each_call_is_where_it_ran"),
    "vcd": ("session/exports/timelines/test_waveforms.py", "test_each_instruction_is_there"),
    "fst": ("session/exports/timelines/test_waveforms.py", "test_each_instruction_is_there"),
    "lcov": ("session/exports/coverage/test_readers.py", "test_lcov_reads_it"),
    "cobertura": ("session/exports/coverage/test_readers.py", "test_gcovr_reads_it"),
    "gcov-json": ("session/exports/coverage/test_readers.py", "test_gcovr_reads_it"),
    "coverage-html": ("session/exports/coverage/test_page.py", "test_the_lines_are_those_of_gcov"),
}
"""The test that compares what is written with Spike's own log, what riscv-dv makes of one, what a machine ran."""


@pytest.mark.parametrize("name", [row.name for row in EXPORTS])
def test_a_test_reads_it(name: str) -> None:
    assert name in READ_BY, f"a test that reads {name} with something else than the writer, and its name here"
    file, test = READ_BY[name]
    assert re.search(rf"^def {test}\(", (HOME / "tests" / file).read_text(encoding="utf-8"), re.M)
