"""Small by budget: modules under 300 lines, functions under 40 (without signature and docstring)."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(
    {path.resolve() for folder in ("rooflinekit", "microbench") for path in (ROOT / folder).rglob("*.py")}
)
LONGEST_MODULE = 300
LONGEST_FUNCTION = 40


def body_lines(node):
    """Lines of a function's statements: signature and docstring are for the reader, filling a record is one line."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body:
        return 0
    records = (call for call in ast.walk(node) if isinstance(call, ast.Call) and len(call.keywords) >= 10)
    return body[-1].end_lineno - body[0].lineno + 1 - sum(call.end_lineno - call.lineno for call in records)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_within_its_budget(path):
    """Split by noun where this fails."""
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= LONGEST_MODULE
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    assert {node.name: body_lines(node) for node in functions if body_lines(node) > LONGEST_FUNCTION} == {}
