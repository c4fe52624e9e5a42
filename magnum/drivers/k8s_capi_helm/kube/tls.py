# SPDX-License-Identifier: Apache-2.0
"""TLS to the management cluster with the data of a kubeconfig, which no file on a disk gets.

The kubernetes client writes what stands in a kubeconfig, the private key as well, into the
directory for temporary files, and urllib3 reads these files for each new connection. With a
read-only root that directory may be missing, and a cleaner deletes old files there. So the data is
handed over in memory (https://man7.org/linux/man-pages/man2/memfd_create.2.html), and read once.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
import contextlib
import os
import ssl
from typing import Any

import kubernetes.client
from urllib3.util import ssl_

#: A section of a kubeconfig, what each of its entries has, and files of which it may have the data.
_DATA = (
    ("clusters", "cluster", ("certificate-authority",)),
    ("users", "user", ("client-certificate", "client-key")),
)
#: By which urllib3 would read the files again.
_FILES = ("ca_certs", "ca_cert_data", "cert_file", "key_file")


@contextlib.contextmanager
def data_as_files(config: Any) -> Iterator[None]:
    """Give a kubeconfig's data the form of files, in memory and for as long as this is open.

    An exec plugin that is told of the cluster gets the authority as it stands in the kubeconfig
    (https://kubernetes.io/docs/reference/config-api/client-authentication.v1/#client-authentication-k8s-io-v1-Cluster).

    :param config: as the client library has read it; it is changed.
    :raises ValueError: some of it is not base64.
    """
    with contextlib.ExitStack() as opened:
        for section, key, references in _DATA:
            for entry in config.value.get(section) or ():
                body = entry.value.get(key)
                for reference in references:
                    if key == "cluster" and _is_shown_to_plugin(config):
                        continue
                    if isinstance(body, dict) and body.get(f"{reference}-data"):
                        content = base64.b64decode(body.pop(f"{reference}-data"))
                        body[reference] = opened.enter_context(_memory_file(content))
        yield


def _is_shown_to_plugin(config: Any) -> bool:
    users = (entry.value.get("user") or {} for entry in config.value.get("users") or ())
    return any((user.get("exec") or {}).get("provideClusterInfo") for user in users)


@contextlib.contextmanager
def _memory_file(content: bytes) -> Iterator[str]:
    """The path of a file in memory that only this process can read."""
    with os.fdopen(os.memfd_create("kubeconfig"), "wb", buffering=0) as file:
        file.write(content)
        yield f"/proc/self/fd/{file.fileno()}"


def context(configuration: kubernetes.client.Configuration) -> ssl.SSLContext:
    """Whom to trust and who this client is, as a configuration's files say.

    :raises OSError: a file cannot be read, or is no certificate or key.
    """
    result: ssl.SSLContext = ssl_.create_urllib3_context(
        cert_reqs=ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE
    )
    if configuration.ssl_ca_cert:
        result.load_verify_locations(cafile=configuration.ssl_ca_cert)
    elif configuration.verify_ssl:
        result.load_default_certs()
    if configuration.cert_file:
        result.load_cert_chain(configuration.cert_file, configuration.key_file)
    return result


def use_context(api: kubernetes.client.ApiClient, tls_context: ssl.SSLContext) -> None:
    """Let a client's connections have this context instead of files."""
    settings = api.rest_client.pool_manager.connection_pool_kw
    for name in _FILES:
        settings.pop(name, None)
    settings["ssl_context"] = tls_context
