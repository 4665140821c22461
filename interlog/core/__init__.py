"""What the broker means: queues, topics, leases, cursors, timers. No bytes of any protocol, no sockets."""
