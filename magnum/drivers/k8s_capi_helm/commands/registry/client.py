# SPDX-License-Identifier: Apache-2.0
"""Read and write registries of container images and charts by their HTTP API.

https://github.com/opencontainers/distribution-spec/blob/v1.1.1/spec.md. Whatever a registry sends
is believed only if its digest is the one that was asked for. Each request has a timeout, and those
that may be repeated are tried a few times.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import hashlib
import json
import pathlib
from typing import Any
import urllib.parse

import requests
from requests import adapters
from urllib3.util import retry

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.commands.registry.image_reference import ImageReference

MANIFESTS = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_TIMEOUT = (10.0, 60.0)
_RETRIES, _PAUSE = 3, 1.0
_STATUSES = (429, 500, 502, 503, 504)
_CHUNK = 1 << 20
_LARGEST_MANIFEST = 4 << 20
_HUB_KEYS = ("docker.io", "index.docker.io", "https://index.docker.io/v1/")


@dataclasses.dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest, or an index of manifests, as the registry has it.

    :ivar digest: ``sha256:`` and the hexadecimal digest of the content.
    """

    digest: str
    media_type: str
    content: bytes

    def descriptors(self) -> list[dict[str, Any]]:
        """What it consists of: manifests of an index, or configuration and layers.

        :raises errors.RegistryRefused: it is neither.
        """
        try:
            document = json.loads(self.content)
            if "manifests" in document:
                return list(document["manifests"])
            return [document["config"], *document["layers"]]
        except (ValueError, KeyError, TypeError):
            raise _refused(self.digest, "it is no manifest of an image") from None


def read_logins(path: pathlib.Path | None) -> Mapping[str, tuple[str, str]]:
    """Users and passwords by registry, of a file as container tools keep it.

    https://github.com/containers/image/blob/main/docs/containers-auth.json.5.md

    :raises errors.InvalidRequest: it cannot be read. No text of the file is in the error.
    """
    if path is None:
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8")).get("auths", {})
        found = {}
        for host, entry in entries.items():
            user, _, password = base64.b64decode(entry.get("auth", "")).decode().partition(":")
            if user:
                found["docker.io" if host in _HUB_KEYS else host] = (user, password)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise errors.InvalidRequest(
            f"The file with logins of registries cannot be read. {path}: {type(error).__name__}."
        ) from None
    return found


class RegistryClient:
    """Registries, each by its own login.

    :param logins: user and password by registry.
    :param plain_hosts: registries that are asked without TLS.
    :param pause: seconds before the second attempt of a request, doubled before each further one.
    """

    def __init__(
        self,
        logins: Mapping[str, tuple[str, str]] | None = None,
        plain_hosts: tuple[str, ...] = (),
        pause: float = _PAUSE,
    ) -> None:
        self._logins, self._plain_hosts = dict(logins or {}), plain_hosts
        self._session = requests.Session()
        # Only the logins that the caller names count.
        self._session.auth = _no_netrc
        retries = retry.Retry(
            total=_RETRIES,
            backoff_factor=pause,
            status_forcelist=_STATUSES,
            allowed_methods=frozenset({"GET", "HEAD"}),
            raise_on_status=False,
            # A registry may ask for hours.
            respect_retry_after_header=False,
        )
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, adapters.HTTPAdapter(max_retries=retries))
        self._tokens: dict[tuple[str, str], str] = {}

    def manifest(self, reference: ImageReference) -> Manifest:
        """The manifest, or index, of an image.

        :raises errors.RegistryUnreachable: the registry does not answer.
        :raises errors.RegistryRefused: it does not have it, or sends another one.
        """
        path = f"{reference.repository}/manifests/{reference.version}"
        headers = {"Accept": ", ".join(MANIFESTS)}
        answer = self._request("GET", reference, path, headers=headers, stream=True)
        with contextlib.closing(answer):
            self._check(answer, str(reference))
            content = answer.raw.read(_LARGEST_MANIFEST + 1, decode_content=True)
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if reference.digest not in ("", digest) or len(content) > _LARGEST_MANIFEST:
            raise _refused(str(reference), f"the registry sends another manifest, {digest}")
        return Manifest(digest, answer.headers.get("Content-Type", "").partition(";")[0], content)

    def blob(self, reference: ImageReference, digest: str) -> Iterator[bytes]:
        """A configuration or layer of an image, piece by piece; the reader checks the digest.

        :raises errors.DriverError: as of :meth:`manifest`.
        """
        path = f"{reference.repository}/blobs/{digest}"
        answer = self._request("GET", reference, path, stream=True)
        with contextlib.closing(answer):
            self._check(answer, f"{reference} {digest}")
            with _translated(reference):
                yield from answer.iter_content(_CHUNK)

    def push_blob(self, reference: ImageReference, digest: str, path: pathlib.Path) -> bool:
        """Upload a blob, unless the registry has it; returns whether it was uploaded.

        :raises errors.DriverError: as of :meth:`manifest`.
        """
        repository = reference.repository
        if self._request("HEAD", reference, f"{repository}/blobs/{digest}", push=True).ok:
            return False
        started = self._request("POST", reference, f"{repository}/blobs/uploads/", push=True)
        self._check(started, f"{reference} {digest}")
        location = urllib.parse.urljoin(started.url, started.headers.get("Location", ""))
        separator = "&" if urllib.parse.urlsplit(location).query else "?"
        url = f"{location}{separator}{urllib.parse.urlencode({'digest': digest})}"
        headers = {"Content-Type": "application/octet-stream"}
        with path.open("rb") as file:
            answer = self._request("PUT", reference, url, push=True, headers=headers, data=file)
        self._check(answer, f"{reference} {digest}")
        return True

    def push_manifest(self, reference: ImageReference, manifest: Manifest) -> None:
        """Upload a manifest, after everything that it consists of.

        :raises errors.DriverError: as of :meth:`manifest`.
        """
        path = f"{reference.repository}/manifests/{reference.version}"
        headers = {"Content-Type": manifest.media_type}
        answer = self._request(
            "PUT", reference, path, push=True, headers=headers, data=manifest.content
        )
        self._check(answer, str(reference))

    # ---------------------------------------------------------------------------------------------
    def _request(
        self,
        method: str,
        reference: ImageReference,
        path: str,
        *,
        push: bool = False,
        **options: Any,
    ) -> requests.Response:
        """One request, and once more with a token where the registry asks for one."""
        scheme = "http" if reference.host in self._plain_hosts else "https"
        url = path if "://" in path else f"{scheme}://{reference.api_host}/v2/{path}"
        key = (reference.host, f"{reference.repository}{' push' if push else ''}")
        headers = options.pop("headers", {})

        def send() -> requests.Response:
            own = {"Authorization": self._tokens[key]} if key in self._tokens else {}
            return self._session.request(
                method, url, headers={**headers, **own}, timeout=_TIMEOUT, **options
            )

        with _translated(reference):
            answer = send()
            if answer.status_code == 401 and key not in self._tokens:
                answer.close()
                self._tokens[key] = self._authorization(reference, answer.headers, push=push)
                if hasattr(options.get("data"), "seek"):
                    options["data"].seek(0)
                answer = send()
        return answer

    def _authorization(
        self, reference: ImageReference, headers: Mapping[str, str], *, push: bool
    ) -> str:
        """What a registry's challenge asks for.

        https://distribution.github.io/distribution/spec/auth/token/
        """
        scheme, _, rest = headers.get("WWW-Authenticate", "").partition(" ")
        login = self._logins.get(reference.host)
        if scheme.lower() == "basic" and login:
            return f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"
        found = requests.utils.parse_dict_header(rest)
        challenge = {name: text or "" for name, text in found.items()}
        realm = challenge.get("realm", "")
        is_safe = realm.startswith("https://") or reference.host in self._plain_hosts
        if scheme.lower() != "bearer" or not is_safe:
            raise _refused(str(reference), "the registry asks for a login, which --authfile lacks")
        actions = "pull,push" if push else "pull"
        query = {"scope": f"repository:{reference.repository}:{actions}"}
        if "service" in challenge:
            query["service"] = challenge["service"]
        auth: Any = login or _no_netrc
        answer = self._session.get(realm, params=query, auth=auth, timeout=_TIMEOUT)
        self._check(answer, f"{reference} (login)")
        document = answer.json()
        return f"Bearer {document.get('token') or document.get('access_token')}"

    @staticmethod
    def _check(answer: requests.Response, subject: str) -> None:
        if answer.ok:
            return
        answer.close()
        if answer.status_code in _STATUSES:
            raise _unreachable(subject, f"HTTP {answer.status_code}")
        raise _refused(subject, f"HTTP {answer.status_code} {answer.reason}")


def _no_netrc(request: Any) -> Any:
    """Requests takes a login of ~/.netrc where there is no other one."""
    return request


@contextlib.contextmanager
def _translated(reference: ImageReference) -> Iterator[None]:
    try:
        yield
    except (requests.RequestException, ValueError) as error:
        raise _unreachable(str(reference), type(error).__name__) from None


def _unreachable(subject: str, detail: str) -> errors.RegistryUnreachable:
    return errors.RegistryUnreachable(
        f"The registry does not answer. It was asked for {subject}; run the command again.", detail
    )


def _refused(subject: str, detail: str) -> errors.RegistryRefused:
    return errors.RegistryRefused(
        f"The registry does not give what was asked for. It was asked for {subject}: {detail}."
    )
