"""Delta's jars: given, kept, or resolved by Spark itself."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pyspark
import pytest

from deltacheck.config import Environment
from deltacheck.delta.jars import delta_artifact, delta_jars
from deltacheck.delta.java import find_java
from deltacheck.errors import EngineError

GROUP, MODULE, VERSION = delta_artifact("4.4.0", pyspark.__version__).split(":")


def jars_of(environment: Environment, folder: Path, **environ: str) -> tuple[Path, ...]:
    """``delta_jars`` with this installation's Spark and a cache in ``folder``."""
    variables = {"PATH": os.environ["PATH"], "DELTACHECK_CACHE": str(folder / "cache"), **environ}
    return delta_jars(
        environment,
        spark_home=Path(pyspark.__file__).parent,
        spark_version=pyspark.__version__,
        java=find_java(),
        log=folder / "spark.log",
        environ=variables,
    )


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A Maven repository in a folder that holds Delta's artifact, without dependencies."""
    folder = tmp_path / "mirror" / GROUP.replace(".", "/") / MODULE / VERSION
    folder.mkdir(parents=True)
    (folder / f"{MODULE}-{VERSION}.pom").write_text(
        "<project><modelVersion>4.0.0</modelVersion>"
        f"<groupId>{GROUP}</groupId><artifactId>{MODULE}</artifactId>"
        f"<version>{VERSION}</version></project>"
    )
    with zipfile.ZipFile(folder / f"{MODULE}-{VERSION}.jar", "w") as jar:
        jar.writestr("mark.txt", "from the mirror")
    return tmp_path / "mirror"


def test_given_jars_win(tmp_path: Path) -> None:
    """DELTACHECK_JARS names jars and folders of jars, and beats the environment's own."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "one.jar", folder / "b.jar", folder / "a.jar", tmp_path / "no.jar"):
        path.write_bytes(b"")
    given = os.pathsep.join([str(tmp_path / "one.jar"), str(folder)])
    environment = Environment("local", jars=(tmp_path / "no.jar",))
    assert jars_of(environment, tmp_path, DELTACHECK_JARS=given) == (
        tmp_path / "one.jar",
        folder / "a.jar",
        folder / "b.jar",
    )
    assert jars_of(environment, tmp_path) == (tmp_path / "no.jar",)


@pytest.mark.parametrize("by", ["variable", "environment"])
def test_a_given_jar_that_is_not_there_is_told(tmp_path: Path, by: str) -> None:
    """The message names the path and where it was given."""
    missing = tmp_path / "missing.jar"
    variables = {"DELTACHECK_JARS": str(missing)} if by == "variable" else {}
    environment = Environment("lab", jars=(missing,))
    with pytest.raises(EngineError) as raised:
        jars_of(environment, tmp_path, **variables)
    assert str(missing) in raised.value.message
    named = "DELTACHECK_JARS" if by == "variable" else "jars of the environment 'lab'"
    assert named in raised.value.message


def test_a_mirror_is_asked_once_and_the_jars_are_kept(tmp_path: Path, mirror: Path) -> None:
    """DEFAULT_ARTIFACT_REPOSITORY serves the first start; later ones ask nobody."""
    environment = Environment("local")
    url = mirror.as_uri()
    first = jars_of(environment, tmp_path, DEFAULT_ARTIFACT_REPOSITORY=url)
    assert [jar.name for jar in first] == [f"{GROUP}_{MODULE}-{VERSION}.jar"]
    assert zipfile.ZipFile(first[0]).read("mark.txt") == b"from the mirror"
    kept = tmp_path / "cache" / "jars"
    assert [path.name for path in kept.iterdir()] == [first[0].parent.name]
    nowhere = (tmp_path / "nowhere").as_uri()
    assert jars_of(environment, tmp_path, DEFAULT_ARTIFACT_REPOSITORY=nowhere) == first


def test_the_users_own_ivy_settings_are_respected(tmp_path: Path, mirror: Path) -> None:
    """spark.jars.ivySettings in the environment's conf replaces ours."""
    own = tmp_path / "own.xml"
    own.write_text(
        '<ivysettings><settings defaultResolver="ours"/><resolvers>'
        f'<ibiblio name="ours" m2compatible="true" root="{mirror.as_uri()}"/>'
        "</resolvers></ivysettings>"
    )
    environment = Environment("local", conf={"spark.jars.ivySettings": str(own)})
    nowhere = (tmp_path / "nowhere").as_uri()
    jars = jars_of(environment, tmp_path, DEFAULT_ARTIFACT_REPOSITORY=nowhere)
    assert zipfile.ZipFile(jars[0]).read("mark.txt") == b"from the mirror"


def test_jars_that_cannot_be_had_leave_an_empty_cache_and_a_way_out(tmp_path: Path) -> None:
    """The error names the artifact and the three ways to give it."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(EngineError) as raised:
        jars_of(
            Environment("lab"),
            tmp_path,
            DEFAULT_ARTIFACT_REPOSITORY=(tmp_path / "empty").as_uri(),
        )
    error = raised.value
    assert f"{GROUP}:{MODULE}:{VERSION}" in error.message
    assert "not found" in error.message
    for way in ("DELTACHECK_JARS", "jars = [...]", "DEFAULT_ARTIFACT_REPOSITORY", "ivySettings"):
        assert way in error.hint
    assert str(tmp_path / "spark.log") in error.hint
    assert list((tmp_path / "cache" / "jars").iterdir()) == []
