"""Ends at once what the requests have made, so that no quota hides what comes after."""

import os

import requests
import schemathesis

# Where in the answer of an operation the name of what it has made is.
MADE = {
    "create_session": ("id", "/v1/sessions/{}?purge=true"),
    "open_terminal": ("name", "/v1/sessions/fixture/terminals/{}"),
    "create_key": ("id", "/v1/keys/{}"),
    "create_session_key": ("id", "/v1/keys/{}"),
}


@schemathesis.hook
def after_call(context, case, response):
    made = MADE.get(case.operation.definition.raw.get("operationId"))
    if made is None or response.status_code not in (201, 202):
        return
    name, place = made
    ended = requests.delete(
        os.environ["OPENAPI_URL"] + place.format(response.json()[name]),
        headers={"Authorization": f"Bearer {os.environ['OPENAPI_KEY']}"},
        timeout=30,
    )
    # A terminal whose name was taken over by another request is gone already.
    assert ended.status_code in (204, 404), ended.text
