"""Wire protocols as pure objects: bytes in, bytes out. Strangers to one another."""
