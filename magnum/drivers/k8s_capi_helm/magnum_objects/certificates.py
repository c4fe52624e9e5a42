# SPDX-License-Identifier: Apache-2.0
"""Magnum's certificate authorities of one cluster, as plain key pairs.

Magnum signs ``openstack coe cluster config`` with these, so the cluster has to be built on them.
"""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives import serialization
from keystoneauth1 import exceptions as ka_exceptions
from openstack.exceptions import SDKException
from oslo_log import log as logging

from magnum.common import cert_manager as stores
from magnum.common import exception
from magnum.conductor.handlers.common import cert_manager
from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.magnum_objects.rows.types import Cluster
from magnum.drivers.k8s_capi_helm.model.secrets import KeyPair
from magnum.objects import cluster as cluster_object

LOG = logging.getLogger(__name__)

#: Purpose in Cluster API -> type in Magnum's certificate manager.
_MAGNUM_TYPES = {"ca": "kubernetes", "etcd": "etcd", "proxy": "front_proxy"}
#: Where a cluster's row says which certificates it has.
_REFERENCES = ("ca_cert_ref", "magnum_cert_ref", "etcd_ca_cert_ref", "front_proxy_ca_cert_ref")

#: What the stores raise: Magnum wraps nothing of Barbican's, whose proxy passes keystoneauth's
#: errors through, and a container that was deleted by half lacks a key.
_FAILURES = (exception.MagnumException, SDKException, ka_exceptions.ClientException, KeyError)

#: What a user is told who asks for new certificate authorities.
ROTATION_REFUSED = (
    "The certificate authorities of a cluster cannot be rotated, because Cluster API cannot "
    "exchange them in a running cluster. Nothing was changed: the cluster keeps its authorities, "
    "and certificates that they have signed stay valid. Create a new cluster to have new ones."
)


def key_pairs(context: Any, cluster: Cluster) -> dict[str, KeyPair]:
    """The three CAs and the service account key, by Cluster API's purposes.

    Service account tokens are signed with the key of Magnum's own client certificate, which Magnum
    makes for each cluster; Cluster API wants a public key, not a certificate, beside it
    (https://cluster-api.sigs.k8s.io/tasks/certs/using-custom-certificates).

    :raises errors.DriverError: Magnum's certificate store does not give them.
    """
    try:
        return _read(context, cluster)
    except _FAILURES as error:
        raise errors.DriverError(
            "The certificates of this cluster could not be read from Magnum's certificate store. "
            "Create the cluster again; if this persists, ask the operator to check the store "
            "(Barbican).",
            repr(error),
        ) from error


def _read(context: Any, cluster: Cluster) -> dict[str, KeyPair]:
    pairs = {}
    for purpose, magnum_type in _MAGNUM_TYPES.items():
        stored = cert_manager.get_cluster_ca_certificate(cluster, context, magnum_type)
        pairs[purpose] = KeyPair(
            _text(stored.get_certificate()), _text(stored.get_decrypted_private_key())
        )
    key = _text(cert_manager.get_cluster_magnum_cert(cluster, context).get_decrypted_private_key())
    pairs["sa"] = KeyPair(_public_half(key), key)
    return pairs


def delete_unreferenced(context: Any, cluster: Cluster) -> None:
    """Remove the two CAs that Magnum makes for a cluster and does not delete with it.

    ``cert_manager.delete_certificates_from_cluster`` of Magnum 23 deletes the cluster's CA and
    Magnum's own certificate, not the CAs of etcd and of the front proxy. What cannot be removed is
    logged: the cluster is gone, and its row must not stay for that.
    """
    for field in ("etcd_ca_cert_ref", "front_proxy_ca_cert_ref"):
        _delete(context, cluster, getattr(cluster, field))


def delete_certificates(context: Any, cluster: Cluster) -> None:
    """Remove all certificates of a cluster whose row has gone while Magnum made them."""
    for field in _REFERENCES:
        _delete(context, cluster, getattr(cluster, field))


def restore(context: Any, cluster: Cluster) -> None:
    """Undo what Magnum does to a cluster before it asks a driver to rotate its authorities.

    ``ca_conductor.rotate_ca_certificate`` of Magnum 23 makes new certificates, sets their
    references on *cluster*, and saves these also when the driver refuses; from then on it would
    sign with an authority that the cluster does not know. The row itself still has the old ones.
    """
    stored = cluster_object.Cluster.get_by_uuid(context, cluster.uuid)
    new_references = []
    for field in _REFERENCES:
        reference = getattr(cluster, field)
        if reference != getattr(stored, field):
            new_references.append(reference)
            setattr(cluster, field, getattr(stored, field))
    cluster.obj_reset_changes(_REFERENCES)
    for reference in new_references:
        _delete(context, cluster, reference)


def _delete(context: Any, cluster: Cluster, ref: str | None) -> None:
    if not ref:
        return
    try:
        stores.get_backend().CertManager.delete_cert(
            ref, resource_ref=cluster.uuid, context=context
        )
    except _FAILURES as error:
        LOG.warning("Cluster %s: certificate %s is not deleted: %s", cluster.uuid, ref, error)


def _public_half(key: str) -> str:
    private = serialization.load_pem_private_key(key.encode(), password=None)
    return (
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
