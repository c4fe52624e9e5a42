# SPDX-License-Identifier: Apache-2.0
"""``k8s-capi-helm render``: the values or the objects that are desired of a cluster."""

from __future__ import annotations

import argparse
from typing import Any

import yaml

from magnum.drivers.k8s_capi_helm.commands.desired.options import (
    add_desired_arguments,
    read_desired,
)
from magnum.drivers.k8s_capi_helm.commands.output.lister import OperatorCommand
from magnum.drivers.k8s_capi_helm.commands.output.secret_mask import MASK, SecretMask
from magnum.drivers.k8s_capi_helm.model import Json, names


class Render(OperatorCommand):
    """Print the objects that Helm would render for a cluster, as YAML and without secrets.

    Nothing is written. Without options it is what Magnum's records ask for now; with a template, a
    chart version or labels what an upgrade leads to. Exit status 0: it is printed, 3: it could not
    be found out, or the driver would refuse it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Which cluster, and what of it."""
        parser = super().get_parser(prog_name)
        add_desired_arguments(parser)
        parser.add_argument(
            "--values", action="store_true", help="Print the values that the chart gets instead."
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print it."""
        run, desired = read_desired(self.program, self.program.begin(), parsed_args)
        if parsed_args.values:
            documents: list[Any] = [SecretMask().json(desired.values)]
        else:
            documents = [_masked(manifest) for manifest in desired.manifests(run)]
        text = yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True)
        self.program.stdout.write(text)


def _masked(manifest: Json) -> Json:
    """An object without secrets; of a Secret only the keys are left."""
    masked: Json = SecretMask().json(manifest)
    if manifest["kind"] != names.SECRET.name:
        return masked
    for field in ("data", "stringData"):
        if field in manifest:
            masked[field] = dict.fromkeys(manifest[field] or {}, MASK)
    return masked
