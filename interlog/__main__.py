"""`python -m interlog`: the same as the `interlog` command."""

from interlog.app.cli.main import entry

entry()
