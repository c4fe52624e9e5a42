# SPDX-License-Identifier: Apache-2.0
"""One snapshot per cluster, read directly or from watches, which only one process keeps.

:func:`look` makes it, and does not know where its reader has the objects from. Verbs read directly;
the process that runs Magnum's periodic tasks also has :class:`Watching`.
"""

from magnum.drivers.k8s_capi_helm.observer.look import Listed, look, Reader
from magnum.drivers.k8s_capi_helm.observer.watching import View, Watching

__all__ = ["Listed", "Reader", "View", "Watching", "look"]
