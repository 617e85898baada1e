"""``python -m rooflinekit.microbench`` is ``rooflinekit bench``."""

from __future__ import annotations

import importlib
import sys


def main() -> int:
    """Hand over to ``rooflinekit bench``; say so in one sentence where the command line is missing."""
    try:
        cli = importlib.import_module("rooflinekit.cli")
    except ImportError:
        sys.stderr.write("use `rooflinekit bench --out FILE`; the command line is not part of this install\n")
        return 2
    sys.argv[1:1] = ["bench"]
    return int(cli.main() or 0)


if __name__ == "__main__":
    sys.exit(main())
