"""Runs the tool server of `camel-ai` as it is, but on a port of loopback that is given.

Their server knows one address only, `0.0.0.0:8000`. Run with the interpreter of the environment
that `e2e/foreign/setup-camel` makes: `camel_api.py PORT ENTRYPOINT...`.
"""

import os
import runpy
import sys

import camel.runtimes
import uvicorn


def main() -> None:
    port = int(sys.argv.pop(1))
    serve = uvicorn.run
    uvicorn.run = lambda app, **_: serve(app, host='127.0.0.1', port=port, reload=False, log_level='warning')
    sys.argv[0] = os.path.join(os.path.dirname(camel.runtimes.__file__), 'api.py')
    runpy.run_path(sys.argv[0], run_name='__main__')


if __name__ == '__main__':
    main()
