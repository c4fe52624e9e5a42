# SPDX-License-Identifier: Apache-2.0
"""Mask secrets in what leaves the host: those that are known, and what looks like one.

oslo.utils masks passwords in the text of a Python or JSON object; what is here besides is the shape
of Kubernetes' and Helm's own secrets, and the secrets of one cluster by their values.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
import json
import re
from typing import Any
import urllib.parse

from oslo_utils import strutils
import yaml

from magnum.drivers.k8s_capi_helm.helm import failures
from magnum.drivers.k8s_capi_helm.model import Json

MASK = "***"
#: Shorter values are words of everyday, such as the name of a user.
_SHORTEST = 8
#: A line of an encoded key; texts are folded at 64 and 76 characters.
_ENCODED_LINE = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{32,}")
_SENSITIVE = re.compile(
    r"passw|passphrase|token|secret|credential|htpasswd|authorization|kubeconfig|dockerconfig"
    r"|(?:api|client|access|encryption|private|tls)[-_.]?key|key[-_.]?data"
    r"|clouds\.yaml|cloud\.?conf|user_?data",
    re.IGNORECASE,
)
#: Keys of what only names or limits a secret.
_REFERENCE = re.compile(
    r"(?:names?|namespace|refs?|source|file|path|dir|directory|kind|ttl|seconds|enabled|roles?"
    r"|policy|interface|type|id|url|used_for)$",
    re.IGNORECASE,
)
_PATTERNS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)",
        # Tokens of Kubernetes' service accounts and of OpenID Connect; Keystone's; kubeadm's.
        r"\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*",
        r"\bgAAAA[\w=-]{40,}",
        r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b",
        r"(?i:(?<=bearer )|(?<=basic ))[\w.~+/-]{16,}=*",
    )
)
#: An argument of a program, or a line of a file, that gives a secret. What follows a colon is
#: often a name: "no such Secret: x".
_ASSIGNMENT = re.compile(
    r"(?P<key>(?:token|secret|api_?key)[\w.-]{0,60}\s{0,3}=\s{0,3}"
    r"|(?:passw(?:or)?d|passphrase)[\w.-]{0,60}\s{0,3}[=:]\s{0,3})"
    r"(?P<value>\"[^\"\n]+\"|'[^'\n]+'|[^\s\"',;}\])]+)",
    re.IGNORECASE,
)
#: A file, a template or a script that may hold anything.
_MANIFEST_OF_SECRET = re.compile(r"[\"']?kind[\"']?\s*:\s*[\"']?Secret\b")


class SecretMask:
    """Takes secrets out of texts and of JSON.

    :param secrets: those that are known; short ones are left out.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        # The longest first: one may be the beginning of another.
        self._known = tuple(sorted(forms, key=lambda form: (-len(form), form)))

    def text(self, text: str) -> str:
        """A text without secrets."""
        for form in self._known:
            text = text.replace(form, MASK)
        for pattern in _PATTERNS:
            text = pattern.sub(MASK, text)
        text = _ASSIGNMENT.sub(_masked_assignment, text)
        return str(strutils.mask_password(failures.without_passwords(text), MASK))

    def json(self, value: Any) -> Any:
        """A copy of JSON without secrets: by the names of keys, and by the texts.

        What is in a file or in a manifest of a Secret is replaced by its length.
        """
        if isinstance(value, dict):
            if _is_variable(value):
                return {**value, "value": MASK}
            return {self.text(str(key)): self._item(str(key), value[key]) for key in value}
        if isinstance(value, (list, tuple)):
            return [self.json(item) for item in value]
        if not isinstance(value, str):
            return value
        if _MANIFEST_OF_SECRET.search(value):
            return _length(value)
        return self.text(value)

    def _item(self, key: str, value: Any) -> Any:
        """What becomes of an entry of a mapping."""
        if isinstance(value, str) and key == "content":
            return _length(value)
        return self._blank(value) if is_sensitive(key) else self.json(value)

    def _blank(self, value: Any) -> Any:
        """A mask in the place of each text but names: numbers and switches tell no secret."""
        if isinstance(value, dict):
            return {
                str(key): self.json(value[key])
                if _REFERENCE.search(str(key))
                else self._blank(value[key])
                for key in value
            }
        if isinstance(value, (list, tuple)):
            return [self._blank(item) for item in value]
        return MASK if isinstance(value, str) and value else value


def is_sensitive(key: str) -> bool:
    """Whether what stands under a key is a secret, and not the name of one."""
    return bool(_SENSITIVE.search(key)) and not _REFERENCE.search(key)


def secrets_of_text(text: str) -> Iterator[str]:
    """The secrets in a file: of YAML what stands under sensitive keys, of anything else all of it.

    :param text: of a kubeconfig, a clouds.yaml, a key, a token.
    """
    try:
        parsed = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, (dict, list)):
        yield from _sensitive_texts(parsed)
        return
    yield text.strip()
    yield from _ENCODED_LINE.findall(text)


def _sensitive_texts(value: Any, *, is_secret: bool = False) -> Iterator[str]:
    if isinstance(value, dict):
        for key in value:
            yield from _sensitive_texts(value[key], is_secret=is_secret or is_sensitive(str(key)))
    elif isinstance(value, list):
        for item in value:
            yield from _sensitive_texts(item, is_secret=is_secret)
    elif is_secret and isinstance(value, str):
        yield value
        yield from _ENCODED_LINE.findall(value)


def _forms(secret: str) -> Iterator[str]:
    """How a secret stands in a text: as it is, in JSON, encoded, quoted in a URL."""
    if len(secret.strip()) < _SHORTEST:
        return
    yield secret
    yield json.dumps(secret)[1:-1]
    yield base64.b64encode(secret.encode()).decode()
    yield urllib.parse.quote(secret, safe="")


def _masked_assignment(match: re.Match[str]) -> str:
    is_reference = _REFERENCE.search(match["key"].rstrip(" =:"))
    return match[0] if is_reference else f"{match['key']}{MASK}"


def _is_variable(value: Json) -> bool:
    """Whether a mapping is an entry of a list of names with values, such as an environment."""
    return is_sensitive(str(value.get("name", ""))) and isinstance(value.get("value"), str)


def _length(text: str) -> str:
    return f"{MASK} ({len(text.encode())} bytes)"
