"""The guide's page of settings, made from the table: `python -m interlog.app.guide` writes it into the clone."""

# ruff: noqa: E501 - a table's row is a line
from pathlib import Path

from interlog.app.settings import ENVIRONMENT_PREFIX, FILE_NAME, table

_HEAD = f"""\
# Settings

Every setting has one name. It is a key of `{FILE_NAME}`, an environment variable and a flag of `interlog serve`:

| where | how |
|---|---|
| `{FILE_NAME}` in the folder you start in, or the file given by `--config` or `{ENVIRONMENT_PREFIX}CONFIG` | `http_port = 15672` |
| environment | `{ENVIRONMENT_PREFIX}HTTP_PORT=15672` |
| flag | `--http-port 15672` |
| in Python | `interlog.Broker(http_port=15672)` |

A flag wins over the environment, the environment over the file. Everything is checked before anything is started; what
is wrong is said with its name, its value, where it came from and what is allowed. A name that is not a setting is refused.

| name | default | allowed | what it is for |
|---|---|---|---|
"""


def settings_page() -> str:
    rows = (f"| `{row.name}` | `{row.default_text}` | {row.kind.allowed} | {row.help} |\n" for row in table())
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    target = Path(__file__).parents[2] / "docs" / "guide" / "settings.md"
    target.write_text(settings_page(), encoding="utf-8")
