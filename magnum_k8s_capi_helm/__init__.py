# SPDX-License-Identifier: Apache-2.0
"""Entry points of the driver, wherever it is installed on the path of Magnum's Python.

Python finds ``magnum.drivers.k8s_capi_helm`` only below the directory that has Magnum itself. A
package of a distribution puts Magnum into ``dist-packages``, pip puts this driver below
``/usr/local``, and a virtual environment may see Magnum in the system's directory. So the entry
points lead here, and importing this package adds the driver's directory to the path of
``magnum.drivers`` (https://docs.python.org/3/reference/import.html#path-attributes-on-modules).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
import sys
from typing import Any
import warnings

#: Where the driver of this very distribution is.
DIRECTORY = Path(__file__).resolve().parent.parent / "magnum" / "drivers"


def list_opts() -> Any:
    """The options of the driver, for ``oslo-config-generator``."""
    from magnum.drivers.k8s_capi_helm import conf

    return conf.list_opts()


def _join() -> None:
    """Let Magnum find the driver. Without Magnum only the check of the installation is of use."""
    with contextlib.suppress(ModuleNotFoundError), warnings.catch_warnings():
        if not sys.warnoptions:
            # Libraries of Magnum warn of themselves. A service has loaded them before; what
            # programs of this package print is read by people and by monitoring.
            warnings.simplefilter("ignore")
        if "eventlet" not in sys.modules:
            # So this is a program of this package, and no service: it looks no name up in a green
            # thread, and what eventlet loads for that is a tenth of its start.
            os.environ.setdefault("EVENTLET_NO_GREENDNS", "yes")
        import magnum.drivers

        path = magnum.drivers.__path__
        if (DIRECTORY / "k8s_capi_helm").is_dir() and str(DIRECTORY) not in path:
            # First: an older copy beside Magnum, of a package of the distribution, must not win.
            path.insert(0, str(DIRECTORY))


_join()
