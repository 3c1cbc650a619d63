
# ---- Schemas of functions, from their signatures and documentation. ----

import inspect  # noqa: E402
import re  # noqa: E402
import typing  # noqa: E402

PLAIN = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    bytes: {"type": "string", "format": "binary"},
    list: {"type": "array", "items": {}},
    tuple: {"type": "array", "items": {}},
    set: {"type": "array", "items": {}, "uniqueItems": True},
    frozenset: {"type": "array", "items": {}, "uniqueItems": True},
    dict: {"type": "object", "additionalProperties": True},
}
# Deeper types are taken for anything.
DEPTH_MAX = 16


def schema_of_type(kind, definitions, depth=0):
    """The JSON schema of an annotation; what nobody knows is anything."""
    if depth > DEPTH_MAX or kind in (inspect.Parameter.empty, typing.Any):
        return {}
    if kind is None:
        kind = type(None)
    if isinstance(kind, type) and kind in PLAIN:
        return dict(PLAIN[kind])
    inner = lambda argument: schema_of_type(argument, definitions, depth + 1)  # noqa: E731
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if hasattr(kind, "__metadata__"):  # typing.Annotated
        return inner(kind.__origin__)
    if origin is typing.Union or type(kind).__name__ == "UnionType":
        return {"anyOf": [inner(argument) for argument in arguments]}
    if origin is not None and getattr(typing, "Literal", None) is origin:
        schema = {"enum": list(arguments)}
        kinds = {type(argument) for argument in arguments}
        if len(kinds) == 1:
            schema["type"] = PLAIN.get(kinds.pop(), {}).get("type", "string")
        return schema
    if isinstance(origin, type):
        return schema_of_container(origin, arguments, inner)
    if isinstance(kind, type):
        return schema_of_class(kind, definitions, inner)
    return {}


def schema_of_container(origin, arguments, inner):
    import collections.abc as abc

    if issubclass(origin, tuple):
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": inner(arguments[0])}
        items = [inner(argument) for argument in arguments]
        count = len(items)
        return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}
    if issubclass(origin, abc.Mapping):
        values = inner(arguments[1]) if len(arguments) == 2 else {}
        return {"type": "object", "additionalProperties": values or True}
    if issubclass(origin, (abc.Sequence, abc.Set, abc.Iterable)):
        schema = {"type": "array", "items": inner(arguments[0]) if arguments else {}}
        if issubclass(origin, abc.Set):
            schema["uniqueItems"] = True
        return schema
    return {}


def schema_of_class(kind, definitions, inner):
    """Enumerations, data classes, typed dictionaries and models of pydantic, by reference."""
    import dataclasses
    import enum

    name = kind.__name__
    reference = {"$ref": "#/$defs/" + name}
    if name in definitions:
        return reference
    if hasattr(kind, "model_json_schema"):
        schema = kind.model_json_schema()
        definitions.update(schema.pop("$defs", {}))
        definitions[name] = schema
    elif issubclass(kind, enum.Enum):
        values = [member.value for member in kind]
        definitions[name] = {"enum": values}
        kinds = {type(value) for value in values}
        if len(kinds) == 1:
            definitions[name]["type"] = PLAIN.get(kinds.pop(), {}).get("type", "string")
    elif dataclasses.is_dataclass(kind) or hasattr(kind, "__total__"):
        # Named first, so that a class that holds itself ends.
        definitions[name] = {}
        hints = annotations_of(kind)
        if dataclasses.is_dataclass(kind):
            missing = dataclasses.MISSING
            required = [
                field.name
                for field in dataclasses.fields(kind)
                if field.default is missing and field.default_factory is missing
            ]
        else:
            required = sorted(getattr(kind, "__required_keys__", hints), key=list(hints).index)
        definitions[name] = {
            "type": "object",
            "properties": {field: inner(hint) for field, hint in hints.items()},
            "required": required,
        }
    else:
        return {}
    return reference


def annotations_of(thing):
    try:
        return typing.get_type_hints(thing)
    except Exception:  # Annotations may name what does not exist here.
        return dict(getattr(thing, "__annotations__", {}))


def signature_of(function):
    """Parameters that can be given by name, and whether more are taken."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # Some functions of C have none.
        return [], True, True
    kinds = [parameter.kind for parameter in parameters]
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    variadic = inspect.Parameter.VAR_POSITIONAL in kinds
    return named, variadic, inspect.Parameter.VAR_KEYWORD in kinds


def schemas_of_function(function):
    """The strict schema that a language model sees, and the one that calls are held to."""
    named, variadic, open_ended = signature_of(function)
    hints = annotations_of(function)
    described = documented_parameters(inspect.getdoc(function) or "")
    definitions, strict, loose = {}, {}, {}
    for parameter in named:
        kind = hints.get(parameter.name, parameter.annotation)
        schema = schema_of_type(kind, definitions)
        optional = parameter.default is not parameter.empty
        about = described.get(parameter.name)
        strict[parameter.name] = finished(nullable(schema) if optional else schema, about)
        loose[parameter.name] = finished(nullable(schema, True) if optional else schema, about)
    required = [p.name for p in named if p.default is p.empty]
    closed = {name: close(schema) for name, schema in definitions.items()}

    def whole(properties, names, extra):
        schema = {"type": "object", "properties": properties, "required": names}
        schema["additionalProperties"] = extra
        if closed:
            schema["$defs"] = closed
        return schema

    parameters = whole(strict, [p.name for p in named], False)
    accepts = whole(loose, required, open_ended)
    if variadic:
        accepts["x-variadic"] = True
    return parameters, accepts


def nullable(schema, keep_any=False):
    """What a parameter with a default accepts: null too, by the rules of CAMEL's schemas."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]} if keep_any else schema
    if "anyOf" in schema:
        if {"type": "null"} in schema["anyOf"]:
            return schema
        return dict(schema, anyOf=schema["anyOf"] + [{"type": "null"}])
    if "enum" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        return dict(schema, type=kinds + [kind for kind in ["null"] if kind not in kinds])
    return {} if keep_any else {"type": ["null"]}


def finished(schema, about):
    schema = close(schema)
    if about and "$ref" not in schema:
        schema["description"] = about
    return schema


def close(schema):
    """A copy without titles, in which every object says that it takes nothing else."""
    if isinstance(schema, list):
        return [close(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    copy = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            copy[key] = {name: close(item) for name, item in value.items()}
        elif not (key == "title" and isinstance(value, str)):
            copy[key] = value if key in ("enum", "default", "const") else close(value)
    if copy.get("type") == "object" and "additionalProperties" not in copy:
        copy["additionalProperties"] = False
    return copy


SECTION = re.compile(r"^(Args|Arguments|Parameters|Params|Returns?|Yields?|Raises?|Examples?|Notes?|Attributes|See Also|References|Warnings?)\s*:?\s*$")
FIELD = re.compile(r"^[:@](param|parameter|arg|argument|key|keyword)\s+(?:[^:]*?\s)?(\*{0,2}\w+)\s*:\s*(.*)$")
ANY_FIELD = re.compile(r"^[:@]\w+[^:]*:")
GOOGLE = re.compile(r"^(\*{0,2}\w+)\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:\s*(.*)$")
NUMPY = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")


def description_of(documentation):
    """What stands before the first section or field."""
    kept = []
    lines = documentation.splitlines()
    for number, line in enumerate(lines):
        below = lines[number + 1].strip() if number + 1 < len(lines) else ""
        begins = SECTION.match(line.strip()) and (line.rstrip().endswith(":") or is_rule(below))
        if begins or ANY_FIELD.match(line.strip()):
            break
        kept.append(line.rstrip())
    short, _, long = "\n".join(kept).strip().partition("\n\n")
    return "\n".join(part for part in (short, long.strip()) if part)


def documented_parameters(documentation):
    """What is said of parameters, in the styles of ReST, Epydoc, Google and NumPy."""
    found, lines, number = {}, documentation.splitlines(), 0
    while number < len(lines):
        line = lines[number]
        field = FIELD.match(line.strip())
        if field:
            text, number = gathered(lines, number + 1, indent(line) + 1, field.group(3))
            found[field.group(2).lstrip("*")] = text
            continue
        section = SECTION.match(line.strip())
        if section and section.group(1).startswith(("Arg", "Param")):
            if number + 1 < len(lines) and is_rule(lines[number + 1].strip()):
                number = numpy_section(lines, number + 2, found)
            else:
                number = google_section(lines, number + 1, indent(line), found)
            continue
        number += 1
    return found


def google_section(lines, number, outer, found):
    while number < len(lines):
        line = lines[number]
        if line.strip() and indent(line) <= outer:
            break
        entry = GOOGLE.match(line.strip())
        number += 1
        if entry:
            text, number = gathered(lines, number, indent(line) + 1, entry.group(2))
            found[entry.group(1).lstrip("*")] = text
    return number


def numpy_section(lines, number, found):
    while number < len(lines):
        line = lines[number]
        if number + 1 < len(lines) and is_rule(lines[number + 1].strip()):
            break
        entry = NUMPY.match(line.strip())
        number += 1
        if entry and line.strip():
            text, number = gathered(lines, number, indent(line) + 1, "")
            for name in entry.group(1).split(","):
                found[name.strip().lstrip("*")] = text
    return number


def gathered(lines, number, least, text):
    parts = [text.strip()]
    while number < len(lines) and lines[number].strip() and indent(lines[number]) >= least:
        parts.append(lines[number].strip())
        number += 1
    return " ".join(part for part in parts if part), number


def indent(line):
    return len(line) - len(line.lstrip())


def is_rule(line):
    return len(line) >= 3 and set(line) <= set("-=")

