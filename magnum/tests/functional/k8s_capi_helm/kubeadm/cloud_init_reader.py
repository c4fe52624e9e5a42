# SPDX-License-Identifier: Apache-2.0
"""Run by the Python that has cloud-init: reads texts and writes their files below directories.

It is no module of the tests: nothing but cloud-init is there.
"""

import json
import logging
import os
import sys

from cloudinit import util
from cloudinit.config import cc_write_files, schema
from cloudinit.handlers import jinja_template


class Warnings(logging.Handler):
    """Keeps what is logged as a warning or worse."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def read(text, facts, root):
    """What cloud-init makes of one text."""
    kept = Warnings()
    logging.getLogger().handlers = [kept]
    found = util.load_yaml(jinja_template.render_jinja_payload(text, "user-data", facts))
    try:
        schema.validate_cloudconfig_schema(found, strict=True)
    except schema.SchemaValidationError as error:
        kept.messages.append(str(error))
    for one in found["write_files"]:
        one["path"] = os.path.join(root, one["path"].lstrip("/"))
        # Only root may give a file away.
        if os.getuid():
            one["owner"] = "-1:-1"
    cc_write_files.write_files("write_files", found["write_files"], "root:root")
    commands = [*found.get("bootcmd", []), *found["runcmd"]]
    return {"problems": kept.messages, "script": util.shellify(commands)}


def main():
    given = json.load(sys.stdin)
    read_texts = [read(text, given["facts"], root) for text, root in given["texts"]]
    json.dump(read_texts, sys.stdout)


if __name__ == "__main__":
    main()
