# SPDX-License-Identifier: Apache-2.0
"""Single requests to the management cluster, through the official Kubernetes client."""

import json
from pathlib import Path
from typing import Any

from kubernetes import client, config
from urllib3.exceptions import HTTPError

from sandbox.state import SandboxError

REQUEST_TIMEOUT = 20.0

Document = dict[str, Any]


class Refused(SandboxError):
    """The API server answered with an error.

    :ivar status: the HTTP status, such as 404.
    """

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Unreachable(SandboxError):
    """The API server did not answer."""


class Connection:
    """The API server that a kubeconfig names.

    :param kubeconfig: its path or its content; ``$KUBECONFIG`` when None.
    """

    def __init__(self, kubeconfig: Path | Document | None = None) -> None:
        settings = client.Configuration()
        if isinstance(kubeconfig, dict):
            take: Any = config.load_kube_config_from_dict
            take(kubeconfig, client_configuration=settings)
        else:
            load: Any = config.load_kube_config
            load(str(kubeconfig) if kubeconfig else None, client_configuration=settings)
        settings.proxy = None  # one that the environment names has no way to our loopback
        self._client: Any = client.ApiClient(settings)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Document | None = None,
        content_type: str = "application/json",
        timeout: float = REQUEST_TIMEOUT,
    ) -> Document:
        """The answer to one request; empty when it is not a JSON object.

        :raises Refused: the API server answered with an error.
        :raises Unreachable: it did not answer within ``timeout`` seconds.
        """
        headers = {"Accept": "application/json", "Content-Type": content_type}
        method, url, headers, body, _ = self._client.param_serialize(
            method,
            path,
            query_params=query or [],
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._client.call_api(method, url, headers, body, _request_timeout=timeout)
            data = answer.read()
        except (client.ApiException, HTTPError, OSError) as error:
            raise Unreachable(
                f"the management cluster does not answer {method} {path}: {error}; "
                "look at `python -m sandbox status`"
            ) from error
        try:
            parsed: Document = json.loads(data)
        except ValueError:
            parsed = {}
        if answer.status >= 400:
            said = parsed.get("message") or answer.reason
            raise Refused(f"{method} {path}: {answer.status} {said}", answer.status)
        return parsed if isinstance(parsed, dict) else {}
