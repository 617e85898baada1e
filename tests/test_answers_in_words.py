"""What a newcomer reads: examples that run, verdicts that name the answer, errors that name the next step."""

import re
import shlex

import click
import pytest

from rooflinekit.cli import COMMANDS, cli, run
from rooflinekit.cli.examples import EXAMPLES

LLAMA = ("--model", "llama-3.1-8b", "--hardware", "h100-sxm")
LINES = [line for lines in EXAMPLES.values() for line in lines]
NEEDS_A_FILE = re.compile(r"\.(log|prom|json|jsonl|yaml|png)\b|^(bench|demo|validate)")


def said(capsys, *arguments, code=0):
    assert run(list(arguments)) == code
    out, err = capsys.readouterr()
    return out if code == 0 else err


# --- Examples


def test_every_command_has_examples_of_its_own():
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(line.split()[0] == name for name, lines in EXAMPLES.items() for line in lines)


@pytest.mark.parametrize("line", LINES)
def test_an_example_names_options_that_exist_and_fits_a_line(line):
    """Parsed, not run; a group's example down to its command."""
    assert len(f"  rooflinekit {line}") <= 132
    words, group = shlex.split(line), cli
    while isinstance(group, click.Group):
        name = words.pop(0)
        context = click.Context(group)
        group = group.get_command(context, name)
        assert group is not None, name
    assert group.make_context(name, words)


@pytest.mark.parametrize("line", [line for line in LINES if not NEEDS_A_FILE.search(line)])
def test_an_example_runs(capsys, line):
    assert said(capsys, *shlex.split(line))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_the_examples_unwrapped(capsys, name):
    printed = said(capsys, name, "--help")
    assert [f"  rooflinekit {line}" in printed for line in EXAMPLES[name]] == [True] * len(EXAMPLES[name])


def commands_of(group, context):
    for name in group.list_commands(context):
        one = group.get_command(context, name)
        yield from commands_of(one, context) if isinstance(one, click.Group) else [one]


def test_every_option_of_every_command_is_explained():
    silent = [
        (one.name, parameter.name)
        for one in commands_of(cli, click.Context(cli))
        for parameter in one.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert silent == []


# --- Answers


def test_compare_says_which_to_take_and_what_comes_next(capsys):
    """At one rate a lookup wins and the headline says what that rests on; at its own it may not."""
    equal = said(capsys, "compare", *LLAMA, "--drafters", "eagle3,ngram", "--alpha", "0.8")
    found = re.match(
        r"Best if all were accepted as often: (\S+), .*x at K = 16   next: (\S+), ", equal.split("\n")[1]
    )
    assert found is not None
    assert found.groups() == ("ngram", "eagle3")
    assert "give each its own acceptance" in equal
    own = said(capsys, "compare", *LLAMA, "--drafters", "eagle3@0.8,ngram@0.3")
    found = re.match(r"Best: (\S+), .*x at K = \d+   next: (\S+), ", own.split("\n")[1])
    assert found is not None
    assert found.groups() == ("eagle3", "ngram")
    assert "give each its own acceptance" not in own


def test_compare_and_schedule_say_for_which_load_and_how_many_ranks(capsys):
    two = ("--tp", "2", "--alpha", "0.7")
    found = said(capsys, "compare", *LLAMA, "--drafters", "eagle3", "--batch", "8", *two)
    assert "(batch 8, context 4096, 2 ranks)" in found.split("\n")[0]
    assert ", 2 ranks" in said(capsys, "schedule", *LLAMA, "--drafter", "eagle3", "--contexts", "512", *two)


def test_compare_says_that_none_pays(capsys):
    lines = said(capsys, "compare", *LLAMA, "--drafters", "small-lm:llama-3.2-3b", "--alpha", "0.1").split(
        "\n"
    )
    assert lines[1].startswith("None pays: at best llama-3.2-3b, 0.")


def test_a_k_that_ends_where_acceptance_was_measured_is_said_in_the_headline_with_the_way_on(capsys):
    printed = said(capsys, "recommend", *LLAMA, "--drafter", "eagle3", "--survival", "0.8,0.7,0.6")
    assert "the largest K that could be tried" in printed.split("\n")[1]
    assert "acceptance fit FILE" in printed
    # A best K inside what was tried is not doubted.
    printed = said(
        capsys, "recommend", *LLAMA, "--drafter", "eagle3", "--survival", "0.8,0.3,0.05,0.01,0.001"
    )
    assert "could be tried" not in printed


def test_stretches_of_one_batch_are_one_number(capsys):
    from rooflinekit.limits import Stretch
    from rooflinekit.report.recommendation import stretches_text

    parts = [Stretch(first=a, last=b, k=k, speedup=1.0) for a, b, k in ((1, 1, 6), (2, 9, 4), (10, 10, 0))]
    assert stretches_text(parts) == "1: 6, 2-9: 4, 10: off"


def test_what_does_not_fit_is_marked_where_nothing_can_be_dim(capsys):
    """70 GB of cache beside 16 GB of weights: 256 sequences of 8,192 tokens at 131 kB do not fit, one does."""
    found = (
        "schedule",
        *LLAMA,
        "--drafter",
        "eagle3",
        "--alpha",
        "0.7",
        "--batches",
        "1,256",
        "--contexts",
        "8192",
    )
    one, many = (line for line in said(capsys, *found).split("\n") if re.match(r" +(1|256) ", line))
    assert re.fullmatch(r" +1 +[^*]\d*  \d\.\d\dx *", one)
    assert re.fullmatch(r" +256 +\*\d+  \d\.\d\dx *", many)


def test_an_engine_without_a_schedule_is_said_and_not_left_out(capsys):
    found = ("schedule", *LLAMA, "--drafter", "eagle3", "--alpha", "0.7", "--contexts", "1024")
    assert "llama.cpp: no option known" in said(capsys, *found, "--engine", "llama.cpp")
    assert "no option known" not in said(capsys, *found, "--engine", "vllm")


def test_rows_of_draft_passes_are_for_drafters_that_have_several(capsys):
    """Medusa's heads run once, whatever the tree."""
    medusa = ("--model", "llama-2-7b", "--hardware", "a100", "--drafter", "medusa")
    assert "draft passes" not in said(capsys, "tree", *medusa, "--rank-accuracies", "medusa-vicuna-7b")
    assert "draft passes 1, " in said(capsys, "tree", *LLAMA, "--drafter", "eagle3", "--alpha", "0.7")


SLOW = ("diagnose", "--plain-ms", "20", "--tpot-ms", "24", "--k", "5", "--acceptance-length", "2.1")
MODELLED = ("--model", "qwen3-32b", "--hardware", "h100", "--drafter", "eagle3")


def test_speculation_that_loses_without_a_visible_cause_says_what_to_give(capsys):
    """2.1 tokens x 24 ms over 20 ms: a round costs 2.52 plain steps."""
    printed = said(capsys, *SLOW)
    assert "a round costs 2.52 plain steps and gives 2.10 tokens" in printed
    assert "add --draft-ms and --verify-ms" in printed
    assert "cause:" not in said(capsys, *SLOW, "--verify-ms", "6=45")


@pytest.mark.parametrize(
    ("length", "cause"), [("1.5", "the engine adds the rest"), ("1.1", "acceptance is too low for this K")]
)
def test_with_a_model_the_cause_is_the_engine_or_the_acceptance(capsys, length, cause):
    """1.05 plain steps a token: a round of 1.58 steps is far above the model's 1.1, one of 1.16 is what it expects."""
    found = ("diagnose", "--plain-ms", "20", "--tpot-ms", "21", "--k", "5", "--acceptance-length", length)
    assert cause in said(capsys, *found, *MODELLED)


def test_a_plain_step_of_another_setting_is_said(capsys):
    """qwen3-32b in bf16 reads 64 GB: 20 ms on an H100; 5 ms would need four times its bandwidth."""
    assert "check: the measured plain step" not in said(capsys, *SLOW, *MODELLED)
    fast = ("diagnose", "--plain-ms", "5", "--tpot-ms", "6", "--k", "5", "--acceptance-length", "2.1")
    assert re.search(
        r"check: the measured plain step is 0\.\d\d times the predicted one", said(capsys, *fast, *MODELLED)
    )


def test_a_best_k_of_a_drafter_that_costs_nothing_is_called_so(capsys):
    printed = said(capsys, "diagnose", "--plain-ms", "10", "--tpot-ms", "12", "--k", "4", "--alpha", "0.8",
                   "--verify-ms", "5=15")  # fmt: skip
    assert "best K with a free drafter = " in printed.split("\n")[0]


# --- Errors


@pytest.mark.parametrize("name", ["nosuch.log", "a.prom"])
def test_a_file_that_is_missing_is_not_answered_with_a_list_of_profiles(capsys, name):
    printed = said(capsys, "recommend", *LLAMA, "--drafter", "eagle3", "--acceptance", name, code=2)
    assert "does not exist; check the path" in printed
    assert len(printed) < 200


def test_a_tree_without_acceptance_is_told_of_accuracies_of_heads(capsys):
    printed = said(capsys, "tree", *LLAMA, "--drafter", "medusa", code=2)
    assert "--rank-accuracies" in printed


def test_a_diagnosis_without_a_plain_run_is_told_of_the_file(capsys):
    assert "--plain-from" in said(
        capsys, "diagnose", "--spec-tok-s", "50", "--k", "3", "--alpha", "0.7", code=2
    )
