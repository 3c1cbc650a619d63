"""The models, codes and operations of this client are those of the committed API document."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple, Type

import pytest
from pydantic import BaseModel

from zareba import Sandbox, _calls, _document, errors, models

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT: Dict[str, Any] = json.loads((ROOT / "openapi" / "zareba.json").read_text())
SCHEMAS: Dict[str, Any] = DOCUMENT["components"]["schemas"]

ELSEWHERE = {
    "Action.": {"RunCommand", "EditFile", "UseTool"},
    "Observation.": {
        "CommandMetadata",
        "CommandOutput",
        "Edited",
        "LimitHit",
        "ToolFailure",
        "ToolOutcome",
    },
}
"""Where schemas of the protocol are, whose names have a prefix."""
NOT_USED = {
    # Bodies that are read by hand, because what comes from a proxy must be understood as well.
    "ErrorBody", "ErrorCode", "ErrorDetail",
    # Plain numbers and texts here.
    "Bytes", "Cpus", "Seconds", "SecretText", "WorkspaceMode",
    # Whoever manages keys has the command line.
    "CreateKey", "CreateSessionKey", "CreatedKey", "Key", "KeyPage", "KeyQuota", "KeyScope",
    "Ticket", "Readiness",
    # Calls of tools are actions.
    "CallTool",
    "Action", "Observation",
}  # fmt: skip
OPERATIONS_NOT_USED = {
    "ready", "openapi", "metrics", "events_socket",
    "create_key", "list_keys", "delete_key", "create_session_key", "create_ticket",
    "connect_port", "call_tool",
}  # fmt: skip
ONLY_STREAMED = {"FileChange", "ChangeKind"}
"""What comes as server-sent events, whose form the document does not tell."""
LEFT_OUT = {"Edited": {"_diff_cache"}}
"""Fields that mean nothing to anybody but another project's client."""


def modelled() -> Dict[str, Type[BaseModel]]:
    found = {}
    for name in models.__all__:
        kind = getattr(models, name)
        if issubclass(kind, BaseModel) and name not in ONLY_STREAMED:
            found[schema_name(name)] = kind
    return found


def schema_name(name: str) -> str:
    prefix = next((prefix for prefix, names in ELSEWHERE.items() if name in names), "")
    return prefix + name


def shape(schema: Any, definitions: Dict[str, Any], depth: int = 0) -> Any:
    """What a schema allows, without names, descriptions, limits and formats of numbers."""
    assert depth < 20
    if schema is True or schema == {}:
        return "anything"
    if "$ref" in schema:
        return shape(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions, depth + 1)
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return union([shape(each, definitions, depth + 1) for each in schema[word]])
    kinds = schema.get("type")
    if isinstance(kinds, list):
        each = [shape({**schema, "type": kind}, definitions, depth + 1) for kind in kinds]
        return union(each)
    if "enum" in schema or "const" in schema:
        return kinds or "string"
    if kinds == "array":
        return ("array", shape(schema.get("items", True), definitions, depth + 1))
    if kinds == "object" and "additionalProperties" in schema and "properties" not in schema:
        values = schema["additionalProperties"]
        inner = "anything" if values is True else shape(values, definitions, depth + 1)
        return "object" if inner == "anything" else ("object", inner)
    return kinds or "anything"


def union(shapes: Any) -> Any:
    distinct = sorted({json.dumps(each) for each in shapes})
    # A whole number is a number, too.
    if '"number"' in distinct and '"integer"' in distinct:
        distinct.remove('"integer"')
    return json.loads(distinct[0]) if len(distinct) == 1 else ("one of", *distinct)


def of_document(schema: Dict[str, Any]) -> Dict[str, Tuple[Any, bool]]:
    required = set(schema.get("required", []))
    return {
        name: (shape(field, SCHEMAS), name in required)
        for name, field in schema.get("properties", {}).items()
    }


def of_model(kind: Type[BaseModel]) -> Dict[str, Tuple[Any, bool]]:
    schema = kind.model_json_schema(mode="validation", by_alias=True)
    definitions = schema.get("$defs", {})
    required = set(schema.get("required", []))
    return {
        name: (shape(field, definitions), name in required)
        for name, field in schema.get("properties", {}).items()
    }


def optional(told: Any) -> Any:
    """The same without "or null": a field that may be left out is null here."""
    if isinstance(told, (list, tuple)) and told[0] == "one of":
        rest = [json.loads(each) for each in told[1:] if each != '"null"']
        return union(rest)
    return told


@pytest.mark.parametrize("name", sorted(modelled()))
def test_each_model_has_the_fields_of_its_schema(name: str) -> None:
    assert name in SCHEMAS, "the document has no such schema"
    kind = modelled()[name]
    wanted, have = of_document(SCHEMAS[name]), of_model(kind)
    for field in LEFT_OUT.get(kind.__name__, set()):
        wanted.pop(field)
    assert set(have) == set(wanted)
    for field, (told, is_required) in wanted.items():
        assert json.dumps(optional(have[field][0])) == json.dumps(optional(told)), field
        # What is asked may not lack anything; what is told may be lacking here, by a default.
        if issubclass(kind, _document.Asked):
            assert have[field][1] == is_required, field
        elif not is_required:
            assert not have[field][1], f"`{field}` may be left out"


def test_each_schema_has_a_model_or_a_reason_to_have_none() -> None:
    known = set(modelled()) | NOT_USED | {schema_name(name) for name in models.__all__}
    unknown = {
        name for name in SCHEMAS if name not in known and not name.startswith(tuple(ELSEWHERE))
    }
    assert unknown == set()
    assert NOT_USED - set(SCHEMAS) == set(), "these are not in the document any more"


def test_what_is_streamed_is_as_the_server_writes_it() -> None:
    source = (ROOT / "crates" / "api" / "src" / "file.rs").read_text()
    change = re.search(r"pub struct FileChange \{(.*?)^\}", source, re.MULTILINE | re.DOTALL)
    kinds = re.search(r"pub enum ChangeKind \{(.*?)^\}", source, re.MULTILINE | re.DOTALL)
    assert change and kinds
    fields = re.findall(r"^    pub (\w+):", change.group(1), re.MULTILINE)
    assert fields == list(models.FileChange.model_fields)
    told = [snake(name) for name in re.findall(r"^    (\w+),$", kinds.group(1), re.MULTILINE)]
    assert told == [each.value for each in models.ChangeKind]


def lists_of_words() -> List[str]:
    names = set(models.__all__) - ONLY_STREAMED
    return sorted(name for name in names if issubclass(getattr(models, name), _document.Word))


@pytest.mark.parametrize("name", lists_of_words())
def test_each_list_of_words_is_that_of_its_schema(name: str) -> None:
    assert {each.value for each in getattr(models, name)} == words(SCHEMAS[name])


def words(schema: Dict[str, Any]) -> Set[str]:
    if "enum" in schema:
        return set(schema["enum"])
    return {each["const"] if "const" in each else each["enum"][0] for each in schema["oneOf"]}


def operations() -> Dict[str, Tuple[str, str]]:
    return {
        operation["operationId"]: (method.upper(), path)
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
        if method != "parameters"
    }


def test_each_operation_is_where_the_document_says() -> None:
    told = operations()
    assert {name: told.get(name) for name in _calls.OPERATIONS} == _calls.OPERATIONS


def test_each_operation_is_used_or_has_a_reason_not_to_be() -> None:
    assert set(operations()) == set(_calls.OPERATIONS) | OPERATIONS_NOT_USED


def test_each_code_has_the_class_that_the_server_gives_it() -> None:
    source = (ROOT / "crates" / "api" / "src" / "error.rs").read_text()
    table = re.findall(r'^    \w+ = "(\w+)", (\d+), (\w+);$', source, re.MULTILINE)
    assert len(table) > 30
    told = {code: snake(kind) for code, _, kind in table}
    word_of = {made: word for word, made in errors.CLASSES.items()}
    assert {code: word_of[made] for code, made in errors.CLASS_OF_CODE.items()} == told


def test_each_code_has_the_class_of_its_status_where_that_is_clear() -> None:
    for status, made in ((404, errors.NotFoundError), (429, errors.BusyError)):
        later = errors.refusal(status, b'{"error":{"code":"from_the_future","message":"no"}}', None)
        assert type(later) is made and later.code == "from_the_future"


def snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def test_a_change_of_the_contract_would_be_noticed() -> None:
    """The comparison itself can fail: for a field more, a field less and another type."""
    schema: Optional[Dict[str, Any]] = SCHEMAS["Session"]
    assert schema is not None
    good = of_document(schema)
    more = of_document({**schema, "properties": {**schema["properties"], "new": {"type": "null"}}})
    other = of_document(
        {**schema, "properties": {**schema["properties"], "id": {"type": "integer"}}}
    )
    assert good != more and good != other and set(good) == set(of_model(models.Session))


NO_ARGUMENT = {"plugins": "no runtime has any in this version"}
"""What a sandbox may be asked for and `Sandbox.create` has no argument for, with the reason."""
OTHER_NAMES = {"environment": "env", "mode": "network"}
"""What has another name here than in the API."""


def test_every_field_of_a_new_sandbox_is_an_argument() -> None:
    arguments = set(inspect.signature(Sandbox.create).parameters) - {"client"}
    parts = {"CreateSession", "Network", "Resources", "SessionLimits"}
    groups = {"network", "resources", "limits"}
    fields = {name for part in parts for name in SCHEMAS[part]["properties"]} - groups
    assert {OTHER_NAMES.get(name, name) for name in fields - set(NO_ARGUMENT)} == arguments
    assert set(NO_ARGUMENT) <= fields and not set(NO_ARGUMENT) & arguments
