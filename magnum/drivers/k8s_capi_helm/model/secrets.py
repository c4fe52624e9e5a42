# SPDX-License-Identifier: Apache-2.0
"""Manifests of the credential and CA Secrets, from plain data.

These Secrets are made by the driver and never by a chart: what is in a chart's values ends up in
the Secret of the Helm release, and Helm removes a chart's Secrets before Cluster API has finished
with them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
import dataclasses
import re

import yaml

from magnum.drivers.k8s_capi_helm.model import ApplicationCredential, ClusterRequest, Json, names

#: Characters that a label's value may have
#: (https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/).
_LABEL_LIMIT = 63
#: Bytes of a clouds.yaml; that of one cloud has some hundred.
_LARGEST = 1 << 16
#: Keys of the credential Secret: what machines are made with, and what runs inside the cluster.
CLOUDS = "clouds.yaml"
ADDON_CLOUDS = "addon-clouds.yaml"
_INSIDE = "-addons"


@dataclasses.dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (or public key) and its private key, both PEM text without a passphrase."""

    certificate: str = dataclasses.field(repr=False)
    key: str = dataclasses.field(repr=False)


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """Whom the Secrets belong to; labels on each of them find and prove them."""

    release: str
    namespace: str
    project_id: str
    user_id: str
    cluster_uuid: str

    @classmethod
    def of(cls, request: ClusterRequest) -> Owner:
        """The owner that a request names."""
        return cls(
            request.release,
            request.namespace,
            request.project_id,
            request.user_id,
            request.uuid,
        )


def is_credential_name(owner: Owner, text: str) -> bool:
    """Whether an application credential of that name was made for this very cluster.

    The names are exact, since one release may begin with another's. They are those of
    :func:`names.credential` with what rotations and :func:`addon_credential` append, and those of
    magnum-capi-helm, ``magnum-<uuid>-<8 hexadecimal digits>``.
    """
    of_release = re.escape(names.credential(owner.release))
    of_uuid = re.escape(names.credential(owner.cluster_uuid))
    pattern = rf"{of_release}(?:-[0-9a-f]{{8}})?(?:{_INSIDE})?|{of_uuid}(?:-[0-9a-f]{{8}})?"
    return re.fullmatch(pattern, text) is not None


def addon_credential(name: str) -> str:
    """Name of the credential inside the cluster that goes with the one of the machines."""
    return f"{name}{_INSIDE}"


def labels(owner: Owner) -> dict[str, str]:
    """Labels of every object that the driver itself makes for a cluster.

    ``cluster.x-k8s.io/cluster-name`` lets Cluster API's cache see them
    (https://cluster-api.sigs.k8s.io/tasks/certs/using-custom-certificates).
    """
    return {
        names.LABEL_PROJECT: owner.project_id,
        # Keystone gives the users of an LDAP directory ids of 64 characters.
        names.LABEL_USER: owner.user_id[:_LABEL_LIMIT],
        names.LABEL_UUID: owner.cluster_uuid,
        names.LABEL_CLUSTER_NAME: owner.release,
    }


def user_of(secret: Json | None, owner: Owner) -> str:
    """Id of the user whose credentials a Secret holds; the owner's where it does not say.

    magnum-capi-helm keeps the first 63 characters, in the label alone.
    """
    metadata = (secret or {}).get("metadata") or {}
    user_label = (metadata.get("labels") or {}).get(names.LABEL_USER) or owner.user_id
    is_truncated = user_label == owner.user_id[:_LABEL_LIMIT]
    return str(
        (metadata.get("annotations") or {}).get(names.USER_ID)
        or (owner.user_id if is_truncated else user_label)
    )


def clouds_yaml(
    credential: ApplicationCredential,
    *,
    auth_url: str,
    region: str | None,
    interface: str,
    verify: bool,
) -> str:
    """A clouds.yaml with the one cloud that the charts look for.

    The endpoint choice is written as ``interface`` for OpenStack's own clients and as
    ``endpoint_type`` for Cluster API's OpenStack provider, which reads nothing else.
    """
    cloud: Json = {
        "auth": {
            "auth_url": auth_url,
            "application_credential_id": credential.id,
            "application_credential_secret": credential.secret,
        },
        "auth_type": "v3applicationcredential",
        "identity_api_version": 3,
        "interface": interface,
        "endpoint_type": interface,
        "verify": verify,
    }
    if region:
        cloud["region_name"] = region
    return str(yaml.safe_dump({"clouds": {names.CLOUD_NAME: cloud}}, allow_unicode=True))


def credentials_of(secret: Json | None) -> tuple[ApplicationCredential, ...]:
    """The application credentials that a credential Secret holds: none, one or two."""
    data = (secret or {}).get("data") or {}
    credentials = (_credential(data.get(key)) for key in (CLOUDS, ADDON_CLOUDS))
    return tuple(credential for credential in credentials if credential is not None)


def has_addon_credential(secret: Json | None) -> bool:
    """Whether what runs inside the cluster has a credential of its own."""
    return ADDON_CLOUDS in ((secret or {}).get("data") or {})


def is_credential_secret(secret: Json) -> bool:
    """Whether a Secret holds a clouds.yaml, whatever its name is."""
    return CLOUDS in (secret.get("data") or {})


def _credential(text: str | None) -> ApplicationCredential | None:
    if not text:
        return None
    try:
        text_bytes = base64.b64decode(text)
        document: object = yaml.safe_load(text_bytes) if len(text_bytes) <= _LARGEST else None
    except (ValueError, TypeError, RecursionError, yaml.YAMLError):
        # No word of what is in it goes any further.
        return None
    for key in ("clouds", names.CLOUD_NAME, "auth"):
        document = document.get(key) if isinstance(document, dict) else None
    auth = document if isinstance(document, dict) else {}
    credential_id, secret = (auth.get(f"application_credential_{key}") for key in ("id", "secret"))
    if not credential_id or not isinstance(credential_id, str):
        return None
    return ApplicationCredential(credential_id, secret if isinstance(secret, str) else "")


def credential_secret(
    owner: Owner,
    clouds: str,
    cacert: str,
    addon_clouds: str | None = None,
    *,
    name: str | None = None,
) -> Json:
    """The Secret that Cluster API's OpenStack provider and the cluster's addons log in with.

    :param clouds: text of the clouds.yaml.
    :param cacert: PEM bundle that the cloud's endpoints are verified with.
    :param addon_clouds: text of the clouds.yaml for what runs inside the cluster, if that is
        another one. It stands in the same Secret because the addon operator gives charts no other;
        the chart copies only this one into the cluster.
    :param name: of the Secret, by which the cluster's objects refer to it; None for the usual one.
    """
    texts = {CLOUDS: clouds, "cacert": cacert}
    if addon_clouds is not None:
        texts[ADDON_CLOUDS] = addon_clouds
    name = name or names.credential_secret(owner.release)
    secret = _secret(owner, name, "Opaque", texts)
    # Secrets of CAs are known to ``clusterctl move`` by their names, this one only by this label.
    secret["metadata"]["labels"][names.LABEL_MOVE] = ""
    return secret


def ca_secrets(owner: Owner, pairs: Mapping[str, KeyPair]) -> tuple[Json, ...]:
    """One Secret for each CA that Cluster API would otherwise make itself.

    With Magnum's own CAs in them, certificates that Magnum signs are accepted by the cluster. They
    have to exist before the KubeadmControlPlane does, which generates what it does not find.

    :param pairs: by purpose, one of :data:`names.CA_PURPOSES`; of ``sa`` the certificate is a
        public key.
    """
    return tuple(
        _secret(
            owner,
            names.ca_secret(owner.release, purpose),
            "cluster.x-k8s.io/secret",
            {"tls.crt": pairs[purpose].certificate, "tls.key": pairs[purpose].key},
        )
        for purpose in names.CA_PURPOSES
    )


def _secret(owner: Owner, name: str, secret_type: str, texts: Mapping[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": owner.namespace,
            "labels": labels(owner),
            "annotations": {names.USER_ID: owner.user_id},
        },
        "type": secret_type,
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }
