"""The base install brings no Spark: what needs it says so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

# As if the package were not installed: the finder says so for it alone.
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "{0}":
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
from deltacheck.cli.app import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("package", ["pyspark", "delta", "py4j"])
def test_a_command_that_needs_spark_names_the_extra(package: str, tmp_path: Path) -> None:
    """exit 1 and one paragraph with what to install, in place of a stack trace."""
    (tmp_path / "deltacheck.toml").write_text('[env.l]\nspark = "local"\nwarehouse = "w"\n')
    (tmp_path / "versions").mkdir()
    words = [sys.executable, "-c", HIDE.format(package), "status", "--project", str(tmp_path)]
    ran = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    error = json.loads(ran.stdout)["error"]
    assert error["code"] == "engine"
    assert "deltacheck[local]" in error["hint"]
    assert "Traceback" not in ran.stderr
