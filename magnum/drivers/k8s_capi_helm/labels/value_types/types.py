# SPDX-License-Identifier: Apache-2.0
"""Types of labels: accepted texts, typed values, expected forms."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import enum
import re
from typing import Generic, TypeVar

from oslo_utils import strutils

from magnum.drivers.k8s_capi_helm.labels.value_types import kubernetes, versions

T = TypeVar("T")

_CHART = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,251}[a-z0-9])?", re.ASCII)
#: Never with a user and password: every user of a template reads its labels.
_REPOSITORY = re.compile(r"bundled|(?:(?:https?|oci):/)?(?:/[A-Za-z0-9][\w.:+~-]*)+/?", re.ASCII)
_TAG = re.compile(r"v?\d{1,4}(\.\d{1,4}){2}(-[0-9A-Za-z.-]{1,60})?", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
#: How Jinja2 (the addon provider's language) opens; Go templates open like its first.
_TEMPLATE_OPENINGS = ("{{", "{%", "{#")
_KNOWN_PROVIDERS = frozenset({"amphora", "amphorav2", "octavia", "ovn"})


class InvalidText(ValueError):
    """A text is wrong in a way that its form's own words do not tell.

    :param why: words in brackets behind the form's, like "'x' is there twice".
    """


class OptionType(str, enum.Enum):
    """As what the site default of a label is read from the configuration file."""

    __str__ = str.__str__

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"


@dataclasses.dataclass(frozen=True, slots=True)
class LabelType(Generic[T]):
    """What the text of a label has to look like, and what it becomes.

    :ivar read: text (never empty) to value; raises ValueError.
    :ivar expected: the form in words, as the ending of a sentence "expected ...".
    :ivar choices: the words of a closed list, () for an open form.
    :ivar write: value to a text that reads the same; None where that is plain.
    """

    read: Callable[[str], T]
    expected: str
    option: OptionType = OptionType.TEXT
    choices: tuple[str, ...] = ()
    write: Callable[[T], str] | None = None


def _read_switch(text: str) -> bool:
    return bool(strutils.bool_from_string(text, strict=True))


def number(minimum: int, expected: str) -> LabelType[int]:
    def read(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,7}", text.strip()) is None or int(text) < minimum:
            raise ValueError(text)
        return int(text)

    return LabelType(read, expected, OptionType.INTEGER)


def choice(*words: str) -> LabelType[str]:
    by_key = {word.casefold(): word for word in words}

    def read(text: str) -> str:
        try:
            return by_key[text.strip().casefold()]
        except KeyError:
            raise ValueError(text) from None

    return LabelType(read, f"{', '.join(words[:-1])} or {words[-1]}", choices=words)


def read_name(text: str) -> str:
    if text != text.strip() or len(text) > 255 or not text.isprintable():
        raise ValueError(text)
    if any(opening in text for opening in _TEMPLATE_OPENINGS):
        raise ValueError(text)
    return text


def _read_zone(text: str) -> str:
    if set(text) & set(",:;"):
        raise ValueError(text)
    return read_name(text)


def _read_volume_zone(text: str) -> str:
    """A zone that the OpenStack provider takes for a volume.

    Source: VolumeAZName in
    https://github.com/kubernetes-sigs/cluster-api-provider-openstack/blob/main/api/v1beta1/types.go
    """
    if " " in text:
        raise ValueError(text)
    return _read_zone(text)


def _read_names(text: str) -> tuple[str, ...]:
    return tuple(read_name(part) for part in parts(text))


def _read_provider(text: str) -> str:
    word = text.strip()
    if _WORD.fullmatch(word) is None:
        raise ValueError(text)
    return word.lower() if word.lower() in _KNOWN_PROVIDERS else word


def _read_filesystem(text: str) -> str:
    if re.fullmatch(r"[a-z0-9]{2,16}", text.strip().lower(), re.A) is None:
        raise ValueError(text)
    return text.strip().lower()


def _read_version(text: str) -> str:
    if not versions.is_full_version(text.strip()):
        raise ValueError(text)
    return text.strip()


def _read_chart(text: str) -> str:
    if _CHART.fullmatch(text.strip()) is None:
        raise ValueError(text)
    return text.strip()


def _read_repository(text: str) -> str:
    if _REPOSITORY.fullmatch(text.strip()) is None:
        raise ValueError(text)
    return text.strip()


def _read_kube_tag(text: str) -> str:
    return f"v{_read_version(text).removeprefix('v')}"


def _read_annotations(text: str) -> tuple[tuple[str, str], ...]:
    pairs = []
    for piece in text.split(","):
        key, equals, value = (part.strip() for part in piece.partition("="))
        if not (equals and kubernetes.is_label_key(key)) or not value.isprintable():
            raise ValueError(text)
        pairs.append((key, value))
    if len(dict(pairs)) < len(pairs) or any(opening in text for opening in _TEMPLATE_OPENINGS):
        raise ValueError(text)
    return tuple(sorted(pairs))


def _read_overlay(text: str) -> str:
    word = text.strip().lower()
    if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,62}", word, re.A) is None:
        raise ValueError(text)
    return word


def _read_zones(text: str) -> tuple[str, ...]:
    zones = tuple(part.strip() for part in re.split("[,;]", text) if part.strip())
    if len(set(zones)) != len(zones):
        raise InvalidText("a zone is given twice")
    if not zones:
        raise ValueError(text)
    return tuple(ZONE.read(zone) for zone in zones)


def _read_id(text: str) -> str:
    if re.fullmatch(r"[0-9A-Za-z-]{1,64}", text.strip(), re.A) is None:
        raise ValueError(text)
    return text.strip()


def parts(text: str) -> list[str]:
    """The pieces of a list: commas (of a repeated ``--label``), semicolons or spaces between."""
    pieces = [piece for piece in re.split(r"[,;\s]+", text) if piece]
    if not pieces:
        raise ValueError(text)
    return pieces


def word_list(
    words: tuple[str, ...], expected: str, must_include: tuple[str, ...] = ()
) -> LabelType[tuple[str, ...]]:
    """Words of a closed list, each once, in the order in which they are given.

    :param must_include: of these at least one.
    """
    by_key = {word.casefold(): word for word in words}

    def read(text: str) -> tuple[str, ...]:
        chosen: list[str] = []
        for part in parts(text):
            if part.casefold() not in by_key:
                raise InvalidText(f"'{part}' is not one of them")
            if by_key[part.casefold()] in chosen:
                raise InvalidText(f"'{part}' is given twice")
            chosen.append(by_key[part.casefold()])
        if must_include and not set(must_include) & set(chosen):
            raise InvalidText(f"neither {' nor '.join(must_include)} is among them")
        return tuple(chosen)

    return LabelType(read, expected)


def tag(oldest: str, component: str) -> LabelType[str]:
    """A version of a program that this driver's charts can run.

    :param oldest: the oldest one, like ``v4.0.0``; older ones are refused, as templates of the Heat
        driver name versions that no Kubernetes of today works with.
    :param component: of what it is a version.
    """
    oldest_version = versions.parse(oldest)
    assert oldest_version is not None

    def read(text: str) -> str:
        version = versions.parse(text.strip()) if _TAG.fullmatch(text.strip()) else None
        if version is None or version < oldest_version:
            raise ValueError(text)
        return text.strip()

    return LabelType(read, f"a version of {component} like {oldest}, or a newer one")


_NO_TEMPLATE = "without line breaks, '{{', '{%' or '{#'"
SWITCH = LabelType(_read_switch, "true or false", OptionType.BOOLEAN)
GIBIBYTES = number(0, "a whole number of GiB, 0 for none")
FEWEST = number(0, "a whole number of nodes, 0 or more")
MOST = number(1, "a whole number of nodes, 1 or more")
NAME = LabelType(read_name, f"a name of at most 255 characters {_NO_TEMPLATE}")
ZONE = LabelType(
    _read_zone,
    "the name of one availability zone, without ',', ';', ':' and spaces around it, "
    f"{_NO_TEMPLATE}",
)
VOLUME_ZONE = LabelType(
    _read_volume_zone,
    f"the name of one availability zone, without ',', ';', ':' and spaces, {_NO_TEMPLATE}",
)
NAMES = LabelType(_read_names, f"names with spaces or commas between them, {_NO_TEMPLATE}")
ANNOTATIONS = LabelType(
    _read_annotations,
    "key=value with commas between them, each key once and like node.cluster.x-k8s.io/team, "
    f"{_NO_TEMPLATE}",
    write=lambda pairs: ",".join(f"{key}={value}" for key, value in pairs),
)
PROVIDER = LabelType(_read_provider, "the name of an Octavia provider, like amphora or ovn")
FILESYSTEM = LabelType(_read_filesystem, "the name of a filesystem, like ext4 or xfs")
KUBE_TAG = LabelType(_read_kube_tag, "a full Kubernetes version like v1.36.3")
VERSION = LabelType(_read_version, "one full chart version like 1.1.0, not a range")
CHART = LabelType(_read_chart, "the name of a chart, like openstack-cluster")
REPOSITORY = LabelType(
    _read_repository,
    "the URL of a chart repository that begins with https://, http:// or oci://, a directory, or "
    "bundled",
)
OVERLAY = LabelType(_read_overlay, "a word of at most 63 letters, digits, '-' and '_'")
SOME = number(1, "a whole number, 1 or more")
ID = LabelType(_read_id, "an id as OpenStack shows it")
ZONES = LabelType(
    _read_zones, "names of availability zones with commas between them, each once, without ':'"
)
