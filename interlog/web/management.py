"""Everything that is served over HTTP, in one router: status for anybody, the management API for users."""

from interlog.core.broker import Core
from interlog.web.guard import Guard
from interlog.web.router import Router
from interlog.web.status import Status
from interlog.web.users_api import UsersApi
from interlog.web.vhosts_api import VhostsApi


def management(status: Status, core: Core) -> Router:
    guard = Guard(core.access)
    return Router(status.routes(), UsersApi(core, guard).routes(), VhostsApi(core, guard).routes())
