"""Runs ClickHouse as a server: its engine is chdb, and this is its HTTP interface on a free port of loopback.

Prints the address. Ends with its standard input. There is the database `books`, and the user `me` with the password
`secret`. As in ClickHouse, a request is the query of the address followed by the body, and other parameters are settings
of this one request.
"""

import os
import re
import sys
import tempfile
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import session

USER = "Basic " + b64encode(b"me:secret").decode()
# Codes of errors, and the statuses that ClickHouse answers them with: an unknown table and an unknown database.
STATUSES = {"60": 404, "81": 404}
# Older releases accept fewer forms of dates unless a request asks for more.
DEFAULTS = {"date_time_input_format": "basic"}


class Front(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        parameters = dict(parse_qsl(urlsplit(self.path).query))
        query = parameters.pop("query", "")
        database = parameters.pop("database", "default")
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.headers["Authorization"] != USER:
            return self.answer(403, "Code: 516. Authentication failed")
        # The session has one database and one value of each setting, which belong to one request at a time.
        with lock:
            self.answer(*run(database, {**DEFAULTS, **parameters}, f"{query}\n{body}"))

    def answer(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(database, settings, query):
    try:
        engine.query(f"USE {database}")
        for name, value in settings.items():
            engine.query(f"SET {name} = '{value}'")
        return 200, engine.query(query).bytes().decode()
    except Exception as error:
        code = re.match(r"Code: (\d+)", str(error))
        return STATUSES.get(code and code[1], 400), str(error)
    finally:
        for name in settings:
            engine.query(f"SET {name} = DEFAULT")


def end_with_input():
    sys.stdin.read()
    os._exit(0)


lock = threading.Lock()
engine = session.Session(tempfile.mkdtemp(dir=sys.argv[1]))
engine.query("CREATE DATABASE books")
threading.Thread(target=end_with_input, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
print(f"127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
