"""Let a Java trust the certificate authorities that this Python trusts.

The bundled Java knows the public authorities alone. Where a company's proxy signs
connections with an authority of its own, Python and pip have been told of it by the
machine's settings, and the bundled Java has not.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

PASSWORD = "changeit"
"""What Java's own stores of public certificates have; it protects nothing."""


def trust_options(folder: Path) -> str:
    """Make a store of the authorities that Python trusts, and the options that name it.

    Args:
        folder: Where the store goes; it must last as long as the Java.

    Returns:
        Options for a Java; empty where Python keeps no list of authorities.
    """
    authorities = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not authorities:
        return ""
    store = folder / "trust.jks"
    store.write_bytes(jks(authorities))
    return (
        f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStoreType=JKS "
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}"
    )


def jks(certificates: Sequence[bytes]) -> bytes:
    """Pack certificates in DER form into a store of trusted ones.

    The format is that of ``sun.security.provider.JavaKeyStore``, which every Java reads.
    """
    body = struct.pack(">III", 0xFEEDFEED, 2, len(certificates))
    for number, certificate in enumerate(certificates):
        body += struct.pack(">I", 2) + _text(f"ca{number}") + struct.pack(">Q", 0)
        body += _text("X.509") + struct.pack(">I", len(certificate)) + certificate
    seal = PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(seal + body, usedforsecurity=False).digest()


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
