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
    marks = {names.LABEL_UUID: owner.cluster_uuid, names.LABEL_CLUSTER_NAME: owner.release}
    listed = kube.list(names.SECRET, owner.namespace, marks)
    return [one for one in listed if secrets.is_credential_secret(one)]


def secrets_in_use(kube: KubeClient, owner: secrets.Owner) -> list[Json]:
    """The Secrets of the cluster that Cluster API reads: one, or none when it is gone.

    More than one only where the cluster has several and no OpenStackCluster names one of them.

    :raises errors.DriverError: they could not be read.
    """
    found = find_secrets(kube, owner)
    if len(found) < 2:
        return found
    named = _referred(kube, owner)
    return [one for one in found if conditions.name(one) in named] if named else found


def secret_name(kube: KubeClient, owner: secrets.Owner, values: Mapping[str, Any]) -> str:
    """Name of the Secret that has to hold the cluster's credential.

    :param values: of the deployed release, {} without one.
    :raises errors.NotOurs: Cluster API reads another one than the release names, or one that is
        another cluster's, or none at all.
    :raises errors.DriverError: the management cluster could not be asked.
    """
    told = str(values.get(VALUE) or "")
    wanted = sorted(_referred(kube, owner) | ({told} - {""}))
    if len(wanted) > 1:
        raise errors.NotOurs(
            f"Cluster API reads the credential of this cluster from Secret '{wanted[0]}' and from "
            f"Secret '{wanted[1]}': identityRef of the OpenStackCluster and {VALUE} of the release "
            "have to name the same one. Nothing was changed; ask the operator to correct that."
        )
    if not wanted:
        found = sorted(conditions.name(one) for one in find_secrets(kube, owner))
        return found[0] if len(found) == 1 else names.credential_secret(owner.release)
    there = kube.get(names.SECRET, owner.namespace, wanted[0])
    marked = (conditions.metadata(there or {}).get("labels") or {}).get(names.LABEL_UUID)
    if marked not in (None, owner.cluster_uuid):
        raise errors.NotOurs(
            f"Cluster API reads the credential of this cluster from Secret '{wanted[0]}', which is "
            f"labelled as that of cluster '{marked}'. Nothing was changed; ask the operator whose "
            "it is."
        )
    return wanted[0]


def _referred(kube: KubeClient, owner: secrets.Owner) -> set[str]:
    """Names of the Secrets that the cluster's OpenStackCluster refers to; none without one.

    Source: API of Cluster API's OpenStack provider, ``OpenStackIdentityReference``.
    """
    marks = {names.LABEL_CLUSTER_NAME: owner.release}
    listed = kube.list(names.OPENSTACK_CLUSTER, owner.namespace, marks)
    if not listed:
        one = kube.get(names.OPENSTACK_CLUSTER, owner.namespace, owner.release)
        listed = [] if one is None else [one]
    found = set()
    for one in listed:
        reference = conditions.at_path(one, "spec", "identityRef")
        if not isinstance(reference, dict) or not reference.get("name"):
            continue
        kind = reference.get("type") or reference.get("kind") or "Secret"
        if kind != "Secret":
            raise errors.NotOurs(
                f"OpenStackCluster '{conditions.name(one)}' has the identity {kind} "
                f"'{reference['name']}' and not a Secret of this cluster. Nothing was changed; "
                "ask the operator to replace that credential."
            )
        found.add(str(reference["name"]))
    return found
