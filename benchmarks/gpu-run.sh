#!/bin/sh
# Measure this machine's GPU, calibrate, validate, answer: `sh benchmarks/gpu-run.sh OUT_FOLDER`.
# Runs from the checkout without an installation; see docs/gpu-run.md.
set -u
OUT=${1:?"give a folder for the results"}
ROOT=$(cd "$(dirname "$0")/.." && pwd)
PYTHON=${PYTHON:-python3}
mkdir -p "$OUT"
PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 \
  "$PYTHON" -m rooflinekit demo --device "${DEVICE:-cuda}" --budget "${BUDGET:-quick}" --out "$OUT" 2>&1 | tee "$OUT/log.txt"
test -s "$OUT/measurements.jsonl"
