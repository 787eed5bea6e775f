"""Addresses of models behind an endpoint: ``http://host:port/v1#model``.

An address goes into signatures, caches and messages, so it must hold no secret: whatever may be one
is refused, and not repeated. A key comes from the environment.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from reffree.util.errors import EncoderError, OptionError, shorten

KEY_VARIABLE = "REFFREE_API_KEY"
OPENAI_VARIABLE = "OPENAI_API_KEY"
OPENAI_HOST = "api.openai.com"
SHORTEST_SECRET = 8
"""Signs; a shorter word, such as "token", may stand in an address by chance."""

_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_MODEL = re.compile(r"[^\s?&=|\x00-\x1f\x7f]+")
_UNPRINTED = re.compile(r"[\s\x00-\x1f\x7f|\\]")
_HEADER = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Address:
    """An endpoint and a model there."""

    url: str  # to which /embeddings is added
    model: str

    @property
    def host(self) -> str:
        """Name or number of the host, without its port."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Whether it is this machine."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host in ("localhost", "localhost.")

    def __str__(self) -> str:
        return f"{self.url}#{self.model}"


def is_endpoint(name: str | None) -> bool:
    """Whether an encoder's name is the address of an endpoint."""
    return name is not None and _ADDRESS.match(name) is not None


def parse_address(name: str) -> Address:
    """Read the address of a model behind an endpoint.

    >>> parse_address("http://localhost:8080/v1/#BAAI/bge-m3")
    Address(url='http://localhost:8080/v1', model='BAAI/bge-m3')
    """
    try:
        parts = urlsplit(name)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        raise _refusal("", "a host or a port that is none") from None
    wrong = {
        "a user or a password in it": parts.username is not None or parts.password is not None,
        "a question mark, and what may be a key behind it": "?" in name,
        "no host, or with spaces": not host or _UNPRINTED.search(name),
        "the environment's key in it": any(
            key in name for key in _keys().values() if len(key) >= SHORTEST_SECRET
        ),
        "no model behind #": not parts.fragment,
        "signs that no model's name has behind #": not _MODEL.fullmatch(parts.fragment),
    }
    if found := [what for what, is_so in wrong.items() if is_so]:
        raise _refusal(host, found[0])
    name = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/").removesuffix("/embeddings")
    url = f"{parts.scheme.lower()}://{name}{'' if port is None else f':{port}'}{path}"
    return Address(url, parts.fragment)


def api_key(address: Address) -> str | None:
    """Return the key for an endpoint, if the environment has one.

    ``REFFREE_API_KEY`` is for every endpoint; ``OPENAI_API_KEY`` goes to OpenAI's own host alone.
    """
    keys = _keys()
    name = KEY_VARIABLE
    if name not in keys and address.host == OPENAI_HOST:
        name = OPENAI_VARIABLE
    key = keys.get(name)
    if key and not _HEADER.fullmatch(key):
        raise EncoderError(
            f"{name}: found spaces or other signs that no key has; expected one word of "
            "letters, digits and punctuation; set it again, without quotation marks"
        )
    return key


def without_key(text: str) -> str:
    """Blot the environment's keys out of what others have said."""
    for key in _keys().values():
        text = text.replace(key, "[key]")
    return text


def refuse_endpoint(name: str | None, what: str) -> None:
    """Refuse an endpoint where a model's own files are needed, or many would ask at once."""
    if name is not None and is_endpoint(name):
        raise EncoderError(
            f"encoder {shorten(str(parse_address(name)), 200)!r}: found an endpoint for {what}; "
            "expected a model that is loaded here; choose an alias, a folder or a hub id"
        )


def _keys() -> dict[str, str]:
    keys = {name: os.environ.get(name, "").strip() for name in (KEY_VARIABLE, OPENAI_VARIABLE)}
    return {name: key for name, key in keys.items() if key}


def _refusal(host: str, found: str) -> OptionError:
    where = f"{shorten(host)!r} with " if host else ""
    return OptionError(
        f"an endpoint's address{' at ' if host else ', with '}{where}{found}",
        expected="http://host:port/v1#model or https://…, with the model as the server calls it",
        remedy=f"put a key into the environment as {KEY_VARIABLE}, never into the address",
    )
