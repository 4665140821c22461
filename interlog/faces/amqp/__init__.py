"""AMQP 0-9-1 as RabbitMQ speaks it, as pure objects: bytes in, bytes out."""
