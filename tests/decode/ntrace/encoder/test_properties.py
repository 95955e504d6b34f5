"""What every encoder sends is what the document asks for: read by a decoder that is not the product's."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decode.ntrace.encodings import SOURCES, Case, any_fields
from tests.decode.ntrace.messages import difference, read, split
from tests.decode.ntrace.naive_decoder import NaiveDecoder
from tests.helpers.amounts import some_of

examples = settings(derandomize=True, max_examples=some_of(150), deadline=None)
seeds = st.integers(0, 1 << 32)


@examples
@given(seeds, any_fields, SOURCES, st.sampled_from([0, 0.01, 0.1]))
def test_another_decoder_reads_the_execution(
    seed: int, fields: dict[str, Any], source: tuple[int, int], trap_rate: float
) -> None:
    case = Case(seed, fields, source, trap_rate=trap_rate)
    pcs = NaiveDecoder(case.program, case.encoder_options).decode(split(case.trace))
    assert not difference(pcs, case.run.pcs)


LONGEST_INSTRUCTION = 3  # halfwords, of those in the synthetic programs
ONLY_BTM, ONLY_HTM = {"DirectBranch"}, {"IndirectBranchHist", "IndirectBranchHistSync"}


@examples
@given(seeds, any_fields, SOURCES)
def test_every_message_keeps_the_rules(seed: int, fields: dict[str, Any], source: tuple[int, int]) -> None:
    """Chapters 6 to 8: which messages in which mode, which fields, and no register beyond its limit."""
    case = Case(seed, fields, source)
    options = case.encoder_options
    before: dict[str, Any] = {}
    after_sync = False
    for raw in split(case.trace):
        message: dict[str, Any] = dict(read(raw, options.src_bits))
        name = message["name"]
        assert message.get("src", 0) == options.src_id
        assert options.field_padding or len(raw) <= 38
        assert name not in (ONLY_HTM if options.btm else ONLY_BTM)
        check_registers(case, message)
        assert "tstamp" in message if options.timestamps and "sync" in message else True
        assert options.timestamps or "tstamp" not in message
        assert message.get("b_type") in ((None, 0, 2, 3) if options.b_type_extended else (None, 0, 1))
        if after_sync and options.context:
            assert name == "Ownership"
        if name == "RepeatBranch":
            assert before["name"] in ("DirectBranch", "IndirectBranch", "IndirectBranchHist", "RepeatBranch")
        after_sync = "sync" in message
        before = message if name != "Ownership" else before


def check_registers(case: Case, message: dict[str, Any]) -> None:
    """I-CNT, HIST, HREPEAT and B-CNT within what the encoder has."""
    options = case.encoder_options
    name, rcode = message["name"], message.get("rcode")
    if name == "ProgTraceCorrelation":
        omits = options.correlation_without_hist or options.dialect.name == "sifive"
        assert message["cdf"] == 0 if options.btm else message["cdf"] == 1 or omits
    hist = message["rdata"] if rcode in (1, 2) else message.get("hist", 1)
    assert hist.bit_length() <= options.hist_limit
    assert not (options.btm and (rcode in (1, 2, 8, 9) or hist != 1))
    icnt = message["rdata"] if rcode == 0 else message.get("icnt", 0)
    if not options.icnt_by_block:
        assert icnt <= max(options.icnt_limit + LONGEST_INSTRUCTION - 1, LONGEST_INSTRUCTION)
    assert message.get("hrepeat", 2) <= options.hrepeat_limit
    assert message.get("bcnt", 1) <= options.bcnt_limit
    assert rcode != 2 or (options.repeated_history and message["hrepeat"] >= 2)
