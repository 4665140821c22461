"""Small shared words: clock, limits, errors, work, logging, metrics. Knows no other room."""
