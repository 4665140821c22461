"""Rules: made, shown and removed over the wire, in every version; and what they say of users."""

from typing import Any

import pytest

from interlog.faces.kafka.errors import ErrorCode
from interlog.faces.kafka.schema.create_acls import AclCreation, CreateAclsRequest
from interlog.faces.kafka.schema.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from interlog.faces.kafka.schema.describe_acls import DescribeAclsRequest
from interlog.faces.kafka.schema.metadata import MetadataRequest, MetadataRequestTopic
from tests.playbooks.kafka.logins import login
from tests.playbooks.kafka.play import Client, Play

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4  # pattern types; 1 is "any" everywhere
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN = 2, 3, 4, 5, 6
ALL, READ, WRITE, CREATE, DESCRIBE, ALTER = 2, 3, 4, 5, 8, 7
DENY, ALLOW = 2, 3

ORDERS = (TOPIC, "orders", LITERAL, "User:ann", "*", READ, ALLOW)
PREFIX = (TOPIC, "ord", PREFIXED, "User:ann", "*", WRITE, ALLOW)
EVERY = (TOPIC, "*", LITERAL, "User:bob", "10.0.0.9", READ, DENY)
OTHER = (GROUP, "orders", LITERAL, "User:*", "*", ALL, ALLOW)
RULES = (ORDERS, PREFIX, EVERY, OTHER)


def create(client: Client, *rules: Any, version: int = 3) -> list[tuple[int, str | None]]:
    request = CreateAclsRequest([AclCreation(*one) for one in rules])
    answer = client.ask(request, version)
    assert answer.throttle_time_ms == 0
    return [(one.error_code, one.error_message) for one in answer.results]


def describe(client: Client, *filter: Any, version: int = 3) -> set[tuple[Any, ...]]:
    answer = client.ask(DescribeAclsRequest(*filter), version)
    assert answer.error_code == 0, answer.error_message
    return {
        (one.resource_type, one.resource_name, one.pattern_type, *rule(acl))
        for one in answer.resources
        for acl in one.acls
    }


def delete(client: Client, *filters: Any, version: int = 3) -> list[Any]:
    answer = client.ask(DeleteAclsRequest([DeleteAclsFilter(*filter) for filter in filters]), version)
    return list(answer.filter_results)


def rule(one: Any) -> tuple[Any, ...]:
    return one.principal, one.host, one.operation, one.permission_type


def of(principal: str | None) -> tuple[Any, ...]:
    """A filter for all of one principal's."""
    return (ANY, None, ANY, principal, None, ANY, ANY)


def removed(result: Any) -> set[tuple[Any, ...]]:
    assert result.error_code == 0, result.error_message
    assert all(one.error_code == 0 for one in result.matching_acls)
    return {(one.resource_type, one.resource_name, one.pattern_type, *rule(one)) for one in result.matching_acls}


@pytest.fixture
def ruled(client: Client) -> Client:
    assert create(client, *RULES) == [(0, None)] * 4
    return client


@pytest.mark.parametrize("version", range(4))
def test_rules_come_and_go_in_every_version(play: Play, client: Client, version: int) -> None:
    rules = [ORDERS, OTHER] if version == 0 else list(RULES)
    assert create(client, *rules, version=version) == [(0, None)] * len(rules)
    pattern = LITERAL if version == 0 else ANY
    everything = (TOPIC, None, pattern, "User:ann", None, ANY, ANY)
    expected = {one for one in rules if one[3] == "User:ann"}
    assert describe(client, *everything, version=version) == expected
    (result,) = delete(client, everything, version=version)
    assert removed(result) == expected
    assert describe(client, *everything, version=version) == set()
    assert len(play.service.acls) == len(rules) - len(expected)


def test_they_last(play: Play, ruled: Client) -> None:
    play.restart()
    client = play.connect()
    assert {tuple(acl) for acl in play.service.acls} == set(RULES)
    removed(delete(client, of("User:ann"))[0])
    play.restart()
    assert {tuple(acl) for acl in play.service.acls} == {EVERY, OTHER}


def test_an_answer_waits_for_the_disk(play: Play, client: Client) -> None:
    client.send(CreateAclsRequest([AclCreation(*ORDERS)]), 3)
    play.turn(sync=False)
    assert client.listen(turn=False) == []
    assert len(client.listen()) == 1


def test_one_that_is_there_already_is_no_error(play: Play, ruled: Client) -> None:
    assert create(ruled, ORDERS, ORDERS) == [(0, None), (0, None)]
    assert len(play.service.acls) == 4


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ((ANY, None, ANY, "User:ann", None, ANY, ANY), {ORDERS, PREFIX}),
        ((ANY, "orders", ANY, None, None, ANY, ANY), {ORDERS, OTHER}),
        ((TOPIC, "orders", LITERAL, None, None, ANY, ANY), {ORDERS}),
        ((TOPIC, "ord", LITERAL, None, None, ANY, ANY), set()),
        ((TOPIC, "ord", PREFIXED, None, None, ANY, ANY), {PREFIX}),
        ((TOPIC, None, PREFIXED, None, None, ANY, ANY), {PREFIX}),
        ((TOPIC, "orders", PREFIXED, None, None, ANY, ANY), set()),
        ((TOPIC, "*", LITERAL, "User:bob", None, ANY, ANY), {EVERY}),
        ((ANY, "orders", MATCH, "User:ann", None, ANY, ANY), {ORDERS, PREFIX}),
        ((TOPIC, "orders-2", MATCH, None, None, ANY, DENY), {EVERY}),
        ((TOPIC, "orders-2", MATCH, "User:ann", None, ANY, ANY), {PREFIX}),
        ((GROUP, "orders", MATCH, "User:*", None, ANY, ANY), {OTHER}),
        ((GROUP, None, MATCH, "User:*", None, ANY, ANY), {OTHER}),
        ((ANY, None, ANY, None, "10.0.0.9", ANY, ANY), {EVERY}),
        ((ANY, None, ANY, "User:ann", None, WRITE, ANY), {PREFIX}),
        ((ANY, None, ANY, "User:ann", None, ALL, ANY), set()),
        ((ANY, None, ANY, None, None, ANY, DENY), {EVERY}),
        ((DELEGATION_TOKEN, None, ANY, None, None, ANY, ANY), set()),
        ((ANY, None, ANY, None, None, 13, ANY), set()),
        ((ANY, None, ANY, "Group:ann", None, ANY, ANY), set()),
    ],
)
def test_filters(ruled: Client, filter: tuple[Any, ...], expected: set[Any]) -> None:
    assert describe(ruled, *filter) == expected
    assert removed(delete(ruled, filter)[0]) == expected
    assert describe(ruled, *filter) == set()


@pytest.mark.parametrize("field", [0, 2, 5, 6])
def test_a_filter_that_is_none(client: Client, field: int) -> None:
    filter = list(of("User:ann"))
    filter[field] = 0
    answer = client.ask(DescribeAclsRequest(*filter), 3)
    assert (answer.error_code, answer.resources) == (ErrorCode.INVALID_REQUEST, [])
    bad, good = delete(client, filter, of("User:ann"))
    assert (bad.error_code, bad.matching_acls) == (ErrorCode.INVALID_REQUEST, [])
    assert good.error_code == 0


def test_two_filters_that_fit_the_same_rule_both_tell_so(ruled: Client) -> None:
    one, two = delete(ruled, of("User:ann"), (TOPIC, "orders", LITERAL, None, None, READ, ANY))
    assert removed(one) == {ORDERS, PREFIX}
    assert removed(two) == {ORDERS}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, 0, "nothing else"),
        (0, 1, "nothing else"),
        (0, DELEGATION_TOKEN, "nothing else"),
        (0, CLUSTER, "The only valid name for the CLUSTER resource is kafka-cluster"),
        (1, "", "Invalid empty resource name"),
        (1, "x" * 301, "at most 300"),
        (2, 0, "LITERAL"),
        (2, ANY, "LITERAL"),
        (2, MATCH, "LITERAL"),
        (2, 9, "LITERAL"),
        (3, "ann", "a principal is User:"),
        (3, "User:", "a principal is User:"),
        (3, "Group:all", "a principal is User:"),
        (4, "", "a host is"),
        (4, "example.org", "a host is"),
        (5, 0, "the operation"),
        (5, 1, "the operation"),
        (5, 13, "the operation"),
        (6, 0, "allows or denies"),
        (6, 1, "allows or denies"),
        (6, 4, "allows or denies"),
    ],
)
def test_what_is_no_rule_costs_the_others_nothing(
    play: Play, client: Client, place: int, value: Any, message: str
) -> None:
    bad: list[Any] = list(ORDERS)
    bad[place] = value
    first, second = create(client, bad, PREFIX)
    assert first[0] == ErrorCode.INVALID_REQUEST and message in str(first[1])
    assert second == (0, None)
    assert [tuple(acl) for acl in play.service.acls] == [PREFIX]


def test_there_is_a_limit(play: Play, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("interlog.faces.kafka.acls.MOST_RULES", 2)
    answers = create(client, ORDERS, PREFIX, EVERY)
    assert [code for code, _ in answers] == [0, 0, ErrorCode.POLICY_VIOLATION]
    assert create(client, ORDERS) == [(0, None)]


def test_permissions_are_shown_and_cannot_be_deleted_here(play: Play, client: Client) -> None:
    access = play.core.access
    access.add_user("ann", "pencil")
    access.set_permissions("/", "ann", "", r"^orders\.eu", r"^log$")
    shown = {
        (TOPIC, "orders.eu", PREFIXED, "User:ann", "*", WRITE, ALLOW),
        (TRANSACTIONAL_ID, "orders.eu", PREFIXED, "User:ann", "*", WRITE, ALLOW),
        (TOPIC, "log", LITERAL, "User:ann", "*", READ, ALLOW),
        (GROUP, "log", LITERAL, "User:ann", "*", READ, ALLOW),
    }
    assert describe(client, *of("User:ann")) == shown
    mine = (TOPIC, "log", LITERAL, "User:ann", "*", READ, ALLOW)
    assert create(client, mine, PREFIX) == [(0, None)] * 2
    assert describe(client, *of("User:ann")) == shown | {PREFIX}
    (result,) = delete(client, of("User:ann"))
    told = {(one.resource_name, one.operation, one.resource_type): one.error_code for one in result.matching_acls}
    assert told == {
        ("ord", WRITE, TOPIC): 0,
        ("log", READ, TOPIC): 0,
        ("log", READ, GROUP): ErrorCode.INVALID_REQUEST,
        ("orders.eu", WRITE, TOPIC): ErrorCode.INVALID_REQUEST,
        ("orders.eu", WRITE, TRANSACTIONAL_ID): ErrorCode.INVALID_REQUEST,
    }
    assert describe(client, *of("User:ann")) == shown


def test_patterns_that_rules_cannot_express_are_not_shown(play: Play, client: Client) -> None:
    access = play.core.access
    access.add_user("ann", "pencil", ["administrator"])
    access.set_permissions("/", "ann", "a|b", "orders", "^a.c")
    assert describe(client, *of("User:ann")) == {
        (CLUSTER, "kafka-cluster", LITERAL, "User:ann", "*", ALL, ALLOW),
    }


# -- what they say


def sees(client: Client, name: str) -> bool:
    answer = client.ask(MetadataRequest([MetadataRequestTopic(name=name)]), 12)
    return bool(answer.topics[0].error_code == 0)


def test_a_rule_holds_at_once_and_until_it_goes(play: Play, client: Client) -> None:
    play.core.access.add_user("ann", "pencil")
    play.core.create_topic("/", "orders", 1)
    ann = login(play, "ann", "pencil")
    assert not sees(ann, "orders")
    create(client, ORDERS)
    assert sees(ann, "orders")
    assert ann.face.may("read", "orders") and not ann.face.may("write", "orders")
    create(client, (TOPIC, "orders", LITERAL, "User:*", "*", DESCRIBE, DENY))
    assert not sees(ann, "orders")
    assert ann.face.may("read", "orders")
    delete(client, (TOPIC, None, ANY, "User:*", None, ANY, DENY))
    assert sees(ann, "orders")
    delete(client, of("User:ann"))
    assert not sees(ann, "orders")


def test_a_rule_that_denies_is_above_permissions(play: Play, client: Client) -> None:
    play.core.access.add_user("ann", "pencil")
    play.core.access.set_permissions("/", "ann", ".*", ".*", ".*")
    ann = login(play, "ann", "pencil")
    assert ann.face.may("write", "orders")
    create(client, (TOPIC, "ord", PREFIXED, "User:ann", "*", WRITE, DENY))
    assert not ann.face.may("write", "orders")
    assert ann.face.may("write", "other")
    assert ann.face.may("write", "orders", "group")
    create(client, (TOPIC, "orders", LITERAL, "User:ann", "*", ALL, ALLOW))
    assert not ann.face.may("write", "orders")


def test_who_may_not_make_topics_at_all_makes_none_by_a_permission(play: Play, client: Client) -> None:
    play.core.access.add_user("ann", "pencil")
    play.core.access.set_permissions("/", "ann", ".*", ".*", ".*")
    ann = login(play, "ann", "pencil")
    assert ann.face.may("create", "orders") and ann.face.may("alter", "orders")
    create(client, (CLUSTER, "kafka-cluster", LITERAL, "User:ann", "*", CREATE, DENY))
    assert not ann.face.may("create", "orders") and ann.face.may("alter", "orders")
    answer = ann.ask(MetadataRequest([MetadataRequestTopic(name="orders")]), 12)
    assert answer.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    create(client, (TOPIC, "orders", LITERAL, "User:ann", "*", CREATE, ALLOW))
    assert ann.face.may("create", "orders") and not ann.face.may("create", "other")
    assert sees(ann, "orders")


def test_no_rule_locks_administrators_out(play: Play, client: Client) -> None:
    create(client, (CLUSTER, "kafka-cluster", LITERAL, "User:*", "*", ALL, DENY))
    guest = login(play, "guest", "guest")
    assert {code for code, _ in create(guest, ORDERS)} == {0}
    play.core.access.add_user("ann", "pencil", ["monitoring"])
    ann = login(play, "ann", "pencil")
    answer = ann.ask(DescribeAclsRequest(*of(None)), 3)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def test_rules_are_for_hosts(play: Play, client: Client) -> None:
    play.core.access.add_user("bob", "brush")
    create(client, (TOPIC, "orders", LITERAL, "User:bob", "10.0.0.9", READ, ALLOW))
    bob = login(play, "bob", "brush", host="10.0.0.9")
    other = login(play, "bob", "brush", host="10.0.0.8")
    assert bob.face.may("read", "orders") and not other.face.may("read", "orders")


def test_who_may_alter_the_cluster_by_a_rule_needs_no_tag(play: Play, client: Client) -> None:
    play.core.access.add_user("ann", "pencil")
    ann = login(play, "ann", "pencil")
    assert [code for code, _ in create(ann, ORDERS)] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert [one.error_code for one in delete(ann, of(None), of(None))] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2
    create(client, (CLUSTER, "kafka-cluster", LITERAL, "User:ann", "*", ALTER, ALLOW))
    assert create(ann, ORDERS) == [(0, None)]
    assert ORDERS in describe(ann, *of(None))  # who may alter may look
