"""Runs localstripe on a free port of loopback, and prints its address.

The objects, their lists and their JSON are those of localstripe. This adds what the provider has and localstripe
refuses: the filter `created` and the paging `ending_before` of balance transactions, the newest of several in one
second first, and members that are passed over where `expand` names them and an object does not have them.
"""

import socket

from aiohttp import web
from localstripe import resources, server


def balance_transactions(cls, url, limit=None, starting_after=None, ending_before=None, created=None):
    found = super(resources.BalanceTransaction, cls)._api_list_all(url, limit, starting_after)
    rows = sorted(reversed(found._list), key=lambda row: row.created, reverse=True)
    if created is not None:
        rows = [row for row in rows if row.created <= int(created["lte"])]
    if ending_before is not None:
        # The page right before it: the provider gives the oldest of the newer ones.
        ids = [row.id for row in rows]
        newer = rows[:ids.index(ending_before)]
        page = newer[max(0, len(newer) - found._limit):]
        found._more = len(newer) > len(page)
        rows = page
    found._list = rows
    return found


def exported(self, expand=None):
    found = plain_export(self)
    for path in expand or []:
        expand_path(found, path.split("."))
    more = getattr(self, "_more", None)
    if more is not None:
        found["has_more"] = more
    return found


def expand_path(found, path):
    if isinstance(found, list):
        for one in found:
            expand_path(one, path)
    elif isinstance(found, dict) and found.get(path[0]) is not None:
        name, rest = path[0], path[1:]
        if isinstance(found[name], str):
            of = resources.StripeObject._get_class_for_id(found[name])
            found[name] = plain_export(of._api_retrieve(found[name]))
        if rest:
            expand_path(found[name], rest)


plain_export = resources.StripeObject._export
resources.StripeObject._export = exported
resources.BalanceTransaction._api_list_all = classmethod(balance_transactions)
# Nothing outlives the process.
resources.store.dump_to_disk = lambda: None

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print("%s:%d" % listener.getsockname(), flush=True)
web.run_app(server.app, sock=listener, print=None)
