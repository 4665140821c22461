"""The same conversations with Interlog and with a real RabbitMQ, and where their answers differ."""
