"""Examples that end the help of each command; a test parses all of them and runs those that need no files."""

from __future__ import annotations

EIGHT_B = "--model llama-3.1-8b --hardware h100-sxm"

EXAMPLES: dict[str, tuple[str, ...]] = {
    "predict": (
        f"predict {EIGHT_B}",
        f"predict {EIGHT_B} --batch 16 --width 5 --host vllm",
        "predict --model llama-3.1-70b --hardware h200 --tp 2 --prefill --width 2048 --context 0",
    ),
    "recommend": (
        f"recommend {EIGHT_B} --drafter eagle3 --alpha 0.7 --host vllm --engine vllm",
        f"recommend {EIGHT_B} --drafter eagle3 --acceptance server.log --host vllm --batch 16",
        "recommend --model deepseek-v3 --hardware h200 --tp 8 --drafter mtp --decay 0.85,0.7",
    ),
    "compare": (
        f"compare {EIGHT_B} --drafters eagle3,small-lm:llama-3.2-1b --alpha 0.7 --host vllm",
        f"compare {EIGHT_B} --drafters eagle3@0.7,ngram@0.3",
        "compare --model qwen3-8b --hardware h200 --drafters eagle3@server.log,dflash@dflash-qwen3-8b-mt-bench-t0",
    ),
    "schedule": (
        f"schedule {EIGHT_B} --drafter eagle3 --decay 0.8,0.65 --host vllm --engine vllm",
        f"schedule {EIGHT_B} --drafter eagle3 --alpha 0.7 --batches 1,16,64 --contexts 4096",
    ),
    "tree": (
        f"tree {EIGHT_B} --drafter eagle3 --alpha 0.7 --batch 16",
        f"tree {EIGHT_B} --drafter eagle3 --alpha 0.7 --tree 5,8,32",
        "tree --model llama-2-7b --hardware a100 --drafter medusa --rank-accuracies medusa-vicuna-7b",
    ),
    "orders": ("orders", "orders --model qwen3-32b --hardware h200"),
    "diagnose": (
        "diagnose --plain-tok-s 45 --spec-tok-s 38 --k 5 --acceptance-length 2.1",
        "diagnose --plain-ms 20 --tpot-ms 24 --k 5 --alpha 0.5 --model qwen3-32b --hardware h100 --drafter eagle3",
        "diagnose --from spec.json --plain-from plain.json",
    ),
    "levers": (f"levers {EIGHT_B} --drafter eagle3 --alpha 0.7 --small llama-3.2-1b",),
    "bench": ("bench --out measured.jsonl", "bench --budget normal --out measured.jsonl"),
    "calibrate": ("calibrate measured.jsonl --base auto --out mine.yaml",),
    "validate": ("validate measured.jsonl --calibration mine.yaml", "validate --suite hand-values"),
    "plot": (
        f"plot speedup {EIGHT_B} --drafters eagle3,dflash --alpha 0.8 --out speedup.png",
        f"plot k-map {EIGHT_B} --drafter eagle3 --alpha 0.6 --out k-map.png",
    ),
    "hardware": ("hardware list", "hardware show h100-sxm", "hardware check mine.yaml"),
    "models": ("models list", "models show qwen3-30b-a3b"),
    "drafters": ("drafters list", "drafters show eagle3 --model qwen3-8b"),
    "acceptance": (
        "acceptance list",
        "acceptance show eagle3-qwen3-4b-chat",
        "acceptance show before.prom,after.prom",
        "acceptance fit server.log",
    ),
    "demo": ("demo",),
}
"""Commands as they are typed after ``rooflinekit``, by command."""


def epilog(name: str) -> str:
    """Last part of a command's help: its examples, which are not wrapped."""
    return "\b\nExamples:\n" + "\n".join(f"  rooflinekit {line}" for line in EXAMPLES[name])
