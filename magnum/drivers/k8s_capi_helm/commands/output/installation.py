# SPDX-License-Identifier: Apache-2.0
"""Checks of an installation, as the distribution of the driver has them.

They belong to the distribution and not to the driver: they have to run where the driver, or Magnum,
cannot even be imported. Therefore the console script passes them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

#: Whether something is a failure, else a warning, and the sentence about it.
InstallationResult = tuple[bool, str]
#: Title, and what finds faults on this host by Magnum's configuration.
InstallationCheck = tuple[str, Callable[[Any], Iterator[InstallationResult]]]
