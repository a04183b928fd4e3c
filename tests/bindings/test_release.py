"""The packages for other languages name the release that they are of, each in its own file."""

from __future__ import annotations

import json
from pathlib import Path

import tenfold

BINDINGS = Path(__file__).parent.parent.parent / "bindings"


def test_packages_for_other_languages_are_of_this_release():
    assert json.loads((BINDINGS / "node/package.json").read_text())["version"] == tenfold.__version__
    assert f"\nVersion: {tenfold.__version__}\n" in (BINDINGS / "r/DESCRIPTION").read_text()
    (rock,) = (BINDINGS / "lua").glob("*.rockspec")
    assert rock.name == f"tenfold-{tenfold.__version__}-1.rockspec"
    assert f'version = "{tenfold.__version__}-1"' in rock.read_text()
