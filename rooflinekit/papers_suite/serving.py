"""Sources that judge times in an engine: device time and the host time of vLLM; the plain guess leaves the host out.

vLLM's host time stands in for SGLang's, which nobody has split into terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rooflinekit.drafters import BUILDERS, Drafter, dflash
from rooflinekit.forms import Floats
from rooflinekit.hosts import VLLM, Host, with_host
from rooflinekit.load import Load
from rooflinekit.papers_suite import devices
from rooflinekit.papers_suite.devices import B200, CONTEXT, H100, both, chain_round, drafter_of, target_of
from rooflinekit.papers_suite.source import Row, read
from rooflinekit.speculation import round_of
from rooflinekit.target import Target
from rooflinekit.work import Machine

CONTEXTS = {"GSM8K": 350.0, "ShareGPT": 700.0, "CNN/DailyMail": 1200.0, "InstructCoder": 700.0}
"""Tokens in the cache by data set of the vLLM study: prompt and half of the answer, our estimate."""
USUAL_CONTEXT = 700.0
"""Their middle, where the data set is not stated."""
BATCHES = (1, 16, 64, 128)
USUAL_LENGTH = 2.5
"""Tokens a round of K = 3 emits; only the drafter's first pass depends on it, and little."""
FITTED_ROW = ("llama-3.1-8b", "eagle3", "1")
"""Target, draft and batch of the shares that ``pass_s`` was read from."""


def hosted(device: str, stack: str, host: Host = VLLM) -> tuple[Machine, Machine]:
    """A calibrated device under an engine, and alone."""
    alone, _ = both(device, stack)
    return with_host(alone, host), alone


def eagle_tokens(draft: str) -> list[Row]:
    """Milliseconds per token against K, acceptance as reported for the same run."""
    machines = hosted(H100, "vllm")
    target = target_of("llama-3.1-8b")
    drafter = drafter_of(draft, target)
    found = []
    for row in read("vllm_eagle_k.csv"):
        if row["draft"] != draft:
            continue
        length, k = float(row["acceptance_length"]), int(row["k"])
        ours, plain = (
            1e3
            * float(chain_round(on, target, drafter, length, k, batch=1.0, context=USUAL_CONTEXT).round_s)
            / length
            for on in machines
        )
        found.append(Row(f"{draft}, K {k}", ours, float(row["token_ms"]), plain))
    return found


def eagle_plain() -> list[Row]:
    """Milliseconds of the plain step that those runs compete with."""
    row = read("vllm_eagle_k.csv")[0]
    ours, plain = (
        1e3 * _plain_s(on, target_of("llama-3.1-8b"), 1.0, USUAL_CONTEXT) for on in hosted(H100, "vllm")
    )
    return [Row("plain step, ms", ours, float(row["plain_ms"]), plain)]


def _plain_s(on: Machine, target: Target, batch: float, context: float) -> float:
    device_s = float(target.step_s(on, batch, context, 1.0))
    return float(device_s + on.host_s(batch))


def dflash_plain() -> list[Row]:
    """Tokens per second without speculation on B200, by concurrency."""
    machines = hosted(B200, "sglang")
    found = []
    for row in read("dflash_plain.csv"):
        target, batch = target_of(row["model"]), float(row["batch"])
        ours, plain = (batch / _plain_s(on, target, batch, CONTEXT) for on in machines)
        case = f"{row['table']}, {row['model']}, {row['task']}, batch {row['batch']}"
        found.append(Row(case, ours, float(row["tokens_per_s"]), plain))
    return found


def dflash_batch() -> list[Row]:
    """Speedup of DFlash against concurrency, acceptance as printed."""
    machines = hosted(B200, "sglang")
    found = []
    for row in read("dflash_batch.csv"):
        target, k = target_of(row["model"]), int(row["k"])
        drafter = replace(
            dflash.for_target(target.llm, target.precision),
            llm=dflash.backbone_llm(target.llm, int(row["layers"])),
        )
        length, batch = float(row["acceptance_length"]), float(row["batch"])
        ours, plain = (
            float(chain_round(on, target, drafter, length, k, batch=batch, context=CONTEXT).speedup)
            for on in machines
        )
        case = f"{row['table']}, {row['model']}, {row['task']}, batch {row['batch']}"
        found.append(Row(case, ours, float(row["speedup"]), plain))
    return found


def specbundle_costs() -> list[Row]:
    """Round cost of EAGLE-3 chains in SGLang."""
    return devices.specbundle_costs(hosted(H100, "sglang"))


def growth(on: Machine, target: Target, drafter: Drafter, k: int, batches: Floats, context: float) -> Floats:
    """Round cost against batch, over that of the first batch."""
    load = Load(batches, context)
    costs = np.asarray(round_of(on, target, drafter, load, USUAL_LENGTH, k=float(k)).round_cost)
    grown: Floats = costs / costs[0]
    return grown


def _grown(row: dict[str, str], machines: Sequence[Machine]) -> tuple[Floats, Floats]:
    """Growth over :data:`BATCHES` of a row of the vLLM study, with host and without."""
    target, batches = target_of(row["model"], tp=int(row["tp"])), np.array(BATCHES, dtype=float)
    drafter, context = drafter_of(row["draft"], target), CONTEXTS[row["dataset"]]
    ours, plain = (growth(on, target, drafter, int(row["k"]), batches, context) for on in machines)
    return ours, plain


def grown_rows(case: str, row: dict[str, str], ours: Floats, plain: Floats) -> list[Row]:
    """Growth beside the measured one, which is the fall of the speedup: acceptance does not depend on batch."""
    speedups = [float(row[f"speedup_{batch}"]) for batch in BATCHES]
    return [
        Row(f"{case}, batch {batch}", float(ours[i]), speedups[0] / speedups[i], float(plain[i]))
        for i, batch in list(enumerate(BATCHES))[1:]
    ]


def sign_rows(case: str, row: dict[str, str], ours: Floats, plain: Floats) -> list[Row]:
    """Speedup by batch, from that at batch 1 and the growth."""
    first = float(row["speedup_1"])
    return [
        Row(
            f"{case}, batch {batch}",
            first / float(ours[i]),
            float(row[f"speedup_{batch}"]),
            first / float(plain[i]),
        )
        for i, batch in list(enumerate(BATCHES))[1:]
    ]


def vllm_growth(model: str, host: Host = VLLM) -> list[Row]:
    """rho(B) / rho(1) of EAGLE and EAGLE-3 in vLLM, K = 3."""
    machines = hosted(H100, "vllm", host)
    found = []
    for row in read("vllm_batch.csv"):
        if row["model"] == model and row["draft"] in BUILDERS:
            ours, plain = _grown(row, machines)
            found += grown_rows(f"{model}, {row['draft']}, {row['dataset']}", row, ours, plain)
    return found


def vllm_signs() -> list[Row]:
    """Speedup at batch 16, 64, 128 from that at batch 1 and the predicted growth."""
    machines = hosted(H100, "vllm")
    found = []
    for row in read("vllm_batch.csv"):
        ours, plain = _grown(row, machines)
        found += sign_rows(f"{row['model']}, {row['draft']}, {row['dataset']}", row, ours, plain)
    return found


def vllm_ngram() -> list[Row]:
    """The same for prompt lookup, as if every request found a proposal in every round."""
    machines = hosted(H100, "vllm")
    found = []
    for row in read("vllm_ngram.csv"):
        ours, plain = _grown(row | {"draft": "ngram"}, machines)
        found += sign_rows(f"{row['model']}, n-gram of {row['k']}, {row['dataset']}", row, ours, plain)
    return found


def vllm_shares(*, alone: bool) -> list[Row]:
    """Drafting over verify, at batch 1 (``alone``) or above; without the bar that a constant was read from."""
    machines = hosted(H100, "vllm")
    found = []
    for row in read("vllm_shares.csv"):
        if (row["batch"] == "1") != alone or (row["model"], row["draft"], row["batch"]) == FITTED_ROW:
            continue
        target, load = target_of(row["model"], tp=int(row["tp"])), Load(float(row["batch"]), USUAL_CONTEXT)
        drafter, k = drafter_of(row["draft"], target), float(row["k"])
        rounds = [round_of(on, target, drafter, load, USUAL_LENGTH, k=k) for on in machines]
        ours, plain = (float((one.draft_s + one.draft_host_s) / one.verify_s) for one in rounds)
        measured = float(row["draft_percent"]) / float(row["verify_percent"])
        found.append(Row(f"{row['model']}, {row['draft']}, batch {row['batch']}", ours, measured, plain))
    return found


def sglang_chain(draft: str) -> list[Row]:
    """EAGLE or EAGLE-3, chain of 3 in SGLang: speedup against batch from that at batch 2."""
    target = target_of("llama-3.1-8b")
    rows = [row for row in read("eagle3_sglang.csv") if row["draft"] == draft]
    batches: Floats = np.array([float(row["batch"]) for row in rows])
    drafter, k = drafter_of(draft, target), int(rows[0]["k"])
    ours, plain = (growth(on, target, drafter, k, batches, CONTEXT) for on in hosted(H100, "sglang"))
    first = float(rows[0]["speedup"])
    return [
        Row(f"{draft}, batch {row['batch']}", first / float(a), float(row["speedup"]), first / float(b))
        for row, a, b in list(zip(rows, ours, plain, strict=True))[1:]
    ]
