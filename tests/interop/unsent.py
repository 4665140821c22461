"""What a broker holds for those who do not read."""

import gc

from interlog.net.driver import Connection
from interlog.testing import RunningBroker


def unsent_bytes(broker: RunningBroker) -> int:
    """What the connection with the most of it has not got rid of."""

    def most(_: object) -> int:
        transports = [one._transport for one in gc.get_objects() if isinstance(one, Connection)]
        return max(transport.get_write_buffer_size() for transport in transports if transport is not None)

    return broker.call(most)
