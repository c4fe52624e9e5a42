# SPDX-License-Identifier: Apache-2.0
"""Programs that run in a tenant's cluster and use OpenStack, in the versions of the addons.

Nothing of them is part of a sandbox. ``python -m sandbox.management.cloud_programs`` pins a new
version of the table below and builds what is not there. The module of cloud-provider-openstack has
the sources of its Helm charts too, which tests render.

The cluster autoscaler is not among them: its module cannot be had from a module proxy.
https://github.com/kubernetes/cloud-provider-openstack
"""

import dataclasses

from sandbox.management import binaries, pinned_module
from sandbox.management.binaries import Program
from sandbox.management.pinned_module import PinnedModule


@dataclasses.dataclass(frozen=True)
class CloudRelease(PinnedModule):
    """A release of a module with such programs.

    :ivar path: of the module.
    """

    version: str
    path: str = "k8s.io/cloud-provider-openstack"
    sums = "cloudprograms"
    table = "sandbox.management.cloud_programs"

    @property
    def module(self) -> str:
        """Path of its Go module."""
        return self.path

    def program(self, name: str) -> Program:
        """One of its programs, which knows its version."""
        text = f"v{self.version}"
        variables = {
            "k8s.io/component-base/version.gitVersion": text,
            f"{self.path}/pkg/version.Version": text,
            "main.version": text,
        }
        flags = " ".join(f"-X {variable}={value}" for variable, value in variables.items())
        package = f"{self.path}/cmd/{name}"
        return Program(name, self.sums, package, self.version, flags=flags, release=self)


#: The versions that the charts of the addons ccm-openstack and csi-cinder install.
CONTROLLER_RELEASE = CloudRelease("1.36.0")
VOLUME_RELEASE = CloudRelease("1.35.0")
PROVISIONER_RELEASE = CloudRelease("5.3.0", "github.com/kubernetes-csi/external-provisioner/v5")
RESIZER_RELEASE = CloudRelease("1.14.0", "github.com/kubernetes-csi/external-resizer")
RELEASES = (CONTROLLER_RELEASE, VOLUME_RELEASE, PROVISIONER_RELEASE, RESIZER_RELEASE)

CONTROLLER = CONTROLLER_RELEASE.program("openstack-cloud-controller-manager")
KEYSTONE_AUTH = CONTROLLER_RELEASE.program("k8s-keystone-auth")
KEY_PLUGIN = CONTROLLER_RELEASE.program("barbican-kms-plugin")
VOLUMES = VOLUME_RELEASE.program("cinder-csi-plugin")
PROVISIONER = PROVISIONER_RELEASE.program("csi-provisioner")
RESIZER = RESIZER_RELEASE.program("csi-resizer")


PROGRAMS = (CONTROLLER, KEYSTONE_AUTH, KEY_PLUGIN, VOLUMES, PROVISIONER, RESIZER)


def main() -> None:
    """Pin every release that is not pinned yet, and build what is not on this machine."""
    new = pinned_module.pin(RELEASES)
    print("\n".join(new) or "every release is pinned")
    for program in PROGRAMS:
        print(binaries.one(program))


if __name__ == "__main__":
    main()
