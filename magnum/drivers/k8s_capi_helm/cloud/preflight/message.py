# SPDX-License-Identifier: Apache-2.0
"""Several problems as one line of bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from magnum.drivers.k8s_capi_helm import errors
from magnum.drivers.k8s_capi_helm.errors import column_limits

#: Characters of the whole message. Magnum's column takes more; a person does not.
LIMIT = 2000
#: Characters of its first sentence.
_TITLES = 300
#: Characters of a tenant's own text in a sentence; the longest name that OpenStack has is 255.
_QUOTED = 80
#: Of what a cloud offers, how many are listed.
_LISTED = 10


def refuse(problems: Sequence[str]) -> None:
    """Raise if there is a problem: a single one verbatim, several as a numbered list.

    The first sentence names each problem without its details, since clients print no more of a
    refusal. Then problems are told whole and in their order. What does not fit into the limit is
    counted; the operator finds all of them in the log.

    :raises errors.DoesNotFit: there is one.
    """
    if not problems:
        return
    if len(problems) == 1:
        raise errors.DoesNotFit(problems[0])
    numbered = [f"({index}) {text}" for index, text in enumerate(problems, 1)]
    summary = f"{len(problems)} problems found: {_titles(problems)}."
    sentences, space = [summary], LIMIT - len(summary)
    for position, text in enumerate(numbered):
        unlisted = len(numbered) - position
        ending = f"And {unlisted} more. Fix these and try again."
        if len(text) + 1 + (len(ending) + 1 if unlisted > 1 else 0) > space:
            sentences.append(ending)
            break
        sentences.append(text)
        space -= len(text) + 1
    raise errors.DoesNotFit(" ".join(sentences), " ".join(numbered))


def _titles(problems: Sequence[str]) -> str:
    """What each problem is about, each once, as many as there is room for."""
    titles = [problem.partition(".")[0].partition(":")[0] for problem in problems]
    return column_limits.shorten("; ".join(dict.fromkeys(titles)), _TITLES).replace(".", "")


def in_quotes(text: str) -> str:
    """A tenant's text in quotes on one line; a very long one is shown by its beginning."""
    line = " ".join(text.split()) if not text.isprintable() else text
    return f"'{line}'" if len(line) <= _QUOTED else f"'{line[:_QUOTED]}...'"


def joined_names(names: Iterable[str]) -> str:
    """The available names, some of them if there are many."""
    sorted_names = sorted(set(names))
    rest = f" and {len(sorted_names) - _LISTED} more" if len(sorted_names) > _LISTED else ""
    return ", ".join(sorted_names[:_LISTED]) + rest if sorted_names else "none"
