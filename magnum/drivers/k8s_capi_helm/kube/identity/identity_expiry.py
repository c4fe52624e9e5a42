# SPDX-License-Identifier: Apache-2.0
"""When the identity for the management cluster expires: its client certificate, its token."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import json
import pathlib

from cryptography import x509
import kubernetes.client

from magnum.drivers.k8s_capi_helm.kube.identity import kubeconfig


@dataclasses.dataclass(frozen=True, slots=True)
class Validity:
    """From when until when a part of an identity is valid (aware).

    :ivar subject: which part, for people.
    :ivar start: None where it does not say.
    """

    subject: str
    start: datetime.datetime | None
    end: datetime.datetime


def validities(path: str | None, context: str = "") -> list[Validity]:
    """How long each part of an identity is valid, of those that say so.

    A certificate does always; a token if it is a JSON Web Token with ``exp``, as those of
    Kubernetes' service accounts are (https://www.rfc-editor.org/rfc/rfc7519#section-4.1.4).

    :param path: as of :func:`kubeconfig.find_kubeconfig`.
    :param context: of the kubeconfig, "" for its current one.
    :raises errors.ManagementRefused: the kubeconfig cannot be used.
    """
    api = kubeconfig.load(path, context=context)
    found = []
    certificate = certificate_validity(api.configuration)
    if certificate is not None:
        found.append(certificate)
    header = kubeconfig.token_header(api.configuration, path).get("authorization", "")
    token = _token_validity(header.removeprefix("Bearer "))
    return [*found, *([token] if token else [])]


def certificate_validity(configuration: kubernetes.client.Configuration) -> Validity | None:
    """How long the client certificate of a loaded kubeconfig is valid; None without one."""
    if not configuration.cert_file:
        return None
    chain = x509.load_pem_x509_certificates(pathlib.Path(configuration.cert_file).read_bytes())
    first = min(chain, key=lambda one: one.not_valid_after_utc)
    return Validity("client certificate", first.not_valid_before_utc, first.not_valid_after_utc)


def _token_validity(token: str) -> Validity | None:
    """What the middle part of a token says; None where it is no such token."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        start = claims.get("iat")
        return Validity("token", _instant(start) if start else None, _instant(claims["exp"]))
    except (AttributeError, ValueError, KeyError, TypeError, OverflowError, OSError):
        return None


def _instant(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
