"""Which reader has which file, and what is said of files that none can read."""

import gzip
import json
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rooflinekit.acceptance_options import find_acceptance, make_acceptance
from rooflinekit.errors import AcceptanceError
from rooflinekit.readers.engine_outputs import READERS, detect, is_output, read_output
from rooflinekit.readers.engine_outputs.files import BLOCK, open_output

FILES = Path(__file__).parent / "files"
ROOT = Path(__file__).resolve().parents[3]
EXPECTED = {
    "vllm.prom": "vllm-metrics",
    "vllm_dflash.log": "vllm-log",
    "vllm_2025.log": "vllm-log",
    "vllm_v0.log": "vllm-log",
    "vllm_offline.txt": "vllm-offline",
    "sglang_old.log": "sglang-log",
    "sglang_new.log": "sglang-log",
    "sglang_console.txt": "sglang-serving",
    "llama_eagle3.log": "llama-cpp-log",
    "llama_info.log": "llama-cpp-log",
    "llama_two_drafters.log": "llama-cpp-log",
    "llama_simple.txt": "llama-cpp-log",
    "llama_timings.json": "llama-cpp-timings",
    "golden_mtp.yaml": "inferencex-golden",
    "golden_dspark.yaml": "inferencex-golden",
}


@pytest.mark.parametrize(("name", "reader"), EXPECTED.items())
def test_every_file_finds_its_reader(name, reader):
    assert detect(FILES / name).name == reader


def test_every_file_is_expected():
    assert {path.name for path in FILES.iterdir()} == {*EXPECTED, "README.md"}


def test_readers_have_names_and_stand_in_the_manual():
    names = [one.name for one in READERS]
    manual = (ROOT / "docs" / "engine-outputs.md").read_text(encoding="utf-8")
    assert len(set(names)) == len(names)
    assert not [name for name in names if f"`{name}`" not in manual]
    marks = [mark for one in READERS for mark in one.markers]
    assert len(set(marks)) == len(marks)


@pytest.mark.parametrize("name", ["vllm_dflash.log", "vllm.prom", "llama_eagle3.log", "sglang_old.log"])
def test_windows_ends_colours_and_marks_do_not_matter(tmp_path, name):
    """CRLF, a byte order mark, and a colour around each line."""
    text = (FILES / name).read_text(encoding="utf-8")
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_output(path).rounds == read_output(FILES / name).rounds
    if name.endswith("log"):
        path.write_text("".join(f"\x1b[32m{line}\x1b[0m\n" for line in text.splitlines()), encoding="utf-8")
        assert read_output(path).acceptance_length == read_output(FILES / name).acceptance_length


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b"hello\n", "no engine output that is recognised; read are metrics, logs"),
        (b'{"x": 1}', "no engine output that is recognised"),
        (b'{"x": 1, "spec_decode_num_drafts": [3,', "cut off or damaged: no JSON at line 1"),
        (b'{\n"mean_tpot_ms": 3\n"y"}', "no JSON at line 3"),
        (b"\xff\xfe" + "SpecDecoding metrics".encode("utf-16-le"), "is UTF-16 text"),
        (gzip.compress(b"SpecDecoding metrics: ", mtime=0), "is compressed"),
        (b"PK\x03\x04...", "zip archive"),
        (b"[" * 5000 + b"{", "no engine output"),
        (b'{"a":' * 100_000, "cannot be read as JSON"),
        (b"\x00\x01\x02" * 1000, "no engine output"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(tmp_path, content, words):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(AcceptanceError) as caught:
        read_output(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_folders_and_mixed_kinds(tmp_path):
    for name in (tmp_path / "missing.prom", tmp_path):
        with pytest.raises(AcceptanceError, match="cannot be read"):
            read_output(name)
    with pytest.raises(AcceptanceError, match="vllm-metrics and vllm-log do not belong together"):
        read_output(f"{FILES / 'vllm.prom'},{FILES / 'vllm_dflash.log'}")
    with pytest.raises(AcceptanceError, match="3 scrapes"):
        read_output(",".join([str(FILES / "vllm.prom")] * 3))


@given(name=st.sampled_from(sorted(EXPECTED)), share=st.floats(0.0, 1.0), k=st.sampled_from([None, 1, 7]))
def test_a_file_cut_anywhere_is_read_or_refused_in_one_sentence(tmp_path_factory, name, share, k):
    data = (FILES / name).read_bytes()
    path = tmp_path_factory.mktemp("cut") / name
    path.write_bytes(data[: int(share * len(data))])
    try:
        found = read_output(path, k)
    except AcceptanceError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert str(path) in str(error)  # noqa: PT017
        return
    if found.acceptance is not None:
        assert 1.0 <= found.acceptance_length <= found.k + 1.0


@given(
    name=st.sampled_from(sorted(EXPECTED)), place=st.floats(0.0, 1.0), byte=st.binary(min_size=1, max_size=3)
)
def test_a_damaged_byte_never_raises_anything_else(tmp_path_factory, name, place, byte):
    data = bytearray((FILES / name).read_bytes())
    at = int(place * (len(data) - 1))
    data[at : at + len(byte)] = byte
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(bytes(data))
    try:
        read_output(path)
    except AcceptanceError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", {"acceptance_histogram": [1, 1], "num_spec_steps": 2, "num_accepted_draft_tokens": 1, "num_draft_tokens": 2, "num_spec_tokens": 10**12}),
        ("a.json", {"spec_verify_ct": 1, "spec_num_correct_drafts": 1, "spec_num_proposed_drafts": 10**12, "spec_correct_drafts_histogram": [0, 1]}),
        ("a.json", {"spec_verify_ct": 1, "spec_num_correct_drafts": 1, "spec_num_proposed_drafts": 10**12}),
        ("a.json", {"predicted_n": 10, "predicted_ms": 9, "draft_n": 10**12, "draft_n_accepted": 1}),
        ("a.jsonl", {"steps": 10**12, "topk": 1, "acc_length": 2.0, "step_time": 1.0, "batch_size": 1, "num_draft_tokens": 1}),
        ("a.yaml", {"m": {"on": {10**12: 1.5}}}),
        ("a.prom", "vllm:spec_decode_num_drafts_total 1\nvllm:spec_decode_num_draft_tokens_total 1e12\nvllm:spec_decode_num_accepted_tokens_total 1\n"),
        ("a.log", "SpecDecoding metrics: Mean acceptance length: 1.2.3, Accepted: 9 tokens, Drafted: 999999999999999999999 tokens, Per-position acceptance rate: 0.9.9.9"),
        ("a.log", "[x] Decode batch. #running-req: 1, accept len: 2..0, accept rate: 1e999, gen throughput (token/s): ...\n"),
        ("a.log", "draft acceptance = 1 (  9 accepted / 9 generated), mean len = 1.0000000000000000000000000000001\n"),
    ],
)  # fmt: skip
def test_absurd_numbers_are_refused_before_anything_is_built(tmp_path, name, content):
    path = tmp_path / name
    text = (
        content
        if isinstance(content, str)
        else yaml.safe_dump(content)
        if name.endswith("yaml")
        else json.dumps(content)
    )
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AcceptanceError) as caught:
        read_output(path)
    assert "\n" not in str(caught.value)


def test_a_large_log_is_read_in_pieces(tmp_path):
    """100 MB of other lines around the three of interest: no more than a few blocks are held, nothing is lost."""
    lines = (FILES / "vllm_dflash.log").read_bytes().splitlines(keepends=True)
    noise = b'INFO "POST /v1/completions HTTP/1.1" 200 OK\n' * 40_000
    path = tmp_path / "large.log"
    with path.open("wb") as stream:
        for line in lines:
            for _ in range(15):
                stream.write(noise)
            stream.write(line)
    assert path.stat().st_size > 90e6
    start = time.process_time()
    found = read_output(path)
    assert found.rounds == 876
    assert (
        time.process_time() - start < 30
    )  # a limit against reading it line by line many times, not a benchmark
    assert read_output(path) is found


def test_a_line_across_two_blocks_stays_whole(tmp_path):
    """A line that begins before the end of a block and ends behind it."""
    line = (FILES / "vllm_2025.log").read_bytes()
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * (BLOCK - 100) + b"\n" + line + b"y" * 50 + b"\n" + line)
    assert read_output(path).rounds == 118
    assert len(list(open_output(path).lines(b"SpecDecoding"))) == 2


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "a.log"
    text = (FILES / "vllm_2025.log").read_text()
    path.write_text(text)
    assert read_output(path).rounds == 59
    path.write_text(text * 2)
    assert read_output(path).rounds == 118


# --- as acceptance


def test_our_own_files_stay_our_own(tmp_path):
    """A description that an engine's reader might also like is ours."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"survival": [0.8, 0.5], "rounds": 10}), encoding="utf-8")
    assert not is_output(path)
    assert find_acceptance(str(path)).counts == (2, 3, 5)


@pytest.mark.parametrize(
    "name", [name for name in EXPECTED if name not in ("vllm_v0.log", "golden_mtp.yaml")]
)
def test_acceptance_takes_every_file(name):
    k = 4 if name == "sglang_console.txt" else None
    found = make_acceptance(acceptance=FILES / name, measured_k=k)
    assert found.label.startswith(("vLLM, ", "SGLang, ", "llama.cpp, ", "golden curve of "))
    assert name in found.label
    assert str(FILES) not in found.label


def test_acceptance_takes_two_scrapes_and_parts(tmp_path):
    one = FILES / "vllm.prom"
    two = tmp_path / "b.prom"
    two.write_text(
        one.read_text()
        .replace("105.0", "205.0")
        .replace("630.0", "1230.0")
        .replace(" 84.0", " 184.0")
        .replace("149.0", "249.0")
    )
    assert find_acceptance(f"{one},{two}").counts == (0, 100, 0, 0, 0, 0, 0)
    assert find_acceptance(f"{FILES / 'golden_mtp.yaml'}#thinking_off").max_k == 3


def test_k_fills_in_what_a_file_of_our_own_leaves_out(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"acceptance_length": 2.5}', encoding="utf-8")
    assert float(find_acceptance(str(path), 3).expected(3)) == pytest.approx(2.5)
    path.write_text('{"acceptance_length": 2.5, "measured_k": 4}', encoding="utf-8")
    with pytest.raises(AcceptanceError, match="keep one"):
        find_acceptance(str(path), 3)


def test_a_plain_run_is_no_acceptance(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"timings": {"predicted_n": 100, "predicted_ms": 5000.0}}', encoding="utf-8")
    with pytest.raises(AcceptanceError, match="without speculation"):
        find_acceptance(str(path))


def test_a_broken_file_says_where(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"survival": [0.8,,]}', encoding="utf-8")
    with pytest.raises(AcceptanceError, match=r"line 1 column 19.*nor an engine's output"):
        find_acceptance(str(path))
