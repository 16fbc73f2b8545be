from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.model.endpoint_server import serve
from tests.model.test_provider import GOOD, SleepingClock

from oikos.adapters.model.endpoint import endpoint
from oikos.adapters.model.provider import Provider
from oikos.domain.errors import ModelError
from oikos.ports import Message, Reply

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of its own for `localhost`, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


async def ask(url: str) -> Reply:
    model = Provider(endpoint(url, "m", key="sk-test-key"), clock=SleepingClock(), attempts=1)
    try:
        parts = [part async for part in model.stream([Message(role="user", text="hello")], ())]
    finally:
        await model.close()
    assert isinstance(parts[-1], Reply)
    return parts[-1]


async def test_a_certificate_nobody_vouches_for_is_refused_before_anything_is_said(certificate: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with serve([GOOD], tls=context) as server:
        with pytest.raises(ModelError, match=r"localhost:[0-9]+ cannot be trusted: self-signed certificate"):
            await ask(server.url.replace("http://127.0.0.1", "https://localhost"))
    assert server.asked == []


async def test_a_certificate_the_machine_trusts_is_taken_for_its_name_only(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    async with serve([GOOD], tls=context) as server:
        assert (await ask(server.url.replace("http://127.0.0.1", "https://localhost"))).text == "All well."
        with pytest.raises(ModelError, match="cannot be trusted: IP address mismatch"):
            await ask(server.url.replace("http://", "https://"))
    assert len(server.asked) == 1
