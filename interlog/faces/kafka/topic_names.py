"""What a topic may be called. Kafka's rule; what AMQP made may have other names, and is served by them."""

import re
from typing import Final

from interlog.faces.kafka.errors import ErrorCode, KafkaError

MAX_NAME_BYTES: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """INVALID_TOPIC_EXCEPTION with a sentence if no topic can be made under the name."""
    if not name:
        why = "the empty string is not allowed"
    elif name in (".", ".."):
        why = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_BYTES:
        why = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_BYTES}"
    elif not _NAME.fullmatch(name):
        why = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return
    raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {why}")
