"""Hypothesis strategies for the things the physics is made of: machines, works, models, loads, drafters."""

import math

from hypothesis import strategies as st

from rooflinekit import drafters
from rooflinekit.drafters.small_lm import SmallLm
from rooflinekit.llm import Attention, Block, Llm, Mla, Mlp, Moe
from rooflinekit.precision import FORMATS, precision
from rooflinekit.transformer import Load
from rooflinekit.work import Ceiling, Machine, Staircase, Work

DTYPES = ("bf16", "fp16", "fp32", "fp8", "int8", "fp4")
KINDS = ("linear", "attention", "experts", "elementwise", "collective")


def log_floats(low, high):
    """Positive floats, even on a logarithmic scale."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


@st.composite
def staircases(draw):
    """Rising row counts with any positive costs; some of them start a new regime."""
    rows = sorted(draw(st.sets(st.integers(1, 300), min_size=1, max_size=8)))
    reads = draw(st.lists(log_floats(0.5, 20), min_size=len(rows), max_size=len(rows)))
    breaks = draw(st.sets(st.sampled_from(rows[1:]))) if len(rows) > 1 else set()
    return Staircase(tuple(map(float, rows)), tuple(reads), tuple(map(float, sorted(breaks))))


@st.composite
def ceilings(draw, *, stairs=True):
    """Ceilings of every form."""
    return Ceiling(
        t0_s=draw(st.sampled_from([0.0, 2e-6, 1e-4])),
        memory_efficiency=draw(st.floats(0.05, 1.0)),
        compute_efficiency=draw(st.floats(0.05, 1.3)),
        p=draw(st.one_of(st.just(math.inf), st.floats(1.0, 16.0))),
        tile=draw(st.sampled_from([1.0, 8.0, 16.0, 128.0])),
        rows_per_pass=draw(st.sampled_from([math.inf, 1.0, 4.0, 64.0])),
        staircase=draw(st.one_of(st.none(), staircases())) if stairs else None,
    )


@st.composite
def machines(draw, *, plain=False, host=False, stairs=True):
    """Machines from a small board to a large accelerator; ``plain`` ones are pure rooflines."""
    found = {} if plain else {(kind, "*"): draw(ceilings(stairs=stairs)) for kind in KINDS}
    peak = draw(log_floats(1e11, 5e15))
    return Machine(
        name="drawn",
        bandwidth_bytes_per_s=draw(log_floats(1e10, 1e13)),
        peak_flop_per_s=dict.fromkeys(DTYPES, peak),
        link_bytes_per_s=draw(log_floats(1e9, 1e12)),
        ceilings=found,
        step_host_s=draw(st.sampled_from([0.0, 1e-4, 2e-3])) if host else 0.0,
        token_host_s=draw(st.sampled_from([0.0, 1e-6, 5e-5])) if host else 0.0,
    )


@st.composite
def works(draw, kinds=KINDS):
    """One work of any kind."""
    amount = log_floats(1.0, 1e12)
    return Work(
        "drawn",
        draw(st.sampled_from(kinds)),
        draw(st.sampled_from(DTYPES)),
        rows=draw(st.floats(1.0, 4096.0)),
        flops=draw(st.one_of(st.just(0.0), amount)),
        weight_bytes=draw(st.one_of(st.just(0.0), amount)),
        kv_bytes=draw(st.one_of(st.just(0.0), amount)),
        activation_bytes=draw(amount),
        kernels=draw(st.floats(1.0, 200.0)),
    )


@st.composite
def attentions(draw, *, windowed=True):
    """Multi-head, grouped-query and multi-query attention, with and without a window."""
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    window = draw(st.one_of(st.none(), st.integers(1, 5000))) if windowed else None
    group = draw(st.sampled_from([1, 2, 4, 8]))
    return Attention(
        heads=kv_heads * group, kv_heads=kv_heads, head_dim=draw(st.sampled_from([64, 128])), window=window
    )


@st.composite
def mlas(draw):
    """Latent attention, with and without a low-rank query."""
    return Mla(
        heads=draw(st.sampled_from([16, 32, 128])),
        q_lora_rank=draw(st.sampled_from([None, 768, 1536])),
        kv_lora_rank=draw(st.sampled_from([256, 512])),
        nope_dim=128,
        rope_dim=64,
        value_dim=draw(st.sampled_from([128, 192])),
    )


@st.composite
def moes(draw):
    """Mixtures of experts, with and without shared experts."""
    experts = draw(st.sampled_from([4, 8, 64, 128, 256]))
    return Moe(
        experts=experts,
        top_k=draw(st.integers(1, min(8, experts))),
        intermediate=draw(st.sampled_from([512, 768, 1408])),
        shared_intermediate=draw(st.sampled_from([0, 1024, 2048])),
        gated=draw(st.booleans()),
    )


@st.composite
def llms(draw, *, moe=True, mla=True, windowed=True):
    """Models of one or two groups of layers: dense, mixtures, latent attention."""
    kinds = [attentions(windowed=windowed)] + ([mlas()] if mla else [])
    mlps = st.builds(Mlp, intermediate=st.sampled_from([2048, 4096, 14336]), gated=st.booleans())
    ffns = [mlps] + ([moes()] if moe else [])
    blocks = tuple(
        Block(draw(st.integers(1, 40)), draw(st.one_of(kinds)), draw(st.one_of(ffns)))
        for _ in range(draw(st.integers(1, 2)))
    )
    return Llm(
        name="drawn",
        hidden=draw(st.sampled_from([1024, 2048, 4096])),
        vocab=draw(st.sampled_from([32_000, 128_256])),
        blocks=blocks,
        tied=draw(st.booleans()),
    )


@st.composite
def loads(draw, *, prefill=True):
    """What runs through a pass: whole counts."""
    return Load(
        batch=float(draw(st.integers(1, 128))),
        context=float(draw(st.integers(0, 100_000))),
        width=float(draw(st.integers(1, 64))),
        prefill=draw(st.booleans()) if prefill else False,
        routing_overlap=draw(st.floats(0.0, 1.0)),
    )


precisions = st.sampled_from(FORMATS).map(precision)


@st.composite
def drafters_for(draw, target):
    """Any drafter for a target: each built by name, and a small model."""
    known = drafters.BUILDERS | drafters.WEIGHTLESS
    name = draw(st.sampled_from([*known, "small-lm"]))
    numbers = precision("bf16")
    return SmallLm(small_llm(), numbers) if name == "small-lm" else known[name](target, numbers)


def small_llm():
    """A dense model of one billion parameters or so, as independent drafter."""
    block = Block(16, Attention(heads=32, kv_heads=8, head_dim=64), Mlp(intermediate=8192))
    return Llm(name="small", hidden=2048, vocab=128_256, blocks=(block,), tied=True)
