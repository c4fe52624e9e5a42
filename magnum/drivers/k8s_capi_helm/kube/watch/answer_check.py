# SPDX-License-Identifier: Apache-2.0
"""Whether the management cluster answers, asked once for all threads."""

from __future__ import annotations

from collections.abc import Callable
import threading

from oslo_log import log as logging

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.kube.watch.snapshot import Reader
from magnum.drivers.k8s_capi_helm.model import names

LOG = logging.getLogger(__name__)

#: Seconds that an answer of the management cluster, or none, counts for all who ask.
ANSWER_HOLDS = 5.0


class AnswerCheck:
    """One request of one thread, for a few seconds and all; safe to share between threads.

    :param clock: seconds that only ever go up.
    """

    def __init__(self, kube: Reader, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: float | None = None
        self._answers = False

    def answers(self) -> bool:
        """Whether it has answered just now; who comes while another thread asks waits for that.

        What is known takes no lock: hundreds of passes begin at once.
        """
        if self._is_due():
            with self._lock:
                if self._is_due():
                    self._answers = self._ask()
                    self._asked = self._clock()
        return self._answers

    def _is_due(self) -> bool:
        return self._asked is None or self._clock() - self._asked > ANSWER_HOLDS

    def _ask(self) -> bool:
        try:
            self._kube.get(names.NAMESPACE, "", "kube-system")
        except errors.NotAllowed:
            # An answer, by who knows the driver and lets it read less than usual.
            return True
        except errors.DriverError as error:
            LOG.warning("The management cluster does not respond: %s", error.detail)
            return False
        return True
