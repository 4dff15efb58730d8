"""Runs the checks of a module in this process, as the tests' child: `python run_checks.py MODULE`.

Prints {check: ""} or {check: why it failed} as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback


def main(module: str) -> None:
    told: dict[str, str] = {}
    for name, check in vars(importlib.import_module(module)).items():
        if name.startswith("check_"):
            try:
                check()
                told[name] = ""
            except Exception:
                told[name] = traceback.format_exc()
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
