# SPDX-License-Identifier: Apache-2.0
"""Magnum's certificate authorities of one cluster, as plain key pairs.

Magnum signs ``openstack coe cluster config`` with these, so the cluster has to be built on them.
"""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives import serialization

from magnum.conductor.handlers.common import cert_manager
from magnum.drivers.k8s_capi_helm.secrets import KeyPair

#: Purpose in Cluster API -> type in Magnum's certificate manager.
_MAGNUM_TYPES = {"ca": "kubernetes", "etcd": "etcd", "proxy": "front_proxy"}


def key_pairs(context: Any, cluster: Any) -> dict[str, KeyPair]:
    """The three CAs and the service account key, by Cluster API's purposes.

    Service account tokens are signed with the key of Magnum's own client certificate, which Magnum
    makes for each cluster; Cluster API wants a public key, not a certificate, beside it
    (https://cluster-api.sigs.k8s.io/tasks/certs/using-custom-certificates).
    """
    pairs = {}
    for purpose, magnum_type in _MAGNUM_TYPES.items():
        stored = cert_manager.get_cluster_ca_certificate(cluster, context, magnum_type)
        pairs[purpose] = KeyPair(
            _text(stored.get_certificate()), _text(stored.get_decrypted_private_key())
        )
    key = _text(cert_manager.get_cluster_magnum_cert(cluster, context).get_decrypted_private_key())
    pairs["sa"] = KeyPair(_public_half(key), key)
    return pairs


def _public_half(key: str) -> str:
    private = serialization.load_pem_private_key(key.encode(), password=None)
    return (
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
