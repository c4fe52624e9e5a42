# SPDX-License-Identifier: Apache-2.0
"""Find the Secret to which a cluster's objects refer for the credential.

It is found by the labels of the cluster. Which one of several counts, and which one a rotation
writes, is what Cluster API's OpenStack provider reads: the ``identityRef`` of the OpenStackCluster,
which the chart sets to the value ``cloudCredentialsSecretName``. A name computed from the release
is not enough: magnum-capi-helm replaces each run of other characters by one hyphen in the names of
its Secrets, so the Secret of release ``a--b`` is ``a-b-cloud-credentials``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube_client import KubeClient
from magnum.drivers.k8s_capi_helm.model import conditions, Json, names, secrets

#: Key of the values with the name of the Secret.
VALUE = "cloudCredentialsSecretName"


def find_secrets(kube: KubeClient, owner: secrets.Owner) -> list[Json]:
    """All Secrets with a clouds.yaml that have the labels of this very cluster.

    :raises errors.DriverError: they could not be read.
    """
    selector = {names.LABEL_UUID: owner.cluster_uuid, names.LABEL_CLUSTER_NAME: owner.release}
    objects = kube.list(names.SECRET, owner.namespace, selector)
    return [obj for obj in objects if secrets.is_credential_secret(obj)]


def secrets_in_use(kube: KubeClient, owner: secrets.Owner) -> list[Json]:
    """The Secrets of the cluster that Cluster API reads: one, or none when it is gone.

    More than one only where the cluster has several and no OpenStackCluster names one of them.

    :raises errors.DriverError: they could not be read.
    """
    candidates = find_secrets(kube, owner)
    if len(candidates) < 2:
        return candidates
    referred_names = _referred_names(kube, owner)
    return (
        [secret for secret in candidates if conditions.name(secret) in referred_names]
        if referred_names
        else candidates
    )


def secret_name(kube: KubeClient, owner: secrets.Owner, values: Mapping[str, Any]) -> str:
    """Name of the Secret that has to hold the cluster's credential.

    :param values: of the deployed release, {} without one.
    :raises errors.NotOwned: Cluster API reads another one than the release names, or one that is
        another cluster's, or none at all.
    :raises errors.DriverError: the management cluster could not be asked.
    """
    name_in_values = str(values.get(VALUE) or "")
    secret_names = sorted(_referred_names(kube, owner) | ({name_in_values} - {""}))
    if len(secret_names) > 1:
        raise errors.NotOwned(
            f"Cluster API reads the credential of this cluster from Secret '{secret_names[0]}' and "
            f"from Secret '{secret_names[1]}': identityRef of the OpenStackCluster and {VALUE} of "
            "the release have to name the same one. Nothing was changed; ask the operator to "
            "correct that."
        )
    if not secret_names:
        existing = sorted(conditions.name(secret) for secret in find_secrets(kube, owner))
        return existing[0] if len(existing) == 1 else names.credential_secret(owner.release)
    secret = kube.get(names.SECRET, owner.namespace, secret_names[0])
    uuid_label = (conditions.metadata(secret or {}).get("labels") or {}).get(names.LABEL_UUID)
    if uuid_label not in (None, owner.cluster_uuid):
        raise errors.NotOwned(
            f"Cluster API reads the credential of this cluster from Secret '{secret_names[0]}', "
            f"which is labelled as that of cluster '{uuid_label}'. Nothing was changed; ask the "
            "operator whose it is."
        )
    return secret_names[0]


def _referred_names(kube: KubeClient, owner: secrets.Owner) -> set[str]:
    """Names of the Secrets that the cluster's OpenStackCluster refers to; none without one.

    Source: API of Cluster API's OpenStack provider, ``OpenStackIdentityReference``.
    """
    selector = {names.LABEL_CLUSTER_NAME: owner.release}
    openstack_clusters = kube.list(names.OPENSTACK_CLUSTER, owner.namespace, selector)
    if not openstack_clusters:
        openstack_cluster = kube.get(names.OPENSTACK_CLUSTER, owner.namespace, owner.release)
        openstack_clusters = [] if openstack_cluster is None else [openstack_cluster]
    referred_names = set()
    for openstack_cluster in openstack_clusters:
        reference = conditions.at_path(openstack_cluster, "spec", "identityRef")
        if not isinstance(reference, dict) or not reference.get("name"):
            continue
        kind = reference.get("type") or reference.get("kind") or "Secret"
        if kind != "Secret":
            raise errors.NotOwned(
                f"OpenStackCluster '{conditions.name(openstack_cluster)}' has the identity {kind} "
                f"'{reference['name']}' and not a Secret of this cluster. Nothing was changed; "
                "ask the operator to replace that credential."
            )
        referred_names.add(str(reference["name"]))
    return referred_names
