"""vLLM: counters, log lines, bench serve, per-request records; values computed by hand from public outputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs import read_output

PREFIX = "vllm:spec_decode_num_"


def scrape(histogram, *, prefix=PREFIX, engine="0", model="m", drafted=None):
    """Counters that a histogram of accepted drafts per round gives; K = cells - 1."""
    k = len(histogram) - 1
    rounds = sum(histogram)
    labels = f'engine="{engine}",model_name="{model}"'
    lines = [
        f"{prefix}drafts_total{{{labels}}} {float(rounds)}",
        f"{prefix}draft_tokens_total{{{labels}}} {float(rounds * k if drafted is None else drafted)}",
        f"{prefix}accepted_tokens_total{{{labels}}} {float(sum(j * n for j, n in enumerate(histogram)))}",
    ]
    lines += [
        f'{prefix}accepted_tokens_per_pos_total{{{labels},position="{i}"}} {float(sum(histogram[i + 1 :]))}'
        for i in range(k)
    ]
    return "\n".join(lines) + "\n"


# --- counters


def test_the_counters_of_a_faulty_drafter(files):
    """105 drafts, 630 draft tokens, 149 accepted: K 6, A 1 + 149/105 = 2.42, S .80 .60 .01 .01 0 0, a cliff after 2."""
    found = read_output(files / "vllm.prom")
    assert (found.engine, found.k, found.rounds, found.accepted, found.model) == (
        "vLLM",
        6,
        105,
        149,
        "v4-flash",
    )
    assert found.acceptance_length == pytest.approx(1 + 149 / 105)
    assert found.acceptance.values == pytest.approx((0.8, 0.6, 1 / 105, 1 / 105, 0, 0))
    assert found.acceptance.counts == (21, 21, 62, 0, 1, 0, 0)
    assert any("breaks off after position 2" in one for one in found.acceptance.warnings)
    assert any("BEFORE,AFTER" in one for one in found.acceptance.warnings)


def test_two_scrapes_are_subtracted_and_engines_added(write):
    """Engine 0: (5,3,2) after (1,1,0); engine 1: (4,0,6) new. Rounds 8 + 10, accepted 6 + 12."""
    before = write("a.prom", scrape([1, 1, 0]))
    after = write("b.prom", scrape([5, 3, 2]) + scrape([4, 0, 6], engine="1"))
    found = read_output(f"{before},{after}")
    assert found.acceptance.counts == (8, 2, 8)
    assert (found.rounds, found.accepted, found.k) == (18, 18, 2)
    assert found.acceptance.warnings == ()
    with pytest.raises(AcceptanceError, match="give the earlier scrape first"):
        read_output(f"{after},{before}")


def test_scrapes_in_one_file_are_first_and_last(write):
    """As `curl >> FILE` writes them."""
    path = write("a.prom", scrape([1, 1]) + scrape([2, 5]) + scrape([3, 9]))
    assert read_output(path).acceptance.counts == (2, 8)


def test_llama_cpp_has_the_same_counters(write):
    """Another prefix, no labels; 60 tokens of rounds in 3 s are 0.1 s for each of 30."""
    text = (
        "llamacpp:spec_decode_num_drafts_total 30\nllamacpp:spec_decode_num_draft_tokens_total 90\n"
        "llamacpp:spec_decode_num_accepted_tokens_total 30\n"
        'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="0"} 15\n'
        'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="1"} 10\n'
        'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{position="2"} 5\n'
        "llamacpp:tokens_predicted_total 61\nllamacpp:tokens_predicted_seconds_total 3\n"
    )
    found = read_output(write("llama.txt", text))
    assert (found.engine, found.k, found.acceptance_length) == ("llama.cpp", 3, 2.0)
    assert found.acceptance.counts == (15, 5, 5, 5)
    assert found.round_s == pytest.approx(0.1)
    assert found.token_at() == pytest.approx(0.05)


def test_the_mean_gap_is_a_round_or_a_token_by_its_count(write):
    """10 rounds of 2.5 tokens: 10 gaps of 20 ms are rounds, 25 of 8 ms tokens, 40 neither."""
    base = scrape([0, 5, 5])
    assert sum((5, 10)) == 15
    gap = 'vllm:inter_token_latency_seconds_sum{{engine="0",model_name="m"}} {}\nvllm:inter_token_latency_seconds_count{{engine="0",model_name="m"}} {}\n'
    rounds = read_output(write("a.prom", base + gap.format(0.2, 10)))
    tokens = read_output(write("b.prom", base + gap.format(0.2, 25)))
    mixed = read_output(write("c.prom", base + gap.format(0.2, 40)))
    assert rounds.round_s == pytest.approx(0.02)
    assert tokens.token_s == pytest.approx(0.008)
    assert rounds.token_at() == pytest.approx(tokens.token_at())
    assert mixed.round_at() is None
    assert any("no time is read" in one for one in mixed.acceptance.warnings)


def test_totals_without_positions_give_a_constant_rate_with_its_spread(write):
    """Old exporters: 15 of 20 drafts at K = 2 over 10 rounds."""
    text = "".join(
        f"{PREFIX}{name}_total 0{value}\n"
        for name, value in (("drafts", 10), ("draft_tokens", 20), ("accepted_tokens", 15))
    )
    found = read_output(write("a.prom", text))
    assert (found.k, found.acceptance_length, found.rounds) == (2, 2.5, 10)
    assert float(found.acceptance.expected(2)) == pytest.approx(2.5)
    assert found.acceptance.expected_draws(2.0, 5) is not None


def test_k_that_varies_biases_the_survival_and_is_said(write):
    """Half of the rounds drafted one token, half three: 2 on average of up to 3."""
    found = read_output(write("a.prom", scrape([5, 5, 5, 5], drafted=40)))
    assert found.drafted_per_round == 2.0
    assert any("lower bound" in one for one in found.acceptance.warnings)


def test_positions_that_contradict_the_total_are_said(write):
    """20 accepted by positions, 30 in all."""
    text = scrape([5, 5, 5]).replace(
        'accepted_tokens_total{engine="0",model_name="m"} 15.0',
        'accepted_tokens_total{engine="0",model_name="m"} 25.0',
    )
    found = read_output(write("a.prom", text))
    assert any("add up to 1 accepted drafts a round, but 1.67" in one for one in found.notes)
    assert found.acceptance_length == pytest.approx(2.0)


def test_one_model_of_several_is_named(write):
    path = write("a.prom", scrape([1, 1], model="org/a") + scrape([0, 4], model="b"))
    with pytest.raises(AcceptanceError, match=r"more than one model \(org/a, b\); name one after the file"):
        read_output(path)
    assert read_output(f"{path}#b").acceptance.counts == (0, 4)
    assert read_output(f"{path}#a").acceptance.counts == (1, 1)
    with pytest.raises(AcceptanceError, match="has no model 'c'"):
        read_output(f"{path}#c")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (scrape([0, 0]), "no round drafted anything"),
        (scrape([1, 5], drafted=2), "5 drafts accepted of 2"),
        (scrape([1, 1]).replace("2.0", "many"), "no readable spec_decode_num_drafts"),
        (scrape([1, 1]).replace("2.0", "NaN"), "no readable spec_decode_num_drafts"),
        (scrape([1, 1])[:40], "no readable spec_decode_num_drafts"),
        # 9 of 13 rounds accepted the first draft, 12 the first two.
        (
            scrape([4, 9])
            + f'{PREFIX}accepted_tokens_per_pos_total{{engine="0",model_name="m",position="1"}} 12',
            "rises",
        ),
    ],
)
def test_counters_that_cannot_be_are_one_sentence(write, text, words):
    with pytest.raises(AcceptanceError) as caught:
        read_output(write("a.prom", text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(
    first=st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
    more=st.lists(st.integers(0, 10**6), min_size=4, max_size=4),
)
def test_any_histogram_comes_back_from_its_counters(tmp_path_factory, first, more):
    """Counters are sums over the histogram; their difference gives it back, and A - 1 = sum S_i."""
    folder = tmp_path_factory.mktemp("counters")
    (folder / "a.prom").write_text(scrape(first))
    (folder / "b.prom").write_text(scrape([a + b for a, b in zip(first, more, strict=True)]))
    if not sum(more):
        with pytest.raises(AcceptanceError, match="no round"):
            read_output(f"{folder / 'a.prom'},{folder / 'b.prom'}")
        return
    found = read_output(f"{folder / 'a.prom'},{folder / 'b.prom'}")
    assert found.acceptance.counts == pytest.approx(more)
    assert found.acceptance_length - 1 == pytest.approx(sum(found.acceptance.values))
    assert found.acceptance_length == pytest.approx(1 + sum(j * n for j, n in enumerate(more)) / sum(more))


# --- log


def test_a_log_of_a_block_drafter(files):
    """1460 drafted are 292 rounds of K 5 in 10 s: 34.2 ms for one sequence; 958 = 257 + 230 + 188 + 156 + 127."""
    found = read_output(files / "vllm_dflash.log")
    assert (found.k, found.rounds, found.accepted, found.model) == (5, 876, 958 + 944 + 971, "org/target")
    assert found.round_at() == pytest.approx(10 / 292, rel=1e-3)
    assert found.round_at(4) == pytest.approx(40 / 292, rel=1e-3)
    assert found.token_at() == pytest.approx(10 / 292 / found.acceptance_length, rel=1e-3)
    assert found.acceptance_length == pytest.approx(1 + 2873 / 876)
    assert found.notes == ()
    assert sum(found.acceptance.counts) == 876


def test_one_line_gives_its_histogram(write, files):
    """S = .880 .788 .644 .534 .435 of 292 rounds."""
    line = (files / "vllm_dflash.log").read_text().splitlines()[1]
    assert read_output(write("a.log", line)).acceptance.counts == (35, 27, 42, 32, 29, 127)


def test_the_order_of_2025(files):
    """295 drafted at K 5 are 59 rounds; A 1 + 262/59 = 5.44; the rate stands first there."""
    found = read_output(files / "vllm_2025.log")
    assert (found.k, found.rounds) == (5, 59)
    assert found.acceptance_length == pytest.approx(5.44, abs=0.005)
    assert found.notes == ()


def test_the_old_engine_is_refused(files, write):
    with pytest.raises(AcceptanceError, match="old V0 engine only"):
        read_output(files / "vllm_v0.log")
    both = (files / "vllm_v0.log").read_text() + (files / "vllm_2025.log").read_text()
    assert read_output(write("a.log", both)).rounds == 59


def test_running_requests_give_the_time_of_a_round(write, files):
    """Four sequences share 292 rounds in 10 s: 137 ms each."""
    lines = (files / "vllm_dflash.log").read_text().splitlines(keepends=True)
    running = "INFO Engine 000: Avg generation throughput: 125 tokens/s, Running: 4 reqs, Waiting: 0 reqs\n"
    found = read_output(write("a.log", "".join(running + line for line in lines)))
    assert found.concurrency == 4
    assert found.round_s == pytest.approx(0.137, rel=2e-3)


def test_idle_time_does_not_stretch_a_round(write, files):
    """The first line after a pause covers it: 61 s instead of 10."""
    slow = "INFO [m] SpecDecoding metrics: Mean acceptance length: 4.28, Accepted throughput: 15.70 tokens/s, Drafted throughput: 23.93 tokens/s, Accepted: 958 tokens, Drafted: 1460 tokens, Per-position acceptance rate: 0.880, 0.788, 0.644, 0.534, 0.435, Avg Draft acceptance rate: 65.6%\n"
    found = read_output(write("a.log", slow + (files / "vllm_dflash.log").read_text()))
    assert found.round_at() == pytest.approx(10 / 292, rel=2e-3)


def test_cut_lines_and_idle_lines_are_left_out(write, files):
    """A line cut within its positions, and one of an interval without drafts."""
    text = (files / "vllm_2025.log").read_text()
    idle = "SpecDecoding metrics: Mean acceptance length: nan, Accepted: 0 tokens, Drafted: 0 tokens, Avg Draft acceptance rate: nan%\n"
    found = read_output(write("a.log", text + idle + text[: text.index("0.881")]))
    assert (found.rounds, found.k) == (59, 5)
    assert found.notes == ("1 lines are cut and left out",)
    with pytest.raises(AcceptanceError, match="none with all its parts"):
        read_output(write("b.log", text[:60]))
    with pytest.raises(AcceptanceError, match="drafted nothing in any interval"):
        read_output(write("c.log", idle))


def test_two_values_of_k_are_told_apart(write, files):
    """Two servers in one log."""
    three = "SpecDecoding metrics: Mean acceptance length: 2.50, Accepted: 15 tokens, Drafted: 30 tokens, Per-position acceptance rate: 0.800, 0.500, 0.200, Avg Draft acceptance rate: 50.0%\n"
    path = write("a.log", (files / "vllm_2025.log").read_text() + three)
    with pytest.raises(AcceptanceError, match=r"more than one K \(k=5, k=3\)"):
        read_output(path)
    assert read_output(f"{path}#k=3").acceptance.counts == (2, 3, 3, 2)


def test_a_line_of_k_that_varies_takes_its_rounds_from_the_length(write):
    """15 drafts in 10 rounds of up to 3: A 1.8 = 1 + 8/10, where drafted / K would be 5 rounds."""
    line = "SpecDecoding metrics: Mean acceptance length: 1.80, Accepted: 8 tokens, Drafted: 15 tokens, Per-position acceptance rate: 0.500, 0.200, 0.100, Avg Draft acceptance rate: 53.3%\n"
    found = read_output(write("a.log", line))
    assert (found.rounds, found.drafted_per_round) == (10, 1.5)
    assert found.acceptance.counts == (5, 3, 1, 1)
    assert any("lower bound" in one for one in found.notes)


def test_lines_without_positions_need_k(write):
    line = "SpecDecoding metrics: Draft acceptance rate: 60.0%, Accepted: 30 tokens, Drafted: 50 tokens\n"
    path = write("a.log", line)
    with pytest.raises(AcceptanceError, match="add --measured-k"):
        read_output(path)
    assert read_output(path, 5).acceptance_length == pytest.approx(4.0)


def test_the_offline_example(files):
    """12368 accepted in 4687 drafts of K 10; the rates have two digits, so the total of them is 2.64."""
    found = read_output(files / "vllm_offline.txt")
    assert (found.k, found.rounds, found.accepted) == (10, 4687, 12368)
    assert found.acceptance.values[:2] == pytest.approx((0.74, 0.54))
    assert found.acceptance_length == pytest.approx(3.64)


# --- bench serve


def bench(**more):
    """A result of K 3: 100 rounds, survival .8 .5 .2, TPOT 8 ms, ITL 20 ms."""
    return {
        "backend": "vllm",
        "model_id": "org/target",
        "num_prompts": 10,
        "max_concurrency": 4,
        "mean_tpot_ms": 8.0,
        "mean_itl_ms": 20.0,
        "spec_decode_acceptance_rate": 50.0,
        "spec_decode_acceptance_length": 2.5,
        "spec_decode_num_drafts": 100,
        "spec_decode_draft_tokens": 300,
        "spec_decode_accepted_tokens": 150,
        "spec_decode_per_position_acceptance_rates": [0.8, 0.5, 0.2],
        **more,
    }


def test_a_bench_serve_result(write):
    """TPOT is the token, ITL about a round: 20 / 8 = 2.5 tokens."""
    found = read_output(write("a.json", bench()))
    assert found.acceptance.counts == (20, 30, 30, 20)
    assert (found.k, found.token_s, found.concurrency, found.model) == (3, 0.008, 4, "org/target")
    assert found.round_at() == pytest.approx(0.02)
    assert found.notes == ()


def test_itl_beside_tpot_is_said_where_it_is_no_round(write):
    """A proxy that splits chunks makes both equal; the round stays A x TPOT."""
    found = read_output(write("a.json", bench(mean_itl_ms=8.0)))
    assert found.round_at() == pytest.approx(0.02)
    assert any("ITL over mean TPOT is 1.00" in one for one in found.acceptance.warnings)


def test_a_percentage_is_no_fraction(write):
    """0.5 printed where 50 % were accepted is said, not used."""
    found = read_output(write("a.json", bench(spec_decode_acceptance_rate=0.5)))
    assert any("acceptance rate 0.005 is printed" in one for one in found.notes)


def test_a_plain_run_and_inferencex_seconds(write):
    """No spec_decode keys: the plain step; keys without _ms are seconds."""
    plain = {"model_id": "m", "num_prompts": 1, "max_concurrency": 16, "median_tpot": 0.141}
    found = read_output(write("a.json", plain))
    assert found.acceptance is None
    assert found.token_at() == 0.141


def test_a_length_alone_needs_k(write):
    alone = {
        "num_prompts": 1,
        "mean_tpot_ms": 8.0,
        "spec_decode_acceptance_length": 2.5,
        "spec_decode_acceptance_rate": 50.0,
    }
    path = write("a.json", alone)
    with pytest.raises(AcceptanceError, match="add --measured-k"):
        read_output(path)
    assert read_output(path, 3).k == 3


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"spec_decode_num_drafts": "x"}, "spec_decode_num_drafts 'x'"),
        ({"spec_decode_per_position_acceptance_rates": 3}, "not a list"),
        ({"spec_decode_per_position_acceptance_rates": [80.0]}, "above 1"),
        ({"spec_decode_num_drafts": 0, "spec_decode_acceptance_length": None}, "cut off"),
        ({"mean_tpot_ms": float("nan")}, "mean_tpot_ms nan"),
        ({"spec_decode_accepted_tokens": 301}, "impossible"),
    ],
)
def test_damaged_results_are_one_sentence(write, more, words):
    with pytest.raises(AcceptanceError, match=words):
        read_output(write("a.json", bench(**more)))


def test_results_appended_to_one_file_are_named(write):
    path = write(
        "a.json",
        [
            bench(),
            bench(spec_decode_num_drafts=10, spec_decode_accepted_tokens=15, spec_decode_draft_tokens=30),
        ],
        lines=True,
    )
    with pytest.raises(AcceptanceError, match=r"more than one result \(1, 2\)"):
        read_output(path)
    assert read_output(f"{path}#2").rounds == 10


# --- records of requests


def record(histogram, k=3, drafted=None, **more):
    steps = sum(histogram)
    return {
        "mean_acceptance_length": 1.0,
        "acceptance_histogram": histogram,
        "num_spec_steps": steps,
        "num_accepted_draft_tokens": sum(j * n for j, n in enumerate(histogram)),
        "num_draft_tokens": steps * k if drafted is None else drafted,
        "num_spec_tokens": k,
        **more,
    }


def test_records_of_requests_add_up(write):
    """(1,2,3,0) and, sparse as aiperf writes them, {0: 4, 2: 1}: (5,2,4,0)."""
    first = {"model": "m", "metrics": {"speculative_decoding": record([1, 2, 3, 0])}}
    second = {
        "model": "m",
        "metrics": {"speculative_decoding": record([4, 0, 1]) | {"acceptance_histogram": {"0": 4, "2": 1}}},
    }
    found = read_output(write("a.jsonl", [first, second], lines=True))
    assert found.acceptance.counts == (5, 2, 4, 0)
    assert (found.k, found.model, found.what) == (3, "m", "records of 2 requests")
    assert read_output(write("b.json", first)).acceptance.counts == (1, 2, 3, 0)


def test_a_cut_last_line_is_left_out(write, tmp_path):
    path = write("a.jsonl", [{"x": record([1, 1])}, {"x": record([2, 2])}], lines=True)
    text = (tmp_path / "a.jsonl").read_text()
    (tmp_path / "a.jsonl").write_text(text[:-20])
    assert read_output(path).acceptance.counts == (1, 1, 0, 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"num_spec_steps": 9}, "contradicts its num_spec_steps 9"),
        ({"num_accepted_draft_tokens": 7}, "num_accepted_draft_tokens 7"),
        ({"num_draft_tokens": None}, "num_draft_tokens is missing"),
        ({"acceptance_histogram": {"x": 1}}, "as keys"),
    ],
)
def test_records_that_contradict_themselves(write, change, words):
    with pytest.raises(AcceptanceError, match=words):
        read_output(write("a.json", {"spec": record([1, 1, 1]) | change}))
