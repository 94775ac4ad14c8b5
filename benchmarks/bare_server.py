"""A Starlette application that does nothing but answer known bytes from memory.

python benchmarks/bare_server.py FILE    # FILE: a JSON object from paths to bodies
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dialsim.sandbox.http.server import address, listening


def main() -> None:
    """Serve the file's paths; the server program is set up as the sandbox's own."""
    known = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    bodies = {path: body.encode() for path, body in known.items()}

    async def answer(request: Request) -> Response:
        path = request.scope["raw_path"] + b"?" + request.scope["query_string"]
        return Response(bodies[path.decode()], media_type="application/json")

    app = Starlette(routes=[Route("/{path:path}", answer)])
    with listening("127.0.0.1", 0) as listener:
        print(address(listener), flush=True)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, date_header=False
        )
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
