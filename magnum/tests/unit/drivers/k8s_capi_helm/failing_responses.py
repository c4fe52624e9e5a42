# SPDX-License-Identifier: Apache-2.0
"""Services in every mood: what stands between the driver and an answer, question by question."""

from __future__ import annotations

from collections.abc import Callable
import json
import re
from typing import Any

import requests

from magnum.tests.unit.drivers.k8s_capi_helm.suites.http_server import status

#: Status code and body; None for a connection that ends without an answer.
Reply = tuple[int, bytes] | None
_HTML = b"<html><head><title>Proxy</title></head><body>Not Found</body></html>"
_OTHER = "somebody-elses"


def key(service: str, method: str, path: str, query: str = "") -> str:
    """A question, without what differs each time it is asked."""
    labels = re.search(r"labelSelector=([^&]*)", query)
    names = re.search(r"(?:^|&)(name|description|device_id)=", query)
    ends = f" [{labels[1]}]" if labels else f" [{names[1]}]" if names else ""
    plain = re.sub(r"magnum-chart-[0-9a-f]+", "magnum-chart-*", path)
    return f"{service} {method} {re.sub(r'/(ac|sg|ip|lb|s|p)-[0-9]+', r'/*', plain)}{ends}"


class Mood:
    """One way not to answer.

    :ivar name: for people.
    :ivar is_true: the answer says that the very thing is not there; whoever believes it is right.
    """

    def __init__(
        self,
        name: str,
        change: Callable[[str, str, Callable[[], Reply]], Reply],
        *,
        only: Callable[[str], bool] = lambda question: True,
        is_true: bool = False,
    ) -> None:
        self.name, self._change, self.only, self.is_true = name, change, only, is_true

    def __call__(self, question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
        return self._change(question, thing, answer)


def _is_kube(question: str) -> bool:
    return question.startswith("kubernetes ")


def _is_read(question: str, lengths: dict[str, tuple[int, ...]]) -> bool:
    parts = question.split(" ")[2].strip("/").split("/")
    return question.startswith("kubernetes GET ") and len(parts) in lengths[parts[0]]


def _is_named(question: str) -> bool:
    """Whether one object is read by its name."""
    return _is_read(question, {"api": (4, 6), "apis": (7,)})


def _is_list(question: str) -> bool:
    return _is_read(question, {"api": (5,), "apis": (6,)})


def _said(code: int) -> Callable[[str, str, Callable[[], Reply]], Reply]:
    def change(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
        reasons = {401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "Conflict"}
        if _is_kube(question):
            body = status(reasons.get(code, "InternalError"), "no")
        else:
            body = {"error": {"code": code, "message": reasons.get(code, "no")}}
        return code, json.dumps(body).encode()

    return change


def _gone(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
    return 404, json.dumps(status("NotFound", "not found", name=thing, kind="things")).encode()


def _another_is_gone(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
    return _gone(question, _OTHER, answer)


def _cut(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
    found = answer()
    return (found[0], found[1][: len(found[1]) // 2]) if found and found[1] else (200, b'{"a')


def _others(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
    """The right form, and things of another namespace or project in it."""
    body = json.loads((answer() or (0, b""))[1] or b"{}")
    stranger: dict[str, Any] = {"name": _OTHER, "namespace": _OTHER, "uid": _OTHER}
    if not _is_kube(question):
        for kind, things in body.items():
            if isinstance(things, list):
                one = {"id": _OTHER, "name": _OTHER, "project_id": _OTHER, "tenant_id": _OTHER}
                body[kind] = [one]
        return 200, json.dumps(body).encode()
    if "items" in body:
        return 200, json.dumps({"metadata": {}, "items": [{"metadata": stranger}]}).encode()
    return 200, json.dumps({**body, "metadata": stranger}).encode()


def _without_items(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
    return 200, b"{}"


def _early(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
    page = {"items": [], "metadata": {"remainingItemCount": 3}}
    return 200, json.dumps(page).encode()


def _silence(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
    if _is_kube(question):
        return None
    raise requests.exceptions.ReadTimeout("read timed out")


def _refused(question: str, thing: str, answer: Callable[[], Reply]) -> Reply:
    if _is_kube(question):
        return 504, b""
    raise requests.exceptions.ConnectionError("connection refused")


def _tells_whose(question: str) -> bool:
    """Keystone lists a user's credentials of all projects, and Nova all projects' server groups."""
    if _is_kube(question):
        return _is_list(question) or _is_named(question)
    everybodys = "application_credentials" in question or "os-server-groups" in question
    return " GET " in question and not everybodys


MOODS = (
    Mood("401", _said(401)),
    Mood("403", _said(403)),
    Mood("404 of the object", _gone, only=_is_named, is_true=True),
    Mood("404 of another object", _another_is_gone, only=_is_kube),
    Mood("404 of the kind or endpoint", _said(404)),
    Mood("409", _said(409)),
    Mood("429", _said(429)),
    Mood("500", _said(500)),
    Mood("503", _said(503)),
    Mood("no answer in time", _silence),
    Mood("no connection", _refused),
    Mood("an empty body", lambda question, thing, answer: (200, b"")),
    Mood("an empty object", _without_items),
    Mood("a cut body", _cut),
    Mood("a list that ends early", _early, only=_is_list),
    Mood("a proxy's page, 200", lambda question, thing, answer: (200, _HTML)),
    Mood("a proxy's page, 404", lambda question, thing, answer: (404, _HTML)),
    Mood("a proxy's page, 502", lambda question, thing, answer: (502, _HTML)),
    Mood("another one's things", _others, only=_tells_whose),
)
