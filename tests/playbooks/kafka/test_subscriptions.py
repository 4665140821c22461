"""What members of consumer groups subscribe to: names, patterns, nothing yet, and patterns that are none."""

from typing import Any

import pytest

from interlog.faces.kafka.errors import ErrorCode
from tests.playbooks.kafka import admin_play as a
from tests.playbooks.kafka import groups_play as g
from tests.playbooks.kafka.play import Client, Play


@pytest.fixture(autouse=True)
def topics(client: Client) -> None:
    for name in ("orders-eu", "orders-us", "bills"):
        assert a.create(client, name, 2).error_code == 0


def _read(play: Play, client: Client, **more: Any) -> set[str]:
    """The topics of which a member gets partitions."""
    joined = g.beat(client, "m", **more)
    assert joined.error_code == 0, joined.error_message
    given = joined.assignment
    for _ in range(5):
        play.advance(500)
        again = g.beat(client, "m", joined.member_epoch, topic_partitions=[] if given is None else None)
        assert again.error_code == 0, again.error_message
        given, joined = again.assignment or given, again
    ids = {play.service.topic_id(item): item.name for item in play.core.catalog.topics("/")}
    return set() if given is None else {ids[one.topic_id] for one in given.topic_partitions}


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("orders-.*", {"orders-eu", "orders-us"}),
        ("orders-(eu|ch)", {"orders-eu"}),
        ("orders", set()),  # the whole name must fit
        ("[^o].*", {"bills"}),
        ("", set()),
    ],
)
def test_a_pattern_is_whole_names(play: Play, client: Client, pattern: str, names: set[str]) -> None:
    assert _read(play, client, subscribed_topic_regex=pattern) == names


def test_a_pattern_finds_topics_that_come_later(play: Play, client: Client) -> None:
    joined = g.beat(client, "m", subscribed_topic_regex="later.*")
    assert joined.assignment.topic_partitions == []
    assert a.create(client, "later-1").error_code == 0
    play.advance(1_000)
    told = g.beat(client, "m", joined.member_epoch)
    assert [one.partitions for one in told.assignment.topic_partitions] == [[0]]


@pytest.mark.parametrize("pattern", ["a(b", "a)", "[a", "*", "(?=a)", r"(a)\1"])
def test_a_pattern_that_is_none(client: Client, pattern: str) -> None:
    refused = g.beat(client, "m", subscribed_topic_regex=pattern)
    assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "SubscribedTopicRegex" in refused.error_message


def test_a_member_may_join_before_it_knows_what_to_read(play: Play, client: Client) -> None:
    assert _read(play, client, subscribed_topic_names=[]) == set()


def test_a_member_that_says_nothing_of_topics_does_not_join(client: Client) -> None:
    assert g.beat(client, "m", subscribed_topic_names=None).error_code == ErrorCode.INVALID_REQUEST
