"""Bytes that survive: batches, envelopes, the journal and what is made from it. Knows no protocol."""
