from __future__ import annotations

import math

import pytest

from rooflinekit.errors import ProfileError
from rooflinekit.profiles.document import MAX_BYTES, parse_document, read_document, require_schema
from rooflinekit.profiles.quantity import Quantity, cited

BANDWIDTH = Quantity("B/s", 1e9, 1e15, "3.35 TB/s")


def problems_of(root):
    with pytest.raises(ProfileError) as caught:
        root.problems.finish()
    return str(caught.value).splitlines()


def test_nodes_know_path_and_line():
    root = parse_document("a: 1\nb:\n  c: [x, y]\n  d:\n    e: z\n", "f.yaml")
    b = root.entries()["b"]
    assert (b.path, b.line) == ("b", 2)
    assert [(n.path, n.line, n.text()) for n in b.entries()["c"].items()] == [
        ("b.c[0]", 3, "x"),
        ("b.c[1]", 3, "y"),
    ]
    d = b.entries()["d"]
    assert (d.path, d.line, d.entries()["e"].line) == ("b.d", 4, 5)
    root.problems.finish()


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "is empty"),
        ("# only a comment\n", 1, "is empty"),
        ("---\n", 1, "is empty"),
        ("- a\n- b\n", 1, "is not a mapping"),
        ("just text\n", 1, "is not a mapping"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: 1\n\tb: 2\n", 2, "tab"),
        ("a: [1, 2\nb: 3\n", 2, "is not YAML"),
        ("a: 'x\n", 2, "is not YAML"),
        ("a: b: c\n", 1, "is not YAML"),
        ("a: \x00\n", 1, "is not YAML"),
        ("a: " + "[" * 300 + "]" * 300 + "\n", 1, "nested too deeply"),
        ("a: " + "[" * 100_000, 1, "nest"),
    ],
)
def test_unusable_documents_say_so_in_one_line(text, line, says):
    with pytest.raises(ProfileError) as caught:
        parse_document(text, "f.yaml").problems.finish()
    assert str(caught.value).startswith(f"f.yaml:{line}: ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", "f.yaml:3: a: is written twice (first in line 1); keep one"),
        ("a: {b: 1,\n b: 2}\n", "f.yaml:2: a.b: is written twice (first in line 1); keep one"),
        ("a: &x 1\n", "f.yaml:1: a: has an anchor (&x); remove it"),
        ("a: !!str 1\n", "f.yaml:1: a: has a tag ('tag:yaml.org,2002:str'); remove it"),
        ("a: 1\n? [b, c]\n: 2\n", "f.yaml:2: has a field name that is not plain text; write 'field: value'"),
    ],
)
def test_yaml_features_that_hide_mistakes_are_refused(text, expected):
    assert problems_of(parse_document(text, "f.yaml")) == [expected]


def test_aliases_are_refused_and_stand_in_silently():
    root = parse_document("a: &x {v: 1}\nb: *x\n", "f.yaml")
    assert root.entries()["b"].text() == ""
    assert problems_of(root) == [
        "f.yaml:1: a: has an anchor (&x); remove it",
        "f.yaml:2: b: is an alias (*x); write the value out",
    ]


def test_the_first_of_two_equal_fields_is_kept_and_nested_values_stay_apart():
    root = parse_document("a: {x: 1}\na: {x: 2, y: 3}\nb: 4\n", "f.yaml")
    assert root.entries()["a"].entries()["x"].scalar() == "1"
    assert list(root.entries()) == ["a", "b"]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("2024-01-01", "a date"),
        ("4090", "a number"),
        ("1e+3", None),
        ("1.5", "a number"),
        ("yes", "true or false"),
        ("[a]", "is a list; write text"),
        ("{b: c}", "is a mapping; write text"),
        ("", "is empty"),
        ("'  '", "is empty"),
        ("'2024-01-01'", None),
        ("plain words", None),
    ],
)
def test_text_wants_text(written, says):
    root = parse_document(f"a: {written}\n", "f.yaml")
    text = root.entries()["a"].text()
    if says is None:
        root.problems.finish()
        assert text == written.strip("'")
    else:
        assert text == ""
        (problem,) = problems_of(root)
        assert problem.startswith("f.yaml:1: a: ")
        assert says in problem


def test_unknown_and_missing_fields():
    root = parse_document("bandwith: 1\nname: x\n", "f.yaml")
    fields = root.mapping(required=("name", "bandwidth"), optional=("notes",))
    assert sorted(fields) == ["bandwidth", "name"]
    assert math.isnan(BANDWIDTH.read(fields["bandwidth"]))
    assert fields["bandwidth"].mapping(required=("x",))["x"].text() == ""
    assert problems_of(root) == [
        "f.yaml:1: bandwith: is not a field here; did you mean bandwidth?",
        "f.yaml:1: bandwidth: is missing; add it",
    ]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("3.35e12", "'3.35e12' has no unit; write it like '3.35 TB/s'"),
        ("3350000000000", "has no unit"),
        ("3.35 TFLOP/s", "is not in B/s"),
        ("3.35 tb/s", "is not in B/s"),
        ("-3.35 TB/s", "is not within 1 GB/s to 1 PB/s"),
        ("0 B/s", "is not within 1 GB/s to 1 PB/s"),
        ("1e400 B/s", "is too large for a number"),
        ("nan", "is not a number"),
        (".inf", "is not a number"),
        ("true", "is not a number"),
        ("2024-01-01", "is not in B/s"),
        ("", "is empty"),
        ("1e" + "9" * 5000 + " B/s", "is too long for a number"),
        ("[3.35 TB/s]", "is a list; write a single value"),
    ],
)
def test_numbers_want_a_unit_and_sane_size(written, says):
    root = parse_document(f"v: {written}\n", "f.yaml")
    assert math.isnan(BANDWIDTH.read(root.entries()["v"]))
    (problem,) = problems_of(root)
    assert says in problem


@pytest.mark.parametrize("written", ["3.35 TB/s", "'3.35 TB/s'", "3350 GB/s", "3.35e3 GB/s", "3_350 GB/s"])
def test_numbers_are_read_in_si(written):
    root = parse_document(f"v: {written}\n", "f.yaml")
    assert BANDWIDTH.read(root.entries()["v"]) == 3.35e12
    root.problems.finish()


@pytest.mark.parametrize(("written", "ok"), [("132", True), ("132.0", True), ("132.5", False), ("0", False)])
def test_counts_are_whole(written, ok):
    root = parse_document(f"v: {written}\n", "f.yaml")
    value = Quantity("", 1.0, 1e6, "132", whole=True).read(root.entries()["v"])
    assert value == 132 if ok else math.isnan(value)
    assert bool(root.problems.found) is not ok


def test_a_cited_number_needs_all_three_parts():
    root = parse_document(
        "u: 3.35e12\nv: 3.35 TB/s\nw: {value: 3.35 TB/s, kind: guessed}\nx: {value: 1 TB/s, kind: measured, ref: ''}",
        "f.yaml",
    )
    for node in root.entries().values():
        assert cited(node, BANDWIDTH).ref == ""
    assert problems_of(root) == [
        "f.yaml:1: u: '3.35e12' has no unit and has no origin; write it like {value: 3.35 TB/s, kind: datasheet, ref: \"document and page\"}",
        "f.yaml:2: v: '3.35 TB/s' has no origin; write it like {value: 3.35 TB/s, kind: datasheet, ref: \"document and page\"}",
        "f.yaml:3: w.ref: is missing; add it",
        "f.yaml:3: w.kind: 'guessed' is not a kind of evidence; use assumed, datasheet, fitted or measured",
        "f.yaml:4: x.ref: is empty; write some text",
    ]


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("2", "upgrade rooflinekit"),
        ("0", "write 'schema: 1'"),
        ("one", "write 'schema: 1'"),
        ("1.0", "schema: 1"),
    ],
)
def test_another_schema_says_what_to_do(version, says):
    with pytest.raises(ProfileError, match=says):
        require_schema(parse_document(f"schema: {version}\nnonsense: 1\n", "f.yaml"), 1)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    (tmp_path / "large.yaml").write_bytes(b"#" * (MAX_BYTES + 1))
    with pytest.raises(ProfileError, match=r"latin\.yaml:2: is not UTF-8"):
        read_document(tmp_path / "latin.yaml")
    with pytest.raises(ProfileError, match="larger than 4 MB"):
        read_document(tmp_path / "large.yaml")
    with pytest.raises(ProfileError, match="is a folder"):
        read_document(tmp_path)
    with pytest.raises(ProfileError, match="does not exist"):
        read_document(tmp_path / "absent.yaml")
    with pytest.raises(ProfileError, match="not a file"):
        read_document("/dev/null")
    with pytest.raises(ProfileError):
        read_document("x" * 5000 + ".yaml")
    with pytest.raises(ProfileError):
        read_document("nul\0.yaml")


def test_windows_files_are_read(tmp_path):
    (tmp_path / "w.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert list(read_document(tmp_path / "w.yaml").entries()) == ["a", "b"]


def test_very_many_problems_are_cut():
    root = parse_document("".join(f"f{i}: 1\n" for i in range(100)), "f.yaml")
    root.mapping(required=())
    found = problems_of(root)
    assert len(found) == 41
    assert found[-1] == "f.yaml: and 60 more problems"
