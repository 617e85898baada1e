"""The documents tell the truth: their code runs, prints what they say, and their links lead somewhere."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SKIPPED = {"build", "dist", "node_modules", "__pycache__", "rooflinekit-out"}
THEORY = ROOT / "docs" / "theory.md"
PAGES = (THEORY, ROOT / "docs" / "models.md")
"""Pages whose code is run."""

_FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_ARROW = re.compile(r"^(?P<code>.*?)\s*#\s*->\s*(?P<value>[^\n]+?)\s*$", re.DOTALL)
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")


def blocks(path: Path, language: str) -> list[tuple[int, str]]:
    """Fenced blocks of a language, with the line their code starts on."""
    text = path.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, found.start(2)) + 1, found.group(2))
        for found in _FENCE.finditer(text)
        if found.group(1) == language
    ]


def same(actual: Any, expected: ast.expr, text: str) -> bool:
    """Whether a value is the one printed; numbers to the digits printed."""
    if isinstance(expected, ast.Tuple | ast.List):
        right = (
            isinstance(actual, tuple | list)
            and isinstance(actual, tuple) == isinstance(expected, ast.Tuple)
            and len(actual) == len(expected.elts)
        )
        return right and all(same(one, part, text) for one, part in zip(actual, expected.elts, strict=True))
    value = ast.literal_eval(expected)
    if isinstance(value, bool | str | None) or isinstance(actual, bool | str):
        return bool(actual == value) and isinstance(actual, bool) == isinstance(value, bool)
    exponent = Decimal(ast.get_source_segment(text, expected)).as_tuple().exponent
    return abs(float(actual) - float(value)) <= 0.5 * 10.0**exponent * (1 + 1e-9)


def run_block(start: int, code: str, names: dict[str, Any], where: str) -> Iterator[str]:
    """Run a block statement by statement and yield a line for every value that is not the one printed."""
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        source = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
        place = f"{where}:{start + statement.lineno - 1}"
        found = _ARROW.match(source) if isinstance(statement, ast.Expr) else None
        if found is None:
            assert "# ->" not in source, f"{place}: a value is promised on a line that is not an expression"
            exec(compile(source, place, "exec"), names)  # noqa: S102 - our own documents
            continue
        actual = eval(compile(found["code"], place, "eval"), names)  # noqa: S307
        if not same(actual, ast.parse(found["value"], mode="eval").body, found["value"]):
            yield f"{place}: {found['code'].strip()} is {actual!r}, the page says {found['value']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_blocks_of_the_pages_print_what_they_say(page):
    names: dict[str, Any] = {}
    wrong: list[str] = []
    for start, code in blocks(page, "python"):
        wrong += run_block(start, code, names, page.name)
    assert not wrong, "\n".join(wrong)


def test_the_theory_page_promises_values():
    promised = sum(code.count("# ->") for _, code in blocks(THEORY, "python"))
    assert promised > 60


@pytest.mark.parametrize(
    ("text", "actual", "expected"),
    [
        ("2.801", 2.80133, True),
        ("2.801", 2.8020, False),
        ("295", 295.2, True),
        ("3.352e12", 3.352e12, True),
        ("3.352e12", 3.36e12, False),
        ("(4, 2.46)", (4, 2.4612), True),
        ("(4, 2.46)", (5, 2.4612), False),
        ("(4, 2.46)", (4,), False),
        ("'compute'", "compute", True),
        ("'compute'", "memory", False),
        ("True", True, True),
        ("True", 1, False),
        ("1", True, False),
        ("[371, 214]", [371, 214], True),
        ("[371, 214]", (371, 214), False),
    ],
)
def test_values_are_compared_to_the_digits_printed(text, actual, expected):
    assert same(actual, ast.parse(text, mode="eval").body, text) is expected


def test_a_wrong_value_is_found():
    assert list(run_block(1, "1 + 1  # -> 3\n", {}, "page")) == ["page:1: 1 + 1 is 2, the page says 3"]


@pytest.mark.parametrize(
    "command",
    [line for page in PAGES for _, code in blocks(page, "console") for line in code.splitlines()],
)
def test_shell_lines_of_the_pages_run(command, capsys):
    from rooflinekit.cli import run

    prompt, program, *arguments = command.split()
    assert (prompt, program) == ("$", "rooflinekit")
    assert run(arguments) == 0, capsys.readouterr()


def documents() -> list[Path]:
    """All Markdown files of the repository."""
    found = []
    for path in sorted(ROOT.rglob("*.md")):
        inside = path.relative_to(ROOT).parts
        if not any(part.startswith(".") or part in SKIPPED for part in inside):
            found.append(path)
    return found


def anchors(path: Path) -> set[str]:
    """Anchors that a page's headings have on GitHub."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+\s+(.*?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def prose(path: Path) -> str:
    """The page without code, where brackets are no links."""
    text = _FENCE.sub("", path.read_text(encoding="utf-8"))
    return re.sub(r"`[^`\n]*`", "", text)


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_relative_links_resolve(path):
    broken = []
    for match in _LINK.finditer(prose(path)):
        link = match.group(1) or match.group(2)
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file) if file else path
        if not target.exists():
            broken.append(f"{link}: no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            broken.append(f"{link}: no such heading")
    assert not broken, broken


@pytest.mark.parametrize("script", sorted((ROOT / "docs").glob("*.py")), ids=lambda path: path.stem)
def test_scripts_of_the_pages_find_what_they_import(script):
    """They run by hand, so a call that was moved would be noticed late."""
    import runpy

    names = runpy.run_path(str(script), run_name="imported")
    assert names["__doc__"]


def _console(path: Path) -> list[tuple[str, list[str]]]:
    """Commands of the console blocks of a page, each with the lines of output that are shown."""
    found: list[tuple[str, list[str]]] = []
    for _, text in blocks(path, "console"):
        for line in text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:].partition("  #")[0].strip(), []))
            elif found and line.strip() not in ("", "..."):
                found[-1][1].append(line.rstrip())
    return found


FILES_OF_THE_READER = ("before.prom", "spec.json")
"""Commands on files that only the reader has are parsed, not run."""


@pytest.mark.parametrize(
    ("command", "shown"), _console(ROOT / "README.md"), ids=lambda value: str(value)[:60]
)
def test_commands_of_the_readme_print_what_it_shows(command, shown, capsys, tmp_path, monkeypatch):
    import shlex

    from rooflinekit.cli import run

    words = shlex.split(command)
    assert words[0] == "rooflinekit"
    if any(name in command for name in FILES_OF_THE_READER):
        return
    monkeypatch.chdir(tmp_path)
    assert run(words[1:]) == 0
    printed = {line.rstrip() for line in capsys.readouterr().out.splitlines()}
    missing = [line for line in shown if line not in printed]
    assert not missing, "\n".join([*missing, "--- was:", *sorted(printed)])
