# SPDX-License-Identifier: Apache-2.0
"""TLS data of a kubeconfig as files in memory, which no directory on a disk has.

The kubernetes client writes what stands in a kubeconfig, the private key as well, into the
directory for temporary files, and urllib3 reads these files for each new connection. With a
read-only root that directory may be missing, and a cleaner deletes old files there. So the client
library gets files of which only this process has a descriptor, for as long as their client lives
(https://man7.org/linux/man-pages/man2/memfd_create.2.html).
"""

from __future__ import annotations

import base64
import contextlib
import os
import ssl
from typing import Any

import kubernetes.client

#: A section of a kubeconfig, what each of its entries has, and files of which it may have the data.
_DATA = (
    ("clusters", "cluster", ("certificate-authority",)),
    ("users", "user", ("client-certificate", "client-key")),
)


def data_as_files(config: Any) -> contextlib.ExitStack:
    """Give a kubeconfig's data the form of files in memory.

    An exec plugin that receives the cluster's data gets the authority as it stands there
    (https://kubernetes.io/docs/reference/config-api/client-authentication.v1/#client-authentication-k8s-io-v1-Cluster).

    :param config: as the client library has read it; it is changed.
    :returns: closes the files.
    :raises ValueError: some of it is not base64.
    """
    is_shown_to_plugin = _is_shown_to_plugin(config)
    with contextlib.ExitStack() as opened:
        for section, key, references in _DATA:
            if key == "cluster" and is_shown_to_plugin:
                continue
            for entry in config.value.get(section) or ():
                body = entry.value.get(key)
                for reference in references:
                    if isinstance(body, dict) and body.get(f"{reference}-data"):
                        content = base64.b64decode(body.pop(f"{reference}-data"))
                        body[reference] = _memory_file(content, opened)
        return opened.pop_all()


def _is_shown_to_plugin(config: Any) -> bool:
    users = (entry.value.get("user") or {} for entry in config.value.get("users") or ())
    return any((user.get("exec") or {}).get("provideClusterInfo") for user in users)


def _memory_file(content: bytes, opened: contextlib.ExitStack) -> str:
    """The path of a file in memory that only this process can read."""
    file = opened.enter_context(os.fdopen(os.memfd_create("kubeconfig"), "wb", buffering=0))
    file.write(content)
    return f"/proc/self/fd/{file.fileno()}"


def check_files(configuration: kubernetes.client.Configuration) -> None:
    """Read a configuration's files as each new connection does.

    :raises OSError: a file cannot be read, or is no certificate or key.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    part = "certificate-authority"
    try:
        if configuration.ssl_ca_cert:
            context.load_verify_locations(cafile=configuration.ssl_ca_cert)
        part = "client-certificate with client-key"
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except ssl.SSLError as error:  # its text names no file
        raise OSError(f"{part}: {error}") from None
