"""Keeps one request from spoiling the next: what it has made is ended, what it breaks is not sent."""

import itertools
import os

import requests
import schemathesis

URL = os.environ["OPENAPI_URL"]
KEY = os.environ["OPENAPI_KEY"]
IDEMPOTENCY_KEY = "idempotency-key"
numbers = itertools.count()


def place(operation, made):
    """Where that is which an operation has made, if it is anything that stays."""
    match operation:
        case "create_session":
            return f"/v1/sessions/{made['id']}?purge=true"
        case "open_terminal":
            return f"/v1/sessions/fixture/terminals/{made['name']}"
        case "create_key" | "create_session_key":
            return f"/v1/keys/{made['key']['id']}"
    return None


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
    operation = case.operation.definition.raw["operationId"]
    if response.status_code not in (201, 202) or (path := place(operation, response.json())) is None:
        return
    headers = {"Authorization": f"Bearer {KEY}"}
    ended = requests.delete(URL + path, headers=headers, timeout=30)
    assert ended.status_code == 204, f"{path}: {ended.text}"
