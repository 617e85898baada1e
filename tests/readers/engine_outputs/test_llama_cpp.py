"""llama.cpp: timings of responses, log and statistics lines."""

import pytest

from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs import read_output


def test_timings_of_a_response(files):
    """200 - 65 = 135 rounds, 11082.6 / 135 = 82 ms each, 347 / 135 = 2.57 drafts."""
    found = read_output(files / "llama_timings.json")
    assert found.rounds == 135
    assert found.round_s == pytest.approx(0.0821, abs=5e-5)
    assert found.drafted_per_round == pytest.approx(2.57, abs=5e-3)
    assert found.acceptance_length == pytest.approx(200 / 135)
    assert found.k == 3
    assert any("2.57 drafts a round on average, so K = 3 is taken" in one for one in found.notes)
    assert "--draft-min" in found.definition
    told = read_output(files / "llama_timings.json", 16)
    assert told.k == 16
    assert not any("is taken" in one for one in told.notes)


def test_responses_add_up_and_a_stream_counts_once(write):
    """Two answers; then one whose chunks repeat growing timings."""
    one = {"timings": {"predicted_n": 30, "predicted_ms": 300.0, "draft_n": 40, "draft_n_accepted": 10}}
    two = {"timings": {"predicted_n": 50, "predicted_ms": 700.0, "draft_n": 120, "draft_n_accepted": 30}}
    found = read_output(write("a.jsonl", [one, two], lines=True), 4)
    assert (found.rounds, found.round_s, found.what) == (40, pytest.approx(0.025), "timings of 2 responses")
    chunks = "".join(
        f'data: {{"id": "x", "timings": {{"predicted_n": {n}, "predicted_ms": {10 * n}, "draft_n": {n}, "draft_n_accepted": {n // 2}}}}}\n\n'
        for n in (10, 20, 40)
    )
    assert read_output(write("b.txt", chunks + "data: [DONE]\n"), 4).rounds == 20


def test_a_plain_response_is_a_plain_step(write):
    found = read_output(write("a.json", {"timings": {"predicted_n": 100, "predicted_ms": 5000.0}}))
    assert (found.acceptance, found.token_s) == (None, 0.05)


@pytest.mark.parametrize(
    ("timings", "words"),
    [
        ({"predicted_n": 0, "predicted_ms": 0.0}, "no token was predicted"),
        (
            {"predicted_n": 20, "predicted_ms": 9.0, "draft_n": 5, "draft_n_accepted": 9},
            "9 drafts accepted of 5",
        ),
        ({"predicted_n": None, "predicted_ms": 9.0}, "predicted_n is missing"),
        ({"predicted_n": 9, "predicted_ms": 9.0, "draft_n": 20, "draft_n_accepted": 9}, "no round drafted"),
    ],
)
def test_damaged_timings(write, timings, words):
    with pytest.raises(AcceptanceError, match=words):
        read_output(write("a.json", timings))


def test_statistics_give_the_draft_time(files):
    """325.6 / 87 = 3.74 ms a draft round, 2296.7 / 87 = 26.4 ms a round: 0.165 of the rest; 70, 55, 42 of 87 rounds."""
    found = read_output(files / "llama_eagle3.log")
    assert (found.k, found.rounds, found.accepted) == (3, 87, 167)
    assert found.draft_s == pytest.approx(3.742e-3, abs=1e-6)
    assert found.round_s == pytest.approx(26.40e-3, abs=5e-6)
    assert found.draft_s / (found.round_s - found.draft_s) == pytest.approx(0.165, abs=5e-4)
    assert found.acceptance.counts == (17, 15, 13, 42)
    assert found.acceptance_length == pytest.approx(2.92, abs=5e-3)
    assert found.notes == ()


def test_the_line_of_a_request_alone(files):
    """167 / 1.92 = 87 rounds; without positions K is the drafts of a round, 2.98."""
    found = read_output(files / "llama_info.log")
    assert (found.rounds, found.k) == (87, 3)
    assert found.round_s == pytest.approx(26.40e-3, abs=5e-6)


def test_the_busier_of_two_drafters(files):
    """MTP in 796 rounds, n-gram in 4 of 800 calls, whose 47 accepted drafts are 1.06 tokens over all of them."""
    found = read_output(files / "llama_two_drafters.log")
    assert (found.rounds, found.acceptance_length) == (796, pytest.approx(1 + 1252 / 796))
    assert found.draft_s == pytest.approx(33.271024 / 796)
    assert any("ngram-mod drafted too" in one for one in found.notes)
    other = read_output(f"{files / 'llama_two_drafters.log'}#ngram-mod", 64)
    assert other.acceptance_length == pytest.approx(1 + 47 / 4)
    assert any("in 4 of 800 rounds" in one and "1.06 tokens" in one for one in other.notes)
    with pytest.raises(AcceptanceError, match="did you mean draft-mtp"):
        read_output(f"{files / 'llama_two_drafters.log'}#draft-mtq")


def test_statistics_count_on_until_the_server_restarts(write, files):
    """87 rounds, then 174 of the same server; then 87 of a new one: 261."""
    once = (files / "llama_eagle3.log").read_text().splitlines()[-1]
    twice = once
    for word in ("87", "259", "167", "325.555"):
        twice = twice.replace(word, str(float(word) * 2 if "." in word else int(word) * 2))
    assert read_output(write("a.log", f"{once}\n{twice}\n")).rounds == 174
    assert read_output(write("b.log", f"{once}\n{twice}\n{once}\n")).rounds == 261


def test_times_of_another_drafter_are_not_taken(write, files):
    text = (files / "llama_eagle3.log").read_text() + (files / "llama_two_drafters.log").read_text()
    assert read_output(write("a.log", text)).round_s is None
    assert read_output(f"{write('a.log', text)}#draft-eagle3").round_s == pytest.approx(26.40e-3, abs=5e-6)


def test_speculative_simple(files):
    """136 - 36 = 100 rounds in 28.9 s, 1.12 drafts of up to 8."""
    found = read_output(files / "llama_simple.txt")
    assert (found.k, found.rounds, found.acceptance_length) == (8, 100, pytest.approx(1.36))
    assert found.round_s == pytest.approx(0.28931)
    assert found.drafted_per_round == pytest.approx(1.12)


def test_cut_logs_are_one_sentence(write, files):
    text = (files / "llama_eagle3.log").read_text()
    with pytest.raises(AcceptanceError, match="none that is whole"):
        read_output(write("a.log", text[text.index("draft acceptance") :][:40]))
    start = text.index("statistics")
    with pytest.raises(AcceptanceError, match="statistics lines but none that is whole"):
        read_output(write("b.log", text[start : start + 90]))
