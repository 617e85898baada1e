"""The package as its first user meets it: names at the top, results that say themselves, one meaning for each option."""

import importlib
import json
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import rooflinekit as rk
from rooflinekit.acceptance import Constant
from rooflinekit.cli import run
from rooflinekit.errors import AcceptanceError, RooflineError
from rooflinekit.limits import best_k_table

LLAMA, H100 = "llama-3.1-8b", "h100-sxm"


# --- names ---


def test_no_public_name_is_also_a_module():
    """Importing `rooflinekit.x` would put the module in the place of the function `rk.x`."""
    modules = {module.name for module in pkgutil.iter_modules(rk.__path__)}
    assert not modules & set(rk.__all__)


def test_every_public_name_is_still_itself_after_all_modules_are_imported():
    code = (
        "import pkgutil, importlib, rooflinekit as rk\n"
        "for one in pkgutil.iter_modules(rk.__path__):\n"
        "    if one.name != '__main__': importlib.import_module('rooflinekit.' + one.name)\n"
        "assert all(callable(getattr(rk, name)) for name in rk.__all__ if name != '__version__')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["diagnose", "Measured", "sweep_of", "make_case", "as_text", "best_tree"])
def test_what_a_tuner_needs_is_at_the_top(name):
    assert name in rk.__all__
    assert callable(getattr(rk, name))


# --- options ---


def test_acceptance_is_called_the_same_everywhere():
    """A name, its object and the option of recommend are one thing."""
    name = "eagle3-llama-3.1-8b-mt-bench"
    made = rk.make_acceptance(acceptance=name)
    assert rk.make_acceptance(acceptance=made) is made
    by_name, by_object = (
        rk.recommend(LLAMA, H100, "eagle3", acceptance=one, calibration="datasheet") for one in (name, made)
    )
    assert by_name.curve == by_object.curve


@pytest.mark.parametrize("more", [{"alpha": 0.5}, {"measured_k": 3}, {"survival": "0.5"}])
def test_an_object_and_numbers_contradict(more):
    with pytest.raises(AcceptanceError, match="given twice"):
        rk.make_acceptance(acceptance=Constant(0.8), **more)


def test_a_case_has_the_numbers_of_the_recommendation():
    options = {"alpha": 0.7, "host": "vllm", "draft_cost": 0.1}
    answer = rk.recommend(LLAMA, H100, "eagle3", batch=8, context=2048, **options)
    case = rk.make_case(LLAMA, H100, "eagle3", **options)
    k, speedup = best_k_table(case, np.array([8.0]), np.array([2048.0]), max_k=16)
    assert k[0, 0] == answer.k
    assert speedup[0, 0] == pytest.approx(answer.speedup, rel=1e-12)


def test_a_tree_is_no_deeper_than_acceptance_was_measured():
    shallow = rk.best_tree(LLAMA, H100, "eagle3", survival=[0.9, 0.85])
    assert shallow.choice.tree.depth == 2
    assert shallow.choice.at_edge
    assert rk.best_tree(LLAMA, H100, "eagle3", alpha=0.9).choice.tree.depth > 2


def test_a_tree_answer_carries_what_its_tree_was_judged_by():
    one = rk.best_tree(LLAMA, H100, "eagle3", alpha=0.8, max_nodes=16)
    assert one.rates.expected(one.choice.tree) == pytest.approx(one.choice.acceptance_length)
    assert "rates" not in one.as_dict()


@pytest.mark.parametrize("host", ["none", "vllm"])
def test_draft_cost_means_the_same_in_a_comparison_and_in_a_round(host):
    """c is over a plain step as it is served, its host time included."""
    (row,) = rk.compare(LLAMA, H100, ["eagle3"], alpha=0.7, host=host)
    one = rk.make_case(LLAMA, H100, "eagle3", alpha=0.7, host=host).rounds(
        batch=1.0, context=4096.0, k=float(row.k)
    )
    assert row.draft_cost == pytest.approx(float(one.draft_cost), rel=1e-12)
    assert row.as_dict()["draft_cost"] == row.draft_cost


# --- results as text ---


def results():
    """One of each kind."""
    measured = rk.Measured(plain_s=7.07e-3, k=4, acceptance_length=3.08, token_s=4.05e-3)
    return {
        "4.64 ms per decode step": rk.predict(LLAMA, H100, calibration="datasheet"),
        "Speculation pays": rk.recommend(LLAMA, H100, "eagle3", alpha=0.8),
        "pays with this context": rk.outlook(LLAMA, H100, "eagle3", alpha=0.8),
        "every drafter at alpha 0.8": rk.compare(LLAMA, H100, ["eagle3", "dflash"], alpha=0.8),
        "Best: dflash": rk.compare(LLAMA, H100, ["dflash"], alpha=0.8)[0],
        "context 4,096, K by batch": rk.schedule(
            LLAMA, H100, "eagle3", alpha=0.8, batch=(1, 8), context=(4096,)
        ),
        "nodes by level": rk.best_tree(LLAMA, H100, "eagle3", alpha=0.8, max_nodes=8),
        "1.75x": rk.diagnose(measured),
    }


def test_every_result_says_itself():
    for words, one in results().items():
        shown = rk.as_text(one)
        assert words in str(shown)
        page = shown._repr_mimebundle_()
        assert page["text/plain"] == str(shown)
        assert page["text/html"].startswith("<pre")


def test_the_text_says_what_host_time_was_counted():
    """1.207 ms a step and 8 us a row (1.215 ms); a round of K = 3 has 3 passes of 0.37 ms and 4 rows."""
    words = "host time counted: 1.21 ms of a plain step, 2.35 ms of a round"
    assert words in str(rk.as_text(rk.recommend(LLAMA, H100, "eagle3", alpha=0.7, k=3, host="vllm")))
    assert "host time counted" not in str(rk.as_text(rk.recommend(LLAMA, H100, "eagle3", alpha=0.7)))


def test_no_heading_is_cut_in_a_long_comparison():
    drafters = ["eagle3", "dflash", "dspark", "medusa", "small-lm:llama-3.2-1b", "ngram"]
    rows = rk.compare(LLAMA, H100, drafters, alpha=0.7, batch=8, host="vllm")
    assert "…" not in str(rk.as_text(rows))


def test_the_text_of_a_recommendation_is_that_of_the_command(capsys):
    options = {"alpha": 0.8, "batch": 4, "context": 2048}
    asked = (LLAMA, H100, "eagle3")
    said = str(rk.as_text(rk.recommend(*asked, **options), rk.outlook(*asked, **options), engine="vllm"))
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    run(
        ["recommend", "--model", LLAMA, "--hardware", H100, "--drafter", "eagle3", *words, "--engine", "vllm"]
    )
    printed = capsys.readouterr().out
    assert [line.rstrip() for line in said.splitlines()] == [line.rstrip() for line in printed.splitlines()]


def test_a_notebook_shows_a_result_once(monkeypatch):
    """Rich displays by itself inside Jupyter; the text must not appear a second time."""
    console = importlib.import_module("rich.console")
    monkeypatch.setattr(console, "_is_jupyter", lambda: True)
    displayed = []
    jupyter = importlib.import_module("rich.jupyter")
    monkeypatch.setattr(jupyter, "display", lambda *given: displayed.append(given))
    rk.as_text(rk.predict(LLAMA, H100))._repr_mimebundle_()
    assert not displayed


def test_something_else_has_no_text():
    for thing in (3.0, (), (1, 2), "text"):
        with pytest.raises(RooflineError, match="has no text of its own"):
            rk.as_text(thing)


# --- the host time of an engine, laid beside a measurement ---


@pytest.mark.parametrize("drafter", [(), ("--drafter", "eagle3")])
def test_diagnose_counts_the_host_time_it_is_told(drafter, capsys):
    """vLLM's 1.207 ms a step and 8 us a row come on top of the kernels."""
    measured = ("--plain-ms", "7.07", "--tpot-ms", "4.05", "--k", "4", "--acceptance-length", "3.08")
    beside = ("--model", LLAMA, "--hardware", H100, *drafter, "--json")
    plain_s = {}
    for host in ("none", "vllm"):
        assert run(["diagnose", *measured, *beside, "--host", host]) == 0
        plain_s[host] = json.loads(capsys.readouterr().out)["predicted_plain_s"]
    assert plain_s["vllm"] - plain_s["none"] == pytest.approx(1.215e-3, rel=1e-6)


def test_diagnose_refuses_a_host_time_that_nothing_reads(capsys):
    assert run(["diagnose", "--plain-ms", "7", "--tpot-ms", "4", "--k", "4", "--host", "vllm"]) == 2
    assert "--host is for the model's own numbers" in capsys.readouterr().err
