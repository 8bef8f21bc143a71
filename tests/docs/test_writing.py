"""What the pages about jobs, streams and MERGE show, runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {"batch": "batch-jobs.md", "merge": "merge.md", "streams": "streams.md"}


def snippets(marker: str) -> list[str]:
    """The Python of a page, in order."""
    page = (DOCS / PAGES[marker]).read_text(encoding="utf-8")
    found = re.findall(rf"<!-- run: {marker} -->\n```python\n(.*?)```", page, re.DOTALL)
    assert len(found) == page.count("```python"), "a snippet of the page is not run"
    return found


@pytest.mark.parametrize("marker", PAGES)
def test_the_python_of_a_page_runs(
    spark: SparkSession, database: str, tmp_path: Path, marker: str
) -> None:
    """From top to bottom, each block with the names of those before it; asserts included."""
    names: dict[str, object] = {"spark": spark}
    for number, code in enumerate(snippets(marker)):
        text = code.replace("shop.", f"{database}.").replace('"checkpoints/', f'"{tmp_path}/')
        exec(compile(text, f"{PAGES[marker]} {number}", "exec"), names)
    assert "deltacheck" in names
