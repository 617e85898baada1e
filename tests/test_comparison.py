"""Ways of drafting on one footing: what each pays per token and per round."""

import numpy as np
import pytest

import rooflinekit as rk
from rooflinekit.acceptance import Constant, Mixture
from rooflinekit.cli import run
from rooflinekit.curve import Case
from rooflinekit.load import Load
from rooflinekit.prospect import outlook_of
from rooflinekit.resolve import setup

ASK = {"alpha": 0.7, "context": 1024, "max_k": 7}


def by_name(*drafters, model="llama-3.1-8b", hardware="h100-sxm", **options):
    rows = rk.compare(model, hardware, drafters, **ASK | options)
    return dict(zip(drafters, rows, strict=True))


@pytest.mark.parametrize("host", ["none", "0ms", "1ms", "0ms,1ms", "0ms,0ms,8us", "0ms,0ms,0us,1ms"])
def test_any_host_time_of_the_engine_counts_as_host_time(host):
    """Of a step, a pass, a row or a round; the search of a lookup is its own."""
    given = any(digit in host for digit in "123456789")
    assert all(row.hosted is given for row in by_name("eagle3", "ngram", host=host).values())
    said = str(rk.as_text(rk.compare("llama-3.1-8b", "h100-sxm", ["eagle3"], **ASK, host=host)))
    assert ("device time only" in said) is not given


@pytest.mark.parametrize("calibration", ["datasheet", "auto"])
def test_what_each_way_of_drafting_pays(calibration):
    """EAGLE by the token, DFlash by the block, DSpark a block and a tail, a small model by the token and more."""
    rows = by_name(
        "eagle", "eagle3", "dflash", "dspark", "small-lm:llama-3.2-1b", "ngram", calibration=calibration
    )
    draft = {name: np.array(row.draft_s) + np.array(row.draft_host_s) for name, row in rows.items()}
    k = np.arange(1.0, 8.0)
    for serial in ("eagle", "eagle3", "small-lm:llama-3.2-1b"):
        # Proportional to K: the first pass differs by the cache it fills (and EAGLE-3's fusion) only.
        assert draft[serial] / (k * draft[serial][-1] / 7) == pytest.approx(np.ones(7), abs=0.15)
    assert draft["dflash"].max() < 1.05 * draft["dflash"].min()
    tail = np.diff(draft["dspark"])
    assert tail == pytest.approx(np.full(6, tail.mean()), rel=0.2 if calibration == "datasheet" else 0.6)
    assert 0.0 < tail.mean() < 0.1 * draft["dspark"][0]
    assert rows["small-lm:llama-3.2-1b"].slope_s > 3 * rows["eagle3"].slope_s
    assert np.all(draft["ngram"] < 1e-4)
    assert rows["ngram"].bound == "host"
    assert rows["dflash"].speedup > rows["eagle3"].speedup > rows["small-lm:llama-3.2-1b"].speedup


def test_a_head_as_heavy_as_the_backbone_is_what_a_block_must_not_become():
    """DSpark then pays a whole pass per token, as a serial drafter of five layers would."""
    rows = by_name("dspark", "dspark:heavy", "eagle")
    heavy, light = rows["dspark:heavy"], rows["dspark"]
    assert heavy.serial_passes == "1 + K heavy"
    assert heavy.slope_s > 20 * light.slope_s
    assert heavy.slope_s == pytest.approx(light.draft_s[0], rel=0.2)
    assert heavy.slope_s > rows["eagle"].slope_s
    assert heavy.k < light.k
    assert heavy.speedup < light.speedup


def test_seven_billion_do_not_draft_for_thirteen():
    """EAGLE's paper (2401.15077) prints N/A: c = 7/13 = 0.54, no K of its sweep (2 to 10) gains at the rates reached."""
    ready = setup("llama-2-13b", "a100-80gb-sxm", calibration="datasheet")
    drafter = rk.make_drafter("small-lm:llama-2-7b", ready.target)
    rounds = Case(ready.machine, ready.target, drafter, Constant(0.65)).rounds(
        batch=1.0, context=100.0, k=np.arange(2.0, 11.0)
    )
    assert rounds.draft_cost[0] == pytest.approx(6.607 / 12.85, rel=0.03)
    assert np.all(rounds.speedup < 1.05)
    assert np.all(rounds.speedup[1:] < 1.0)
    row = by_name("small-lm:llama-2-7b", model="llama-2-13b", hardware="a100-80gb-sxm", alpha=0.45)
    assert not row["small-lm:llama-2-7b"].pays


def test_na_is_printed_where_no_k_pays(capsys):
    words = "compare --model llama-2-13b --hardware a100-80gb-sxm --drafters small-lm:llama-2-7b,eagle --alpha 0.4"
    assert run(words.split()) == 0
    text = capsys.readouterr().out
    assert "N/A" in text
    assert text.count("N/A") == 2  # the row and its explanation


def test_orders_are_printed_beside_what_is_told(capsys):
    assert run(["orders", "--calibration", "datasheet"]) == 0
    text = capsys.readouterr().out
    assert "3.3616" in text
    assert "0.15 .. 0.3" in text
    assert "in vLLM" in text


def test_drafters_may_bring_their_own_acceptance():
    """A lookup is not accepted as often as a trained head; equal acceptance would put it on top."""
    rows = rk.compare("llama-3.1-8b", "h100-sxm", ["eagle3", "ngram@0.3", "dflash@0.5"], alpha=0.7)
    assert [row.acceptance for row in rows] == ["alpha 0.7", "alpha 0.3", "alpha 0.5"]
    for row, alpha in zip(rows, (0.7, 0.3, 0.5), strict=True):
        alone = rk.recommend("llama-3.1-8b", "h100-sxm", row.drafter, alpha=alpha)
        assert (row.k, row.speedup) == (alone.k, pytest.approx(alone.speedup))
    named = rk.compare("llama-3.1-8b", "h100-sxm", ["eagle3@eagle3-llama-3.1-8b-mt-bench"])
    assert named[0].k == 3


@pytest.mark.parametrize(("spec", "words"), [("eagle3@1.5", "1.5"), ("eagle3@nothing", "nothing")])
def test_an_own_acceptance_that_is_none_is_refused(spec, words):
    with pytest.raises(rk.RooflineError, match=words):
        rk.compare("llama-3.1-8b", "h100-sxm", [spec])


# --- unlike sequences


def mixed(batch, members=(0.9, 0.3)):
    ready = setup("llama-3.1-8b", "h100-sxm")
    drafter = rk.make_drafter("dspark", ready.target)
    mixture = Mixture((0.5, 0.5), tuple(Constant(one) for one in members))
    case = Case(ready.machine, ready.target, drafter, mixture)
    return outlook_of(case, ready.hardware, Load(float(batch), 512.0))


def test_confidence_helps_where_sequences_differ_and_rows_cost():
    loaded = mixed(256).by_confidence
    assert loaded.gain > 0.05
    assert min(loaded.lengths[:128]) > max(loaded.lengths[128:])
    assert len(loaded.lengths) == 256


def test_confidence_gains_little_at_two_sequences():
    assert mixed(2).by_confidence.gain < 0.03


def test_one_sequence_or_equal_ones_need_no_confidence():
    assert mixed(1).by_confidence is None
    equal = mixed(64, (0.7, 0.7)).by_confidence
    assert equal.gain == pytest.approx(0.0, abs=0.02)


def test_the_table_has_every_point_once():
    table = rk.table(
        "llama-3.1-8b", "h100-sxm", ["eagle3", "dspark"], alpha=0.7, batch=[1, 8], context=[512, 4096]
    )
    assert len(table) == 2 * 2 * (16 + 7)
    assert not table.duplicated(["drafter", "batch", "context", "k"]).any()
    one = rk.recommend("llama-3.1-8b", "h100-sxm", "dspark", alpha=0.7, batch=8, context=512, k=5)
    row = table.query("drafter == 'dspark' and batch == 8 and context == 512 and k == 5").iloc[0]
    assert row.speedup == pytest.approx(one.speedup)
    assert row.verify_s == pytest.approx(one.best.verify_s)


# --- K by batch and context


def test_the_schedule_is_the_recommendation_of_each_cell():
    found = rk.schedule(
        "qwen3-30b-a3b", "h100-sxm", "eagle3", alpha=0.6, batch=[64, 1, 8], context=[512, 8192]
    )
    assert found.batch == (1.0, 8.0, 64.0)
    for i, batch in enumerate(found.batch):
        for j, context in enumerate(found.context):
            one = rk.recommend(
                "qwen3-30b-a3b",
                "h100-sxm",
                "eagle3",
                alpha=0.6,
                batch=batch,
                context=context,
                allow_oversize=True,
            )
            assert found.speedup[i][j] == pytest.approx(one.speedup)
            assert found.k[i][j] == (one.k if one.pays else 0)
    assert len(found.by_context) == len(found.flags) == 2
    assert found.batch_fits[0] > found.batch_fits[1]


def test_the_schedule_is_printed_and_machine_readable(capsys):
    words = "schedule --model llama-3.1-8b --hardware h100-sxm --drafter eagle3 --alpha 0.35 --contexts 512"
    assert run([*words.split(), "--draft-cost", "0.2"]) == 0
    text = capsys.readouterr().out
    assert "off" in text
    assert run([*words.split(), "--json"]) == 0
    assert '"by_context"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [(["--batches", "1,x"], "1,x"), (["--batches", ","], "empty"), (["--batches", "0"], "--batches 0")],
)
def test_a_grid_that_is_none_is_refused(capsys, options, words):
    command = "schedule --model llama-3.1-8b --hardware h100-sxm --drafter eagle3 --alpha 0.5"
    assert run([*command.split(), *options]) == 2
    assert words in capsys.readouterr().err


def test_calls_of_the_package_are_not_hidden_by_its_modules():
    """A module of the same name would take the place of a call once it is imported."""
    for name in rk.__all__:
        if name.startswith("_"):
            continue
        before = getattr(rk, name)
        assert not hasattr(before, "__path__")
    assert rk.outlook("llama-3.1-8b", "h100-sxm", "eagle3", alpha=0.7).limits.k
    assert callable(rk.outlook)
    import importlib.util

    clashing = [name for name in rk.__all__ if importlib.util.find_spec(f"rooflinekit.{name}")]
    assert not clashing


def test_a_table_takes_an_acceptance_for_each_drafter():
    table = rk.table(
        "llama-3.1-8b", "h100-sxm", ["eagle3@0.5", "dspark@0.8"], batch=[1], context=[512], max_k=4
    )
    lengths = table.query("k == 4").set_index("drafter").acceptance_length
    assert lengths["eagle3"] == pytest.approx((1 - 0.5**5) / 0.5)
    assert lengths["dspark"] == pytest.approx((1 - 0.8**5) / 0.2)
