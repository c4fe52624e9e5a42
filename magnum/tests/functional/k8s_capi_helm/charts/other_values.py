# SPDX-License-Identifier: Apache-2.0
"""Other values for keys whose schema does not tell one, and what some keys need beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from magnum.tests.functional.k8s_capi_helm.charts import keys
from magnum.tests.functional.k8s_capi_helm.charts.rendering import openstack_id, Values

#: By the key's name or the end of it; the first that the schema takes and that is another is taken.
TABLE: Mapping[str, Any] = {
    "kubeProxyReplacement": ("false", "true"),
    "users": ([{"name": "one"}], [{"name": "two"}]),
    "mounts": ([["LABEL=one", "/mnt/one"]], [["LABEL=two", "/mnt/two"]]),
    "machineCount": (1, 3, 5),
    "cipherSuites": (
        ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        ["TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"],
    ),
    "clouds": ({"demo": {"auth": {"auth_url": "https://other.example.org"}}, "other": {}},),
    "apiVersions.clusterApi": ("1.11", "1.10"),
    "apiVersions.infrastructure": ("v1beta2", "v1beta1"),
    "additionalSyncMachineAnnotations": ([".+"], [".*"]),
    "remoteGroupID": (openstack_id(1), openstack_id(2)),
    "dnsNameservers": (["192.0.2.54"], ["192.0.2.55"]),
    "loadBalancerSubnetFilters": ([{"id": openstack_id(1)}], [{"id": openstack_id(2)}]),
    "portRangeMin": (2, 3),
    "portRangeMax": (40000, 40001),
    "trustedCAs": ({"one": keys.TEXTS[-2]}, {"two": keys.TEXTS[-1]}),
    "azimuthAuthorizationWebhook.timeout": ("7s", "8s"),
    "etcd.encryption.barbican.keyId": (openstack_id(1), openstack_id(2)),
    "etcd.encryption.provider": ("aesgcm", "secretbox"),
    "etcd.encryption.otherProviders": ({"aesgcm": ["one"]}, {"aesgcm": ["two"]}),
    "controlPlane.kubernetesVersion": ("1.34.8", "1.34.9"),
    "certificateValidityDays": (200, 201),
    "loadBalancerAdditionalPorts": ([8443], [9443]),
    "imagePullSecrets": ([{"name": "one"}], [{"name": "two"}]),
    "tolerations": ([{"key": "one", "operator": "Exists"}], [{"operator": "Exists"}]),
    "topologySpreadConstraints": (
        [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    ),
}
_CAPACITY: Values = {"cpu": "8", "memory": "32Gi", "gpuType": "example.org/gpu", "gpuCount": 2}
_LIMITS: Values = {"machineCountMin": 1, "machineCountMax": 9}
_BOUNDS: Values = {"autoscale": True, **_LIMITS}
#: What a group's key, or one below it, needs in its group to do anything.
GROUP_COMPANIONS: Mapping[str, Values] = {
    "machineCountMin": _BOUNDS,
    "machineCountMax": _BOUNDS,
    "capacity": {**_BOUNDS, "capacity": _CAPACITY},
    "autoscalingOptions": _BOUNDS,
    "machineCount": {"autoscale": False},
    "machineRootVolume": {"machineRootVolume": {"diskSize": 40}},
    "machineNetworking.ports.[].fixedIPs": {
        "machineNetworking": {"ports": [{"network": {"id": openstack_id(3)}}]}
    },
    "autoscale": {"machineCount": 1, "machineCountMin": 1, "machineCountMax": 3},
}
#: Keys of a group for which no machine may be replaced, whatever their value.
NEVER_ROLL = {
    *("machineCount", "machineCountMin", "machineCountMax", "autoscale", "capacity"),
    *("autoscalingOptions", "nodeDrainTimeout", "nodeVolumeDetachTimeout", "nodeDeletionTimeout"),
    *("minReadySeconds", "rolloutStrategy", "healthCheck", "nodeAnnotations"),
}
#: Keys of a group for which its machines are replaced, whatever else is said.
ALWAYS_ROLL = {
    *("machineFlavor", "kubernetesVersion", "machineImageId", "machineImage", "failureDomain"),
    *("machineRootVolume", "machineNetworking", "machineMetadata", "machineTags"),
    *("serverGroupId", "serverGroupName", "schedulerHints", "machineConfigDrive"),
    *("additionalBlockDevices", "containerdBlockDevice", "kubeletExtraArgs", "kubeadmConfigSpec"),
}
#: A scenario in which a key, named by the end of its path, may matter although none sets it there.
ALSO_IN: Mapping[str, str] = {
    "ignition": "flatcar",
    "osDistro": "minimal",
    "machineConfigDrive": "minimal",
}
#: An API that is reached by other means than a port on the cluster's network.
_REACHED: Values = {
    "enableLoadBalancer": False,
    "associateFloatingIP": False,
    "fixedIP": "10.0.0.9",
}
_BOUNDED: Values = {"nodeGroups": [{"name": "one", "machineFlavor": "m1.small", **_BOUNDS}]}
_COUNTED_BY_DEFAULT: Values = {"nodeGroups": [{"name": "one", "machineFlavor": "m1.small"}]}
_BOUNDED_BY_DEFAULT: Values = {**_COUNTED_BY_DEFAULT, "nodeGroupDefaults": _BOUNDS}
#: What a key outside of node groups, or all keys below a path, need in the cluster.
COMPANIONS: Mapping[str, Values] = {
    "nodeGroups.[].machineCountMin": _BOUNDED,
    "nodeGroups.[].machineCountMax": _BOUNDED,
    "nodeGroupDefaults.machineCount": {
        **_COUNTED_BY_DEFAULT,
        "nodeGroupDefaults": {"machineCount": 1},
    },
    "nodeGroupDefaults.machineCountMin": _BOUNDED_BY_DEFAULT,
    "nodeGroupDefaults.machineCountMax": _BOUNDED_BY_DEFAULT,
    "nodeGroupDefaults.capacity": {
        **_BOUNDED,
        "nodeGroupDefaults": {"capacity": _CAPACITY},
    },
    "nodeGroupDefaults.autoscale": {
        "nodeGroups": [{"name": "one", "machineFlavor": "m1.small", "machineCount": 1, **_LIMITS}]
    },
    "apiServer.loadBalancerSubnetFilters": {
        "apiServer": {"loadBalancerNetworkFilter": {"name": "one"}}
    },
    "controlPlane.machineNetworking.ports.[].network": {"apiServer": _REACHED},
    "controlPlane.machineNetworking.ports.[].fixedIPs": {
        "apiServer": _REACHED,
        "controlPlane": {"machineNetworking": {"ports": [{"network": {"id": openstack_id(1)}}]}},
    },
    "etcd.encryption": {"etcd": {"encryption": {"enabled": True}}},
    # Where it does kube-proxy's work, addons say something of the control plane.
    "addons": {"addons": {"enabled": True, "cni": {"enabled": True, "type": "cilium"}}},
    "bastion.enabled": {
        "bastion": {
            "machineFlavor": "m1.small",
            "machineImageId": openstack_id(1),
            "floatingIP": "",
        }
    },
    "additionalFiles": {"additionalFiles": [{"path": "/etc/one", "content": "1"}]},
    "additionalFiles.[].contentFrom": {
        "additionalFiles": [
            {"path": "/etc/one", "contentFrom": {"secret": {"name": "one", "key": "two"}}}
        ]
    },
    "nodeGroupDefaults.autoscalingOptions": _BOUNDED,
}
#: Keys another value of which changes no object, and why.
IDLE: Mapping[str, str] = {
    "controlPlane.rolloutStrategy.type": "Cluster API knows one value",
    "clusterApi.additionalSyncMachineAnnotations": "says which nodeAnnotations are refused",
    "azimuthAuthorizationWebhook.additionalAuthorizers.[].type": "goes with the name",
    "azimuthAuthorizationWebhook.additionalAuthorizers.[].name": "goes with the type",
}
