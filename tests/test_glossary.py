"""One name for each quantity: public names stand in the glossary, and ambiguous ones are not used."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rooflinekit
from rooflinekit import acceptance, recommendation, speculation, work
from rooflinekit.acceptance import fits, profiles, table
from rooflinekit.drafters.base import Drafter
from rooflinekit.transformer import Load

ROOT = Path(__file__).resolve().parent.parent
GLOSSARY = ROOT / "docs" / "glossary.md"

ORDINARY = {
    # English words whose meaning is the same here as everywhere, and which carry no unit.
    "name", "label", "title", "notes", "source", "values", "count", "seed",
    # The object itself, named by its class.
    "machine", "target", "precision", "drafter", "drafters", "acceptance", "works",
}  # fmt: skip
"""Public names that need no row."""

AMBIGUOUS = {
    "tau": "a time in Leviathan et al., a token count in EAGLE and DFlash: say acceptance_length, draft_step_s",
    "gamma": "the name here is k",
    "flops_per_s": "flops is a count; the rate is flop_per_s",
    "flops_per_second": "the rate is flop_per_s",
    "FLOPS": "a count or a rate? flops or flop_per_s",
    "tflops": "SI units inside: flop_per_s",
    "gbps": "bits or bytes? bytes_per_s",
    "latency_ms": "SI units inside: ..._s",
    "time_ms": "SI units inside: ..._s",
    "bandwidth_gbps": "SI units inside: bandwidth_bytes_per_s",
    "num_speculative_tokens": "the name here is k",
    "accept_length": "the name here is acceptance_length, bonus token included",
}
"""Names that mislead, and what to write instead."""


def glossary_names() -> set[str]:
    """Names in code, from the second column of the glossary's tables."""
    names: set[str] = set()
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5:
            names.update(re.findall(r"`([A-Za-z_]\w*)(?:\(\))?`", cells[1]))
    return names


def parameters(function: object) -> Iterator[str]:
    """Names of a callable's parameters, without self and catch-alls."""
    for name, parameter in inspect.signature(function).parameters.items():  # type: ignore[arg-type]
        if name != "self" and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            yield name


def members(cls: type) -> Iterator[str]:
    """Names a class shows: fields, properties, and the parameters of its public methods."""
    if dataclasses.is_dataclass(cls):
        yield from (field.name for field in dataclasses.fields(cls))
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield name
        elif inspect.isfunction(value):
            yield from parameters(value)


def classes(module: object) -> Iterator[type]:
    """Public classes defined in a module."""
    for name, value in vars(module).items():
        if inspect.isclass(value) and value.__module__ == module.__name__ and not name.startswith("_"):  # type: ignore[attr-defined]
            yield value


def result_classes() -> set[type]:
    """What the public functions return, and the rows inside it."""
    prediction = inspect.getmodule(type(rooflinekit.predict("llama-3.2-1b", "h100-sxm")))
    found = {cls for module in (prediction, recommendation) for cls in classes(module)}
    answer = rooflinekit.recommend("llama-3.2-1b", "h100-sxm", "eagle3", alpha=0.8)
    compared = rooflinekit.compare("llama-3.2-1b", "h100-sxm", ["eagle3"], alpha=0.8)
    found |= {type(row) for row in (answer, answer.curve[0], answer.loss[0], compared[0])}
    return found | {type(rooflinekit.setup("llama-3.2-1b", "h100-sxm"))}


def public_names() -> dict[str, str]:
    """Every public name, and a place where it stands."""
    found: dict[str, str] = {}
    for name in rooflinekit.__all__:
        value = getattr(rooflinekit, name)
        if inspect.isfunction(value):
            found.update((parameter, f"{name}()") for parameter in parameters(value))
    for module in (speculation, fits, profiles, table):
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_"):
                found.update((parameter, f"{name}()") for parameter in parameters(value))
    exported = [getattr(acceptance, name) for name in acceptance.__all__]
    for value in filter(inspect.isfunction, exported):
        found.update((parameter, f"{value.__name__}()") for parameter in parameters(value))
    shown = {*filter(inspect.isclass, exported), *classes(speculation), *result_classes(), Load, Drafter}
    shown |= {*classes(fits), *classes(profiles), *classes(table)}
    shown |= {work.Work, work.Pass, work.Staircase, work.Ceiling, work.Machine}
    for cls in shown:
        found.update((member, cls.__name__) for member in members(cls))
    return found


def identifiers(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Names a file binds or uses, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value.lineno
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno


def sources() -> list[Path]:
    """Python files of the package, the microbenchmarks included."""
    return sorted({*ROOT.glob("rooflinekit/**/*.py"), *ROOT.glob("microbench/**/*.py")})


@pytest.fixture(scope="module")
def used() -> dict[str, list[str]]:
    """Every identifier of the package and where it stands."""
    found: dict[str, list[str]] = {}
    for path in sources():
        for name, line in identifiers(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(f"{path.relative_to(ROOT)}:{line}")
    return found


def test_public_names_are_in_the_glossary():
    known = glossary_names() | ORDINARY
    missing = {name: place for name, place in public_names().items() if name not in known}
    assert not missing, f"add a row to docs/glossary.md for: {missing}"


def test_ordinary_words_are_needed():
    assert public_names().keys() >= ORDINARY


def test_no_word_is_both_ordinary_and_in_the_glossary():
    assert not glossary_names() & ORDINARY


def test_glossary_names_exist_in_the_code(used):
    assert not sorted(name for name in glossary_names() if name not in used)


def test_no_name_has_two_rows():
    rows = [
        line.split("|")[2]
        for line in GLOSSARY.read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and line.count("|") == 6
    ]
    names = [name for cell in rows for name in re.findall(r"`([A-Za-z_]\w*)", cell)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_names_are_not_used(name, used):
    assert name not in used, f"{AMBIGUOUS[name]}; {used[name]}"


def test_the_scan_sees_names():
    tree = ast.parse("def f(gamma):\n    return g(tau=1).FLOPS\n")
    assert {name for name, _ in identifiers(tree)} >= {"f", "gamma", "tau", "FLOPS"}
