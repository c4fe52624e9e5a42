# SPDX-License-Identifier: Apache-2.0
"""Threads that take turns: many workers at once, in an order that a seed decides, in no real time.

One thread runs at any moment. It gives its turn away where it waits, for seconds that only this
clock knows, and goes on when all that comes earlier is done. So what meets in a conductor meets in
a test, and always in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import heapq
import random
import threading


class Turns:
    """Runs workers side by side.

    :ivar now: seconds since the beginning.
    """

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.lot = random.Random(seed)  # noqa: S311
        #: When which worker goes on; those of the same moment by lot.
        self._due: list[tuple[float, float, int]] = []
        self._go: list[threading.Semaphore] = []
        self._back = threading.Semaphore(0)
        self._worker = threading.local()

    def clock(self) -> float:
        """Seconds that only ever go up."""
        return self.now

    def pause(self, seconds: float) -> None:
        """Let the others work for so long; nothing for a thread that is no worker."""
        number = getattr(self._worker, "number", None)
        if number is not None:
            self._wait(number, self.now + seconds)
            self._back.release()
            self._go[number].acquire()

    def run(self, works: Iterable[tuple[float, Callable[[], object]]]) -> list[Exception]:
        """Carry works out, each from a moment on; returns what they have raised."""
        raised: list[Exception] = []

        def work(number: int, call: Callable[[], object]) -> None:
            self._worker.number = number
            self._go[number].acquire()
            try:
                call()
            except Exception as error:
                raised.append(error)
            finally:
                self._back.release()

        threads = []
        for moment, call in works:
            number = len(self._go)
            self._go.append(threading.Semaphore(0))
            self._wait(number, self.now + moment)
            threads.append(threading.Thread(target=work, args=(number, call), daemon=True))
            threads[-1].start()
        while self._due:
            moment, _, number = heapq.heappop(self._due)
            self.now = max(self.now, moment)
            self._go[number].release()
            self._back.acquire()
        for thread in threads:
            thread.join()
        return raised

    def _wait(self, number: int, moment: float) -> None:
        heapq.heappush(self._due, (moment, self.lot.random(), number))
