"""Files in small (see files/README.md), and a way to write others."""

import json
from pathlib import Path

import pytest

FILES = Path(__file__).parent / "files"


@pytest.fixture
def files():
    """Folder of the files in small."""
    return FILES


@pytest.fixture
def write(tmp_path):
    """Write text, a JSON document, or JSON Lines (a list of them), and give back the path."""

    def writing(name, content, *, lines=False):
        path = tmp_path / name
        if lines:
            content = "".join(json.dumps(one) + "\n" for one in content)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return writing
