"""SGLang: log lines by both definitions, benchmarks, meta_info, gauges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs import read_output


def line(length, rate, running=1, per_s=100.0, extra=""):
    return (
        f"[2026-05-01 10:00:00 TP0] Decode batch, #running-req: {running}, #token: 100, token usage: 0.00, accept len: "
        f"{length:.2f}, accept rate: {rate:.2f}, {extra}cuda graph: True, gen throughput (token/s): {per_s:.2f}, #queue-req: 0\n"
    )


# --- log


def test_the_old_rate_counts_the_bonus(files):
    """2.17 / 0.54 = 4.02 = K + 1; mean of five windows 1.954; 1.954 / 4 = 0.49 printed, 0.954 / 3 = 0.32 of the drafts."""
    found = read_output(files / "sglang_old.log")
    assert (found.k, found.acceptance_length) == (3, pytest.approx(1.954))
    assert "0.49 printed, 0.32 of the drafts" in found.acceptance.warnings[0]
    # 1.95 / 178.86 .. 1.80 / 165.59: 10.9 ms, and the first window with the idle time in it does not count.
    assert found.round_s == pytest.approx(0.01088, rel=1e-3)


def test_the_new_rate_gives_the_same_k(files):
    found = read_output(files / "sglang_new.log")
    assert (found.k, found.acceptance_length) == (3, pytest.approx(1.954))
    assert found.acceptance.warnings == ()
    assert float(found.acceptance.expected(3)) == pytest.approx(1.954)


def test_windows_are_weighted_by_their_requests(write):
    """(1 x 3.0 + 3 x 2.0) / 4 = 2.25; rounds of 1 x 3.0 / 100 and 3 x 2.0 / 100 s."""
    found = read_output(write("a.log", line(3.0, 2 / 4) + line(2.0, 1 / 4, 3)))
    assert found.k == 4
    assert found.acceptance_length == pytest.approx(2.25)
    assert found.round_s == pytest.approx(0.045)
    assert found.concurrency == 2


@given(
    k=st.integers(1, 12), shares=st.lists(st.floats(0.05, 0.95), min_size=12, max_size=20), old=st.booleans()
)
def test_k_and_definition_come_back_from_any_windows(tmp_path_factory, k, shares, old):
    """Rounded to two digits as printed: K is among those that fit, and of the right definition, or it is asked for."""
    lengths = [round(1 + k * share, 2) for share in shares]
    path = tmp_path_factory.mktemp("log") / "a.log"
    path.write_text("".join(line(one, one / (k + 1) if old else (one - 1) / k) for one in lengths))
    try:
        found = read_output(path)
    except AcceptanceError as error:
        assert "add --measured-k" in str(error)  # noqa: PT017 - few windows may fit two definitions
        return
    assert abs(found.k - k) <= 1
    assert any("counts the bonus token as an accepted draft" in one for one in found.notes) == old


def test_the_servers_options_say_k_and_tree(write):
    """A tree of depth 5 with 16 nodes: the rate divides by the nodes."""
    options = "server_args=ServerArgs(speculative_num_steps=5, speculative_eagle_topk=4, speculative_num_draft_tokens=16)\n"
    found = read_output(write("a.log", options + line(4.0, 3 / 15)))
    assert (found.k, found.width, found.notes) == (5, 16, ())
    chain = "speculative_num_steps=5, speculative_eagle_topk=1, speculative_num_draft_tokens=6\n"
    assert read_output(write("b.log", chain + line(4.0, 3 / 5))).k == 5


def test_one_window_with_two_readings_asks_for_k(write):
    """A 2.0 at rate 0.50 is K 2 by the new definition and K 3 by the old."""
    path = write("a.log", line(2.0, 0.5))
    with pytest.raises(
        AcceptanceError,
        match=r"K = 2 or, by the definition before pull request 23530, K = 3; add --measured-k",
    ):
        read_output(path)
    assert read_output(path, 2).notes == ()
    assert "counts the bonus" in read_output(path, 3).notes[0]
    assert "neither definition" in read_output(path, 7).notes[0]


def test_windows_of_a_tree_or_of_several_k_ask_for_it(write):
    path = write("a.log", line(3.0, 0.13) + line(3.5, 0.9))
    with pytest.raises(AcceptanceError, match="fit no one K"):
        read_output(path)


def test_shortened_drafts_are_said(write):
    found = read_output(write("a.log", line(3.0, 0.4, extra="cap len: 4.10, block accept len: 3.20, ")), 5)
    assert any("cap len" in one for one in found.notes)
    assert found.acceptance_length == 3.0


def test_logs_without_rates_or_requests(write):
    old = "Decode batch. #running-req: 2, accept len: 2.50, gen throughput (token/s): 100.00\n"
    path = write("a.log", old)
    with pytest.raises(AcceptanceError, match="no accept rates, so K is unknown"):
        read_output(path)
    assert read_output(path, 4).round_s == pytest.approx(0.05)
    with pytest.raises(AcceptanceError, match="no whole 'Decode batch' line"):
        read_output(write("b.log", "Decode batch. accept len: 2.5"))


# --- bench_serving, one_batch, server_info


def serving(**more):
    return {
        "backend": "sglang",
        "accept_length": 2.5,
        "concurrency": 7.0,
        "mean_tpot_ms": 10.0,
        "mean_itl_ms": 10.0,
        "server_info": {
            "speculative_num_steps": 3,
            "speculative_eagle_topk": 1,
            "speculative_num_draft_tokens": 4,
            "model_path": "org/m",
        },
        **more,
    }


def test_a_serving_result_has_k_in_its_server_info(write):
    found = read_output(write("a.jsonl", [serving()], lines=True))
    assert (found.k, found.acceptance_length, found.token_s, found.concurrency, found.model) == (
        3,
        2.5,
        0.01,
        7.0,
        "org/m",
    )
    assert found.round_at() == pytest.approx(0.025)
    assert "warm-up" in found.definition
    tree = serving(
        server_info={
            "speculative_num_steps": 5,
            "speculative_eagle_topk": 8,
            "speculative_num_draft_tokens": 64,
        }
    )
    assert (
        read_output(write("b.jsonl", [tree], lines=True)).k,
        read_output(write("b.jsonl", [tree], lines=True)).width,
    ) == (5, 64)


def test_k_that_is_given_wins_and_is_said(write):
    found = read_output(write("a.json", serving()), 5)
    assert (found.k, found.notes) == (5, ("K = 5 was given and is used; the server's options say 3",))


def test_several_results_are_named(write):
    path = write("a.jsonl", [serving(), serving(accept_length=3.0)], lines=True)
    with pytest.raises(AcceptanceError, match="more than one result"):
        read_output(path)
    assert read_output(f"{path}#2").acceptance_length == 3.0


def test_a_plain_serving_result(write):
    found = read_output(write("a.json", serving(accept_length=None)))
    assert (found.acceptance, found.token_s) == (None, 0.01)


def test_the_printed_table(files):
    """Accept length 2.14 at num_steps 4, which the table does not have."""
    with pytest.raises(AcceptanceError, match="add --measured-k"):
        read_output(files / "sglang_console.txt")
    found = read_output(files / "sglang_console.txt", 4)
    assert (found.acceptance_length, found.concurrency) == (2.14, 7.01)


def test_server_info_and_one_batch(write):
    info = {
        "internal_states": [{"avg_spec_accept_length": 2.2}],
        "speculative_num_steps": 3,
        "speculative_num_draft_tokens": 4,
    }
    assert read_output(write("a.json", info)).acceptance_length == 2.2
    row = {"run_name": "x", "batch_size": 8, "output_throughput": 400.0, "acc_length": 2.0}
    found = read_output(write("b.jsonl", [row], lines=True), 3)
    assert (found.token_s, found.concurrency) == (0.02, 8)
    assert read_output(write("c.jsonl", [row | {"acc_length": -1}], lines=True)).acceptance is None


# --- bench_speculative


def row(steps, length, time, batch=1, top=1, nodes=None):
    return {
        "batch_size": batch,
        "steps": steps,
        "topk": 0 if steps == 0 else top,
        "num_draft_tokens": (0 if steps == 0 else steps + 1) if nodes is None else nodes,
        "acc_length": length,
        "step_time": time,
    }


TABLE = [row(0, 1.0, 0.010), row(1, 1.7, 0.012), row(3, 2.5, 0.014), row(3, 2.9, 0.016, top=4, nodes=16)]


def test_a_table_of_chains_gives_lengths_by_k(write):
    """A 1.7 at K 1, 2.5 at K 3: survival 0.7, then 0.4 twice; the tree is left out."""
    found = read_output(write("a.jsonl", TABLE, lines=True))
    assert found.acceptance.values == pytest.approx((0.7, 0.4, 0.4))
    assert [run.k for run in found.runs] == [0, 1, 3, 3]
    assert [run.width for run in found.runs] == [1, 2, 4, 16]
    assert any("1 rows of trees" in one for one in found.notes)


def test_batches_share_one_acceptance(write):
    """Lengths 1.7 and 1.72 are averaged; those that differ by more are said."""
    path = write("a.jsonl", [row(1, 1.7, 0.012), row(1, 1.72, 0.02, batch=8)], lines=True)
    assert read_output(path).acceptance_length == pytest.approx(1.71)
    assert read_output(path, batch=8).concurrency == 8
    with pytest.raises(AcceptanceError, match="its batches are 1, 8"):
        read_output(path, batch=4)
    far = write("b.jsonl", [row(1, 1.7, 0.012), row(1, 1.2, 0.02, batch=8)], lines=True)
    assert any("differs by 0.50" in one for one in read_output(far).notes)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row(2, 2.0, 0.0)], "step_time 0"),
        ([row(3, 2.9, 0.016, top=4, nodes=16)], "no row of a chain"),
        ([row(1, 2.9, 0.016)], "between 1 and 2"),
        ([{**row(1, 1.9, 0.016), "steps": None}], "steps is missing"),
    ],
)
def test_tables_that_cannot_be(write, rows, words):
    with pytest.raises(AcceptanceError, match=words):
        read_output(write("a.jsonl", rows, lines=True))


# --- meta_info


def meta(histogram, **more):
    verifies = sum(histogram)
    accepted = sum(j * n for j, n in enumerate(histogram))
    return {
        "text": "...",
        "meta_info": {
            "spec_verify_ct": verifies,
            "spec_num_correct_drafts": accepted,
            "spec_num_proposed_drafts": 3 * verifies,
            "spec_accept_length": 1 + accepted / verifies,
            "spec_correct_drafts_histogram": histogram,
            **more,
        },
    }


def test_histograms_of_responses_add_up(write):
    """(1,2,3) and (2,0,0,4), K 3 by proposed / verifies; also as the list of one answer."""
    found = read_output(write("a.jsonl", [meta([1, 2, 3]), meta([2, 0, 0, 4])], lines=True))
    assert found.acceptance.counts == (3, 2, 3, 4)
    assert (found.k, found.notes) == (3, ())
    assert read_output(write("b.json", [meta([1, 2, 3]), meta([2, 0, 0, 4])])).acceptance.counts == (
        3,
        2,
        3,
        4,
    )


def test_truncation_in_the_printed_length_is_said(write):
    """Completion tokens per verify: a stop token cut the last round."""
    found = read_output(write("a.json", meta([1, 2, 3], spec_accept_length=2.0)))
    assert found.acceptance_length == pytest.approx(1 + 8 / 6)
    assert any("2.000 tokens per verify" in one and "2.333" in one for one in found.notes)


def test_totals_without_a_histogram(write):
    found = read_output(write("a.json", meta([2, 2, 2, 4], spec_correct_drafts_histogram=None)))
    assert found.acceptance_length == pytest.approx(2.8)
    assert float(found.acceptance.expected(3)) == pytest.approx(2.8)
    old = {"meta_info": {"spec_verify_ct": 10, "spec_accepted_drafts": 18}}
    with pytest.raises(AcceptanceError, match="add --measured-k"):
        read_output(write("b.json", old))
    assert read_output(write("b.json", old), 3).acceptance_length == pytest.approx(2.8)


def test_a_histogram_that_contradicts_its_totals(write):
    with pytest.raises(AcceptanceError, match="contradicts"):
        read_output(write("a.json", meta([1, 2, 3], spec_verify_ct=9)))
    with pytest.raises(AcceptanceError, match="no accepted drafts"):
        read_output(write("b.json", {"meta_info": {"spec_verify_ct": 9}}))


# --- gauges


def test_gauges_are_the_last_window(write):
    text = (
        'sglang:spec_accept_length{model_name="org/m",tp_rank="0"} 2.4\nsglang:spec_num_steps{model_name="org/m"} 3\n'
        'sglang:spec_num_draft_tokens{model_name="org/m"} 4\n'
    )
    found = read_output(write("a.prom", text))
    assert (found.k, found.acceptance_length, found.model) == (3, 2.4, "org/m")
    assert "last window only" in found.notes[0]
    assert read_output(write("b.prom", text + text.replace("2.4", "2.6"))).acceptance_length == pytest.approx(
        2.5
    )
    with pytest.raises(AcceptanceError, match="no window was logged"):
        read_output(write("c.prom", text.replace("2.4", "0.0")))
