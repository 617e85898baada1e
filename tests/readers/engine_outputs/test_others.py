"""TensorRT-LLM, aiperf and golden curves."""

import pytest

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs import read_output


def iteration(number, accepted, requests=4, k=3, latency=20.0, draft=4.0, context=0, **more):
    """One iteration: all requests draft k tokens."""
    return {
        "iter": number,
        "iterLatencyMS": latency,
        "numActiveRequests": requests,
        "inflightBatchingStats": {"numGenRequests": requests, "numCtxTokens": context},
        "specDecodingStats": {
            "numDraftTokens": k * requests,
            "numAcceptedTokens": accepted,
            "numRequestsWithDraftTokens": requests,
            "acceptanceLength": 1 + accepted / max(requests, 1),
            "iterLatencyMS": draft,
            "draftOverhead": draft / latency,
            **more,
        },
    }


def test_iteration_statistics(write):
    """6 + 4 + 8 accepted of 12 requests: A 2.5 at K 3; 20 ms a round, 4 of them drafting."""
    rows = [iteration(1, 6), iteration(2, 4), iteration(3, 8), iteration(4, 0, requests=0)]
    found = read_output(write("a.jsonl", rows, lines=True))
    assert (found.engine, found.k, found.rounds, found.acceptance_length) == ("TensorRT-LLM", 3, 12, 2.5)
    assert (found.round_s, found.draft_s, found.concurrency) == (0.02, 0.004, 4)
    assert found.notes == ()
    assert read_output(write("b.json", rows)).acceptance_length == 2.5


def test_statistics_within_a_log(write):
    import json

    log = f"[TRT-LLM] [I] stats: {json.dumps(iteration(1, 6))}\n[TRT-LLM] [I] iter 2\n"
    assert read_output(write("a.log", log)).acceptance_length == 2.5


def test_prefills_and_stale_draft_times_are_left_out(write):
    """An iteration with context tokens has no time of a round; a share that does not fit is of another step."""
    rows = [
        iteration(1, 6),
        iteration(2, 6, latency=90.0, context=512),
        iteration(3, 6, draft=9.0, draftOverhead=0.2),
    ]
    found = read_output(write("a.jsonl", rows, lines=True))
    assert (found.round_s, found.draft_s) == (0.02, 0.004)
    assert any("of an earlier step" in one for one in found.notes)


def test_copies_of_rank_0_count_once(write):
    found = read_output(write("a.jsonl", [iteration(1, 6), iteration(1, 6), iteration(2, 4)], lines=True))
    assert found.rounds == 8
    assert any("1 rows repeat" in one for one in found.notes)


def test_mispaired_lengths_are_said(write):
    found = read_output(write("a.jsonl", [iteration(1, 6, acceptanceLength=3.1)], lines=True))
    assert found.acceptance_length == 2.5
    assert any("17082" in one for one in found.notes)


def report(**more):
    return {
        "engine": {"model": "org/m", "max_draft_len": 3},
        "world_info": {},
        "request_info": {"avg_num_concurrent_requests": 8.0},
        "streaming_metrics": {"avg_tpot_ms": 12.0},
        "decoding_stats": {
            "acceptance_length_percentiles": {"average": 2.5, "p50": 2.4},
            "draft_acceptance_rate_percentiles": {"average": 0.5},
        },
        **more,
    }


def test_a_bench_report(write):
    """(2.5 - 1) / 0.5 = 3 = max_draft_len."""
    found = read_output(write("a.json", report()))
    assert (found.k, found.acceptance_length, found.token_s, found.concurrency, found.model) == (
        3,
        2.5,
        0.012,
        8,
        "org/m",
    )
    assert "upper bound" in found.definition
    assert found.notes == ()


def test_k_of_a_report_without_its_options(write):
    found = read_output(write("a.json", report(engine={})))
    assert found.k == 3
    assert "follows from length and rate" in found.notes[0]
    odd = report(engine={})
    odd["decoding_stats"]["draft_acceptance_rate_percentiles"]["average"] = 0.42
    with pytest.raises(AcceptanceError, match="add --measured-k"):
        read_output(write("b.json", odd))
    odd["engine"] = {"max_draft_len": 5}
    assert "would be K = 3.57, not 5" in read_output(write("c.json", odd)).notes[0]


def test_older_reports_and_plain_ones(write):
    old = report(decoding_stats={"mode": "MTP", "acceptance_rate_percentiles": {"average": 2.2}})
    assert "tokens per iteration" in read_output(write("a.json", old)).notes[0]
    assert read_output(write("b.json", report(decoding_stats=None))).acceptance is None
    with pytest.raises(AcceptanceError, match="cut off or of another version"):
        read_output(write("c.json", report(decoding_stats={"mode": "MTP"})))


def metric(value, unit="ratio"):
    return {"unit": unit, "avg": value}


def summary(**more):
    return {
        "schema_version": "1.4",
        "inter_token_latency": metric(8.0, "ms"),
        "spec_decode_acceptance_length": metric(2.9),
        "spec_decode_token_weighted_acceptance_length": metric(2.4),
        "spec_decode_draft_acceptance_rate": metric(63.0, "%"),
        "total_spec_decode_steps": metric(10, "steps"),
        "total_accepted_draft_tokens": metric(14, "tokens"),
        "total_draft_tokens": metric(30, "tokens"),
        "pooled_spec_decode_acceptance_histogram": {"0": 3, "1": 2, "2": 3, "3": 2},
        "input_config": {"endpoint": {"model_names": ["org/m"]}, "loadgen": {"concurrency": 16}},
        **more,
    }


def test_a_summary_of_aiperf(write):
    """14 accepted in 10 steps is the pooled 2.4; the mean over requests, 2.9, is not used."""
    found = read_output(write("a.json", summary()))
    assert found.acceptance.counts == (3, 2, 3, 2)
    assert (found.k, found.token_s, found.concurrency, found.model) == (3, 0.008, 16, "org/m")
    assert found.notes == ()


def test_a_histogram_without_its_last_places_is_filled_up(write):
    """Nothing accepted all three drafts: K follows from 30 drafts in 10 steps."""
    found = read_output(
        write(
            "a.json",
            summary(
                pooled_spec_decode_acceptance_histogram={"0": 5, "2": 5},
                spec_decode_token_weighted_acceptance_length=metric(2.0),
            ),
        )
    )
    assert found.acceptance.counts == (5, 0, 5, 0)
    assert found.k == 3


def test_totals_lengths_and_plain_runs_of_aiperf(write):
    gone = dict.fromkeys(("pooled_spec_decode_acceptance_histogram", "total_spec_decode_steps"))
    totals = summary(pooled_spec_decode_acceptance_histogram=None)
    assert read_output(write("a.json", totals)).acceptance_length == pytest.approx(2.4)
    assert read_output(write("b.json", summary(**gone)), 3).acceptance_length == 2.4
    mean = read_output(write("c.json", summary(**gone, spec_decode_token_weighted_acceptance_length=None)), 3)
    assert (mean.acceptance_length, "mean over requests" in mean.notes[0]) == (2.9, True)
    plain = {"inter_token_latency": metric(0.02, "s"), "is_complete": False}
    found = read_output(write("d.json", plain))
    assert (found.acceptance, found.token_s, found.notes) == (None, 0.02, ("the run was not completed",))


def test_a_golden_curve_of_several(files):
    """MTP of DeepSeek-V4-Pro: 1.79, 2.27, 2.49 are survival .79 .48 .22."""
    path = files / "golden_mtp.yaml"
    with pytest.raises(AcceptanceError, match=r"more than one curve \(thinking_on, thinking_off\)"):
        read_output(path)
    found = read_output(f"{path}#thinking_on")
    assert found.acceptance.values == pytest.approx((0.79, 0.48, 0.22))
    assert found.model == "deepseek-v4-pro"
    assert read_output(f"{path}#deepseek-v4-pro/thinking_off").acceptance_length == 2.97


def test_a_golden_curve_of_a_block_drafter_is_not_differenced_blindly(files):
    """It falls from 3.77 at K 6 to 3.47 at K 8; the header says how it was verified."""
    found = read_output(files / "golden_dspark.yaml")
    assert found.acceptance.values[6:] == (0.0, 0.0)
    assert any("falls from 3.77 at K = 6" in one for one in found.acceptance.warnings)
    assert "draft_sample_method=probabilistic" in found.what


def test_golden_curves_that_cannot_be(write):
    with pytest.raises(AcceptanceError, match="impossible with K = 1"):
        read_output(write("a.yaml", "m:\n  on:\n    1: 2.5\n"))
    with pytest.raises(AcceptanceError, match=r"K = 1: A 'x'"):
        read_output(write("b.yaml", "m:\n  on:\n    1: x\n"))


def guidellm(tokens, latency):
    """One benchmark of guidellm's report, version 2."""
    numbers = {
        "inter_token_latency_ms": latency,
        "iter_tokens_per_iteration": tokens,
        "request_concurrency": 4.0,
    }
    return {
        "config": {"backend": {"model": "org/m"}},
        "metrics": {name: {"successful": {"mean": value}} for name, value in numbers.items()},
    }


def test_a_guidellm_report_has_a_stand_in_for_the_length(write):
    """2.5 tokens per chunk at 8 ms a token: 20 ms a round, if a chunk is a round."""
    path = write(
        "a.json", {"metadata": {"version": 2}, "benchmarks": [guidellm(2.5, 8.0), guidellm(1.0, 16.0)]}
    )
    with pytest.raises(AcceptanceError, match="more than one benchmark"):
        read_output(path)
    with pytest.raises(AcceptanceError, match="add --measured-k"):
        read_output(f"{path}#1")
    found = read_output(f"{path}#1", 3)
    assert (found.acceptance_length, found.token_s, found.concurrency, found.model) == (
        2.5,
        0.008,
        4,
        "org/m",
    )
    assert found.round_at() == pytest.approx(0.02)
    assert "stand for the acceptance length" in found.notes[0]
    assert read_output(f"{path}#2").acceptance is None
