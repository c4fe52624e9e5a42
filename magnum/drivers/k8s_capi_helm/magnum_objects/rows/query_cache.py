# SPDX-License-Identifier: Apache-2.0
"""Let SQLAlchemy compile Magnum's queries once, and not again at each call."""

from __future__ import annotations

from magnum.db.sqlalchemy import models

#: Magnum's types of columns. Both are without parameters, so a compiled query is that of any value.
_TYPES = (models.JSONEncodedDict, models.JSONEncodedList)


def enable_query_cache() -> None:
    """Declare that queries for Magnum's JSON columns may be cached.

    A type of a column has to declare that itself, and Magnum's do not. So SQLAlchemy compiles the
    query for a cluster's template at each call, which every pass of a periodic task makes before
    it comes to a driver: it takes two thirds of the processor's time of a pass. Where Magnum
    declares it, one way or the other, that counts.
    https://docs.sqlalchemy.org/en/20/core/custom_types.html#sqlalchemy.types.TypeDecorator.cache_ok
    """
    for column_type in _TYPES:
        if column_type.cache_ok is None:
            column_type.cache_ok = True
