# SPDX-License-Identifier: Apache-2.0
"""A circuit breaker: while the management cluster does not respond, one thread probes it.

Every attempt against one that takes packets and never answers costs a thread the whole timeout, and
Magnum starts a thread for each cluster every ten seconds. So after some attempts in a row without
any answer the others are refused at once for a while; then one goes through to try.

It is written here because what there is does not do: OpenStack's requirements hold no such library
(tenacity repeats and waits, it does not refuse), and pybreaker, the best known one, holds one lock
for the length of every call, goes by the wall clock and opens again without jitter.
"""

from __future__ import annotations

from collections.abc import Callable
import random
import threading
import time

from magnum.drivers.k8s_capi_helm.metrics import record

#: Seconds of the first pause, at most; each failed try doubles it up to the breaker's longest.
_FIRST_PAUSE = 2.0


class CircuitBreaker:
    """Whether the management cluster may be asked now; safe to share between threads.

    An answer of any kind, a refusal or an error of the server too, is one: only silence counts.

    :param failures: attempts in a row without an answer until others are refused; 0 for never.
    :param max_pause: seconds that a pause between two tries has at most.
    :param max_wait: seconds after which an attempt without a reported outcome counts as lost.
    :param clock: seconds that only ever go up.
    :param jitter: a random number between two others, so that conductors do not try in step.
    :param management: name of the management cluster in metrics, "" for the default one.
    """

    def __init__(
        self,
        *,
        failures: int,
        max_pause: float,
        max_wait: float,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[float, float], float] = random.uniform,
        management: str = "",
    ) -> None:
        self._management = management
        self._limit = failures
        self._longest = max_pause
        self._patience = max_wait
        self._clock = clock
        self._spread = jitter
        self._lock = threading.Lock()
        self._silent = 0
        self._tries = 0
        self._next = 0.0
        self._why = ""

    def refusal(self) -> str:
        """Why nothing is sent now, for the operator; "" if the request may go through.

        Whoever is let through while others are refused is the one that tries, and has to tell how
        it went with :meth:`close` or :meth:`record_failure`.
        """
        with self._lock:
            now = self._clock()
            if not self._is_open():
                return ""
            if now >= self._next:
                self._tries += 1
                self._next = now + self._patience
                return ""
            return (
                f"not sent, because {self._silent} consecutive attempts had no response "
                f"({self._why}); the next probe is within {self._next - now:.0f} seconds"
            )

    def is_open(self) -> bool:
        """Whether requests are refused, but for one now and then that tries."""
        with self._lock:
            return self._is_open()

    def close(self) -> None:
        """Close the circuit: a response has arrived, or the management cluster is another one."""
        with self._lock:
            if self._is_open():
                record.breaker_state(self._management, is_open=False)
            self._silent, self._tries, self._why = 0, 0, ""

    def record_failure(self, detail: str, *, is_short: bool = False) -> None:
        """There was no answer.

        :param detail: what was seen instead, for the operator.
        :param is_short: the management cluster had less time than usual, so that this does not
            make it silent; it may be the end of a try all the same.
        """
        with self._lock:
            if is_short and not self._is_open():
                return
            self._silent += 1
            self._why = detail
            if self._is_open():
                record.breaker_state(self._management, is_open=True)
                pause = min(self._longest, _FIRST_PAUSE * 2**self._tries)
                self._next = self._clock() + self._spread(pause / 2, pause)

    def _is_open(self) -> bool:
        return 0 < self._limit <= self._silent
