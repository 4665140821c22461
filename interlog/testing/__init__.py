"""A real broker for tests, in the test process itself: ready in a few hundredths of a second, gone without a trace.

    with interlog.testing.running() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))

As a pytest plugin (it is one wherever Interlog is installed, else `pytest -p interlog.testing`) it brings the fixtures
`broker` and `shared_broker`; see fixtures.py.

PYTEST_DONT_REWRITE: pytest need not look into this module, which may be imported before it could.
"""

from interlog.testing.running import RunningBroker, running

__all__ = ["RunningBroker", "running"]

# pytest loads these when it loads this module as a plugin. `running` itself needs no pytest.
pytest_plugins = ("interlog.testing.fixtures",)
