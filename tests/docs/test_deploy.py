"""The page about deploys: its script and the steps of its workflow are run as they stand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deltacheck.demo import shop
from tests.docs.test_readme import README, ROOT, blocks

PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")

FILL = """
from deltacheck import session
from deltacheck.demo import shop
shop.fill_tables(session())
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The worked example's project, its tables filled, nothing applied."""
    folder = tmp_path_factory.mktemp("deploy") / "shop"
    shop.make_project(folder)
    subprocess.run([sys.executable, "-c", FILL], cwd=folder, check=True)
    return folder


@pytest.mark.slow
def test_the_script_deploys_the_worked_example(project: Path) -> None:
    """Every line of the script exits with 0, and the last one finds all in sync."""
    script = blocks(PAGE, "run")["deploy.sh"]
    ran = _shell(script, project)
    assert ran.returncode == 0, ran.stderr
    assert "is at 0003" in ran.stdout


@pytest.mark.slow
def test_the_steps_of_the_workflow_run(project: Path) -> None:
    """The workflow is YAML, and its deltacheck steps run on the worked example."""
    workflow = yaml.safe_load(blocks(PAGE, "workflow")["deploy.yml"])
    steps = [step["run"] for step in workflow["jobs"]["constraints"]["steps"] if "run" in step]
    ours = [step.replace("--env prod", "--env local") for step in steps if "pip" not in step]
    assert len(ours) == 3
    ran = _shell("\n".join(ours), project)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.slow
def test_what_the_readme_does_at_a_terminal_and_in_a_job(tmp_path: Path) -> None:
    """Each line of the README's script exits with 0, and so does its job after an upgrade."""
    folder = tmp_path / "shop"
    shop.make_project(folder)
    subprocess.run([sys.executable, "-c", FILL], cwd=folder, check=True)
    ran = _shell(blocks(README, "run")["terminal.sh"], folder)
    assert ran.returncode == 0, ran.stderr
    job = f"deltacheck upgrade --yes\npython - <<'EOF'\n{blocks(README, 'run')['job.py']}\nEOF"
    ran = _shell(job, folder)
    assert ran.returncode == 0, ran.stderr


def _shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    commands = Path(sys.executable).parent
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f'PATH="{commands}:$PATH"\n{script}'],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
