"""The messages of Kafka's protocol, a module per API: REQUEST and RESPONSE, and the structs in them.

The modules are tables made by tools/kafka_schemas.py, imported when their API is first asked for. `fields` says what
a table is made of, `reading` and `writing` make code of it.
"""
