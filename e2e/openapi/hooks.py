"""Keeps one request from spoiling the next: what it has made is ended, what it breaks is not sent."""

import itertools
import os
import re

import requests
import schemathesis

URL = os.environ["OPENAPI_URL"]
KEY = os.environ["OPENAPI_KEY"]
IDEMPOTENCY_KEY = "idempotency-key"
# Sessions that others need.
KEPT = ("fixture", "doomed")
SESSION_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
numbers = itertools.count()


def made(operation, case, response):
    """Where that is which a request has made, if it is anything that stays."""
    if operation == "create_session":
        name = session_name(case.body, response)
        return f"/v1/sessions/{name}?purge=true" if name else None
    if response.status_code != 201:
        return None
    match operation:
        case "open_terminal":
            return f"/v1/sessions/fixture/terminals/{response.json()['name']}"
        case "create_key" | "create_session_key":
            return f"/v1/keys/{response.json()['key']['id']}"
    return None


def session_name(body, response):
    if response.status_code in (201, 202):
        return response.json()["id"]
    # One that could not be started is there as well.
    name = body.get("id") if isinstance(body, dict) else None
    is_name = isinstance(name, str) and SESSION_NAME.fullmatch(name)
    return name if is_name and name not in KEPT else None


@schemathesis.hook
def before_call(context, case, kwargs):
    # A wrong ticket counts as a wrong key, and a server closes itself to whoever sends many.
    if isinstance(case.query, dict):
        case.query.pop("ticket", None)
    # Made-up keys are mostly the same one, and of two actions with one key only the first runs.
    if key := (case.headers or {}).get(IDEMPOTENCY_KEY):
        case.headers[IDEMPOTENCY_KEY] = f"{key}{next(numbers)}"


@schemathesis.hook
def after_call(context, case, response):
    path = made(case.operation.definition.raw["operationId"], case, response)
    if path is None:
        return
    headers = {"Authorization": f"Bearer {KEY}"}
    ended = requests.delete(URL + path, headers=headers, timeout=30)
    assert ended.status_code in (204, 404), f"{path}: {ended.text}"
