"""One API, one file: its versions, its answers, and what it does not do."""
