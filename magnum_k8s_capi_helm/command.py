# SPDX-License-Identifier: Apache-2.0
"""The console script ``k8s-capi-helm``: it loads Magnum's configuration and runs the command."""

from __future__ import annotations

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
    app = OperatorApp(begin, status.CHECKS, conductor, version=version)
    return app.run(sys.argv[1:] if argv is None else argv)


def conductor() -> Any:
    """The conductors of this cloud; only what speaks to them loads Magnum's services."""
    from magnum_k8s_capi_helm.conductor import MagnumConductor

    return MagnumConductor()


def begin(options: Any) -> Any:
    """Load Magnum's configuration, as magnum-conductor does, and begin as its service user.

    :param options: with ``config_file`` and ``config_dir``, lists of paths or None.
    :raises errors.InvalidConfiguration: a file cannot be read.
    """
    from oslo_config import cfg

    import magnum.conf
    from magnum.drivers.k8s_capi_helm import conf, errors
    from magnum.drivers.k8s_capi_helm.handlers.entry import log_context, reconciliation
    from magnum.drivers.k8s_capi_helm.reconcile.process import clients

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
    log_context.enable_log_context()
    return reconciliation.of_periodic_task(clients.build(magnum.conf.CONF), magnum.conf.CONF)
