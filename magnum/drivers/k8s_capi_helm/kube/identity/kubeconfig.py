# SPDX-License-Identifier: Apache-2.0
"""The identity for the management cluster: its source, and whether it has changed.

The order is: the configured file, ``$KUBECONFIG``, ``~/.kube/config``, the pod's service account
(https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import functools
import hashlib
import os
import pathlib
import shutil
from typing import Any
import weakref

import kubernetes.client
import kubernetes.config
import urllib3
import yaml

from magnum.drivers.k8s_capi_helm import deadline, errors
from magnum.drivers.k8s_capi_helm.kube.identity import tls
from magnum.drivers.k8s_capi_helm.kube.identity.proxy import choose_proxy

_DEFAULT = "~/.kube/config"
_REFERENCES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
#: Lists of a kubeconfig, and what each of their entries has besides its name.
_SECTIONS = (("clusters", "cluster"), ("users", "user"), ("contexts", "context"))
#: What a user can have to be known by.
_CREDENTIALS = (
    *("token", "tokenFile", "client-certificate", "client-certificate-data"),
    *("username", "exec", "auth-provider"),
)
# Connections kept open to the management cluster by one process, as many as oslo.messaging has
# threads for requests; more may be open for a while.
_CONNECTIONS = 64
# Seconds that an exec plugin has for its answer; then it is told to end, and soon after killed.
_PLUGIN_LIMIT = 30
_PLUGIN_GRACE = 5
_PLUGIN_SHORTEST = 1.0
# The client library has no types for these.
_load_pod: Callable[..., None] = kubernetes.config.load_incluster_config
_merged: Callable[..., Any] = kubernetes.config.kube_config.KubeConfigMerger
_loader: Callable[..., Any] = kubernetes.config.kube_config.KubeConfigLoader


def find_kubeconfig(configured_path: str | None) -> str | None:
    """The kubeconfig that is in force now.

    :param configured_path: path from the configuration; wins when it is set, also when there
        is no such file.
    :returns: a path (for ``$KUBECONFIG`` possibly several, joined as there), or None when there is
        none and the process has to be in a pod.
    """
    if configured_path:
        return os.path.expanduser(configured_path)
    if from_environment := os.environ.get("KUBECONFIG"):
        return from_environment
    # In a container, the process's user may have no home, or one that it cannot look into.
    default = os.path.expanduser(_DEFAULT)
    return default if os.path.isfile(default) else None


def fingerprint(path: str | None, context: str = "") -> str:
    """A digest of everything the kubeconfig says, the files that it refers to included.

    :param context: the one that is used, "" for the current one.
    :raises errors.ManagementRefused: a file cannot be read, or is not YAML.
    """
    digest = hashlib.sha256(repr((path, context) if context else path).encode())
    for part in (path or "").split(os.pathsep) if path else ():
        try:
            content = pathlib.Path(part).read_bytes()
            digest.update(content)
            for reference in _references(content):
                digest.update(pathlib.Path(part).parent.joinpath(reference).read_bytes())
        except OSError as error:
            raise _unusable(path, f"{error.filename}: {error.strerror}") from None
        except yaml.YAMLError as error:
            raise _not_yaml(path, error) from None
    return digest.hexdigest()


def load(
    path: str | None, plugin_limit: float = _PLUGIN_LIMIT, context: str = ""
) -> kubernetes.client.ApiClient:
    """A client for the identity at *path*; None means the service account of the pod.

    :param plugin_limit: seconds that an exec plugin has for its answer.
    :param context: the one that is used, "" for the current one.
    :raises errors.ManagementRefused: it holds nothing that can be used.
    """
    configuration = kubernetes.client.Configuration()
    proxy_url, memory_files = None, contextlib.ExitStack()
    try:
        if path is None:
            _load_pod(client_configuration=configuration)
        else:
            config = _read(path, context)
            _check_server(config)
            memory_files = tls.data_as_files(config)
            _load_config(config, configuration, plugin_limit)
            tls.check_files(configuration)
            proxy_url = _proxy_url(config)
    except yaml.YAMLError as error:
        raise _not_yaml(path, error) from None
    except (kubernetes.config.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        raise _unusable(path, f"{type(error).__name__}: {error}") from None
    # Attempts are counted in one place, by the client, with a pause between them.
    configuration.retries = False
    configuration.connection_pool_maxsize = _CONNECTIONS
    try:
        proxy = choose_proxy(configuration.host, proxy_url, os.environ)
    except ValueError:  # its text may have a password
        raise _unusable(path, "the URL of the proxy is not valid") from None
    configuration.proxy, configuration.no_proxy = proxy.url, ""
    configuration.proxy_headers = dict(proxy.headers) or None
    try:
        api = kubernetes.client.ApiClient(configuration=configuration)
    except (urllib3.exceptions.HTTPError, ImportError, ValueError) as error:
        raise _unusable(path, f"proxy {proxy.url}: {type(error).__name__}: {error}") from None
    weakref.finalize(api, memory_files.close)
    return api


def _load_config(
    config: Any, configuration: kubernetes.client.Configuration, plugin_limit: float
) -> None:
    """Take a kubeconfig as the library's own loader does, and bound the exec plugins that it names.

    The library waits for a plugin without a limit, now and whenever a token has run out, so the
    plugin is started by ``timeout`` of coreutils, which ends its children too. Now it has no more
    time than whoever asked.
    """
    plugins = []
    for entry in config.value.get("users") or ():
        plugin = (entry.value.get("user") or {}).get("exec")
        if isinstance(plugin, dict) and "command" in plugin:
            now = max(_PLUGIN_SHORTEST, deadline.seconds_left(plugin_limit))
            limit = [f"--kill-after={_PLUGIN_GRACE}", f"{now:.1f}", plugin["command"]]
            plugin["args"] = [*limit, *(plugin.get("args") or ())]
            plugin["command"] = "timeout"
            plugins.append(plugin)
    _loader(config_dict=config, config_base_path=None).load_and_set(configuration)
    for plugin in plugins:
        plugin["args"][1] = str(plugin_limit)


def token_header(
    configuration: kubernetes.client.Configuration, path: str | None
) -> dict[str, str]:
    """The header with a token, {} without one; a plugin or a pod's file may give a fresh one.

    :param path: as of :func:`find_kubeconfig`.
    :raises errors.ManagementRefused: there is no token where it should be.
    """
    try:
        found = configuration.auth_settings().get("BearerToken")
    except (kubernetes.config.ConfigException, OSError) as error:
        raise _unusable(path, f"{type(error).__name__}: {error}") from None
    return {found["key"]: found["value"]} if found and found["value"] else {}


def check_context(path: str, context: str = "") -> None:
    """See that a context names a cluster and a user that can be used; no plugin is run.

    :param context: "" for the current one.
    :raises errors.ManagementRefused: the kubeconfig, or what it names, is missing or of no use.
    """
    try:
        config = _read(path, context)
        _check_server(config)
        user = config["users"].get_with_name(_context(config)["user"])["user"]
        has_plugin = _check_user(user)
    except yaml.YAMLError as error:
        raise _not_yaml(path, error) from None
    except (kubernetes.config.ConfigException, OSError, ValueError, TypeError, KeyError) as error:
        raise _unusable(path, f"{type(error).__name__}: {error}") from None
    if not has_plugin:
        load(path, context=context)


def _read(path: str, context: str = "") -> Any:
    """A kubeconfig, or several merged; what is missing in it raises ConfigException.

    :param context: is made the current one, unless it is "".
    """
    try:
        config = _merged(path).config
    except (AttributeError, KeyError, TypeError, kubernetes.config.ConfigException):
        # The library's own text may have an entry with its token.
        raise kubernetes.config.ConfigException(
            "it is empty, or no mapping with lists of clusters, users and contexts that have names"
        ) from None
    if config is None:
        raise kubernetes.config.ConfigException("there is no such file")
    for section, key in _SECTIONS:
        for entry in config.value[section]:
            if not isinstance(entry.value, dict):
                raise kubernetes.config.ConfigException(f"{section} is not a list of mappings")
            # The library's own name of an entry is everything in it, a token as well.
            entry.name = f"{entry.path}/{section}[name={entry.value.get('name')}]"
            if not isinstance(entry.value.get(key), dict | None):
                raise kubernetes.config.ConfigException(f"{key} in {entry.name} is not a mapping")
    if context:
        config.value["current-context"] = context
    return config


def _check_server(config: Any) -> None:
    """See that the current context has an address; without one the library asks this host."""
    cluster = config["clusters"].get_with_name(_context(config)["cluster"])["cluster"]
    server = str(cluster["server"])
    try:
        url = urllib3.util.parse_url(server)
    except urllib3.exceptions.LocationParseError:
        url = urllib3.util.Url()
    if url.scheme not in ("http", "https") or not url.host or " " in server:
        raise kubernetes.config.ConfigException(
            f"server in {cluster.name} is {server.rpartition('@')[2]!r}, and not a URL such as "
            "'https://192.0.2.1:6443' or 'https://[2001:db8::1]:6443'"
        )


def _check_user(user: Any) -> bool:
    """See that a user has credentials; whether a plugin gives them."""
    if not any(user.value.get(name) for name in _CREDENTIALS):
        raise kubernetes.config.ConfigException(
            f"{user.name} has none of {', '.join(_CREDENTIALS)}"
        )
    if user.value.get("exec"):
        plugin = user["exec"]
        command, _ = str(plugin["command"]), plugin["apiVersion"]
        # A path is relative to the kubeconfig, a name is looked up.
        place = os.path.join(os.path.dirname(user.path), command) if "/" in command else command
        if not shutil.which(place):
            raise kubernetes.config.ConfigException(
                f"command in {plugin.name} is {command!r}, and not an executable in PATH: "
                f"{os.environ.get('PATH', '')}"
            )
    return bool(user.value.get("exec") or user.value.get("auth-provider"))


def _context(config: Any) -> Any:
    return config["contexts"].get_with_name(config["current-context"])["context"]


def _proxy_url(config: Any) -> str | None:
    """What the cluster of the current context says."""
    cluster = config["clusters"].get_with_name(_context(config)["cluster"])["cluster"]
    url = cluster.value.get("proxy-url")
    return url if isinstance(url, str) else None


# Parsing takes milliseconds, each request asks, and the answer hardly ever changes.
@functools.lru_cache(maxsize=64)
def _references(content: bytes) -> tuple[str, ...]:
    """The files that a kubeconfig names; raises yaml.YAMLError."""
    return tuple(_named(yaml.safe_load(content)))


def _named(config: Any) -> Iterator[str]:
    if not isinstance(config, dict):
        return
    for section, key in (("clusters", "cluster"), ("users", "user")):
        for entry in config.get(section) or ():
            body = entry.get(key) if isinstance(entry, dict) else None
            for reference in _REFERENCES:
                if isinstance(body, dict) and isinstance(body.get(reference), str):
                    yield body[reference]


def _not_yaml(path: str | None, error: yaml.YAMLError) -> errors.ManagementRefused:
    """The error's own text quotes the line, which may hold a token."""
    mark = getattr(error, "problem_mark", None)
    return _unusable(path, f"not YAML, line {mark.line + 1 if mark else '?'}")


def _unusable(path: str | None, detail: str) -> errors.ManagementRefused:
    return errors.ManagementRefused(
        "This Magnum service has no usable kubeconfig for the management cluster. Ask the operator "
        "to set [capi_helm] kubeconfig_file to a kubeconfig that Magnum may read.",
        f"{source(path)}: {detail}",
    )


def source(path: str | None) -> str:
    """What the identity of a path of :func:`find_kubeconfig` is called in the operator's log."""
    return f"kubeconfig {path}" if path else "service account of the pod (no kubeconfig found)"
