"""What docs/quarantine.md shows, runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from deltacheck.cli.reference import commands
from deltacheck.quarantine.layout import OWN
from tests.quarantine.held import hold, make_table, rows

PAGE = (Path(__file__).parents[2] / "docs" / "quarantine.md").read_text(encoding="utf-8")
BASH = [
    line.partition("#")[0].strip()
    for block in re.findall(r"```bash\n(.*?)```", PAGE, flags=re.DOTALL)
    for line in block.splitlines()
]


@pytest.mark.parametrize("line", BASH)
def test_a_command_of_the_page_has_the_options_that_it_is_given(line: str) -> None:
    """By the generated reference of the commands."""
    words = shlex.split(line)
    options = {
        option
        for command in commands()
        if command.name == " ".join(words[1:3])
        for parameter in command.parameters
        for option in parameter.names
    }
    assert words[0] == "deltacheck"
    assert {word for word in words if word.startswith("--")} <= options


def test_the_page_names_every_column_of_a_quarantine() -> None:
    """Those that deltacheck adds, in their order."""
    table = PAGE.split("| column | holds |")[1].split("\n\n")[0]
    assert re.findall(r"`(_deltacheck_\w+)`", table) == OWN.names


def test_the_python_of_the_page_runs(
    spark: SparkSession, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a table with a row for each of its steps."""
    (code,) = re.findall(r"<!-- run: quarantine.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)
    table = f"{database}.orders"
    make_table(spark, table)
    hold(spark, table, "(1, -5, 'new'), (2, -7, 'test')")
    hold(spark, table, "(3, 9, 'paid')", source="guard")

    exec(compile(code.replace("shop.orders", table), "quarantine.py", "exec"), {"spark": spark})

    assert rows(spark, table, "id, amount") == {(1, 5): 1, (3, 9): 1}
    assert "1 went back; 0 stay" in capsys.readouterr().out
