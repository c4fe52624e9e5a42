# SPDX-License-Identifier: Apache-2.0
"""The log as an operator has it: lines of oslo.log's own formatters, as text and as JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

import fixtures
from oslo_config import cfg
from oslo_log import formatters, log

PACKAGE = "magnum.drivers.k8s_capi_helm"


class LogLines(fixtures.Fixture):  # type: ignore[misc]
    """What is logged from now on.

    :ivar texts: lines of the driver with the default formats of oslo.log.
    :ivar documents: the same lines as the JSON formatter writes them.
    :ivar others: lines of libraries and of Magnum, with the default formats.
    """

    def __init__(self, level: int = logging.DEBUG) -> None:
        super().__init__()
        self.level = level
        self.texts: list[str] = []
        self.documents: list[dict[str, Any]] = []
        self.others: list[str] = []

    def _setUp(self) -> None:
        conf = cfg.ConfigOpts()
        log.register_options(conf)
        conf([])
        handler = _Handler(self, formatters.ContextFormatter(config=conf))
        root = logging.getLogger()
        before = root.level
        root.addHandler(handler)
        root.setLevel(self.level)
        self.addCleanup(root.setLevel, before)
        self.addCleanup(root.removeHandler, handler)

    def clear(self) -> None:
        """Forget the lines so far."""
        for lines in (self.texts, self.documents, self.others):
            lines.clear()


class _Handler(logging.Handler):
    def __init__(self, lines: LogLines, text: logging.Formatter) -> None:
        super().__init__()
        self._lines, self._text, self._json = lines, text, formatters.JSONFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        # Formatters write into the record what they find.
        text = self._text.format(logging.makeLogRecord(vars(record)))
        if not record.name.startswith(PACKAGE):
            self._lines.others.append(text)
            return
        document = self._json.format(logging.makeLogRecord(vars(record)))
        self._lines.texts.append(text)
        self._lines.documents.append(json.loads(document))
