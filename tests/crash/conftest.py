"""What all crash tests share."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Brokers that are killed have much to tell, and a failure's story says it better."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
