# SPDX-License-Identifier: Apache-2.0
"""The console script ``k8s-capi-helm``: it loads Magnum's configuration and runs the command."""

from __future__ import annotations

import contextlib
from importlib import metadata
import sys
from typing import Any
import warnings

from magnum_k8s_capi_helm import status

#: Exit status of a command that cannot say anything: that of monitoring plug-ins.
UNKNOWN = 3


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    if not sys.warnoptions:
        # Libraries of Magnum warn of themselves, on the output that monitoring reads.
        warnings.simplefilter("ignore")
    try:
        from magnum.drivers.k8s_capi_helm.commands.app import OperatorApp
    except ImportError as error:
        sys.stderr.write(status.missing_magnum(error))
        return UNKNOWN
    version = metadata.version(status.DISTRIBUTION)
    app = OperatorApp(begin, status.CHECKS, run_periodic_tasks, version=version)
    return app.run(sys.argv[1:] if argv is None else argv)


def begin(options: Any) -> Any:
    """Load Magnum's configuration, as magnum-conductor does, and begin as its service user.

    :param options: with ``config_file`` and ``config_dir``, lists of paths or None.
    :raises errors.InvalidConfiguration: a file cannot be read.
    """
    from oslo_config import cfg

    import magnum.conf
    from magnum.drivers.k8s_capi_helm import conf, errors
    from magnum.drivers.k8s_capi_helm.handlers import reconciliation
    from magnum.drivers.k8s_capi_helm.reconcile import clients

    files, directories = options.config_file or [], options.config_dir or []
    arguments = [f"--config-file={path}" for path in files]
    arguments += [f"--config-dir={path}" for path in directories]
    try:
        magnum.conf.CONF(arguments, project="magnum")
    except (cfg.Error, OSError, UnicodeDecodeError) as error:
        raise errors.InvalidConfiguration(
            "The configuration of Magnum cannot be read. Name its files with --config-file.",
            status.unreadable_configuration(error, [*files, *directories]),
        ) from None
    conf.register_opts(magnum.conf.CONF)
    return reconciliation.of_periodic_task(clients.build(magnum.conf.CONF), magnum.conf.CONF)


def run_periodic_tasks(cluster: Any) -> None:
    """Run Magnum's periodic tasks for one cluster: its status if it is in progress, its health.

    They are Magnum's own jobs, which send its notifications and destroy what is deleted.

    :param cluster: ``magnum.objects.Cluster``.
    """
    from oslo_service import loopingcall

    from magnum.common import rpc
    import magnum.conf
    from magnum.service import periodic

    if rpc.TRANSPORT is None:
        rpc.init(magnum.conf.CONF)
    # The driver's clients of this process, which ends soon, watch nothing and show no metrics.
    for option, value in (("watch_staleness", 0), ("metrics_directory", ""), ("metrics_port", 0)):
        magnum.conf.CONF.set_override(option, value, "capi_helm")
    context = cluster.obj_context
    # A job says by this exception that it is done.
    if cluster.status.endswith("_IN_PROGRESS"):
        with contextlib.suppress(loopingcall.LoopingCallDone):
            periodic.ClusterUpdateJob(context, cluster).update_status()
    if cluster.status != "DELETE_COMPLETE":
        with contextlib.suppress(loopingcall.LoopingCallDone):
            periodic.ClusterHealthUpdateJob(context, cluster).update_health_status()
