"""What topics are set to that do not say it themselves: for all brokers, and for this one, which counts first.

Comes in: settings of topics, under one of the two names. Goes out: the same from the catalog, and what they make of a
topic's own. They are objects of the catalog, and act on the topics that are there already as on those to come.
"""

from collections.abc import Mapping
from typing import Any, Final

from interlog.core.catalog import Catalog
from interlog.core.topic_settings import check_settings

KIND: Final = "topic_defaults"  # of the catalog's objects
CLUSTER: Final = "cluster"
BROKER: Final = "broker"


def default_settings(catalog: Catalog, namespace: str, name: str) -> Mapping[str, Any]:
    return catalog.value(KIND, namespace, name)


def keep_defaults(catalog: Catalog, namespace: str, name: str, given: Mapping[str, Any]) -> None:
    """Put these in place of all that stand under the name."""
    catalog.keep(KIND, namespace, name, check_settings(given))


def all_defaults(catalog: Catalog, namespace: str) -> Mapping[str, Any]:
    """What stands under both names, for `settings_of`."""
    cluster = default_settings(catalog, namespace, CLUSTER)
    broker = default_settings(catalog, namespace, BROKER)
    return {**cluster, **broker} if cluster or broker else {}
