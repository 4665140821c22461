"""Everything that is served over HTTP, in one router: status for anybody, the management API for users."""

from interlog.core.broker import Core
from interlog.web.guard import Guard
from interlog.web.objects_api import ObjectsApi
from interlog.web.policies_api import PoliciesApi
from interlog.web.router import Router
from interlog.web.status import Status
from interlog.web.users_api import UsersApi
from interlog.web.vhosts_api import VhostsApi


def management(status: Status, core: Core) -> Router:
    guard = Guard(core.access)
    apis = (UsersApi, VhostsApi, PoliciesApi, ObjectsApi)
    return Router(status.routes(), *(api(core, guard).routes() for api in apis))
