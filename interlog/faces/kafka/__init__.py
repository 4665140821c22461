"""Kafka's wire protocol, as pure objects: bytes in, bytes out."""
