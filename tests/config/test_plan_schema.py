"""The published schema: complete, described, and true to what the loader accepts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from harness.config import plan_file, schema
from harness.model.plan import Plan

PLANS = Path(__file__).parents[2] / "fixtures" / "plans"
SCHEMA = schema.plan_schema()
_TYPES = {
    "string": str,
    "array": list,
    "object": dict,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": int,
}


def _fits(rule, value):
    """The part of JSON Schema that the plan's schema uses."""
    if "$ref" in rule:
        return _fits(SCHEMA["$defs"][rule["$ref"].rpartition("/")[2]], value)
    if "anyOf" in rule:
        return any(_fits(branch, value) for branch in rule["anyOf"])
    if value not in rule.get("enum", [rule.get("const", value)]) or not _has_type(rule.get("type"), value):
        return False
    fit = {str: _text_fits, int: _number_fits, list: _list_fits, dict: _mapping_fits}.get(type(value))
    return fit is None or fit(rule, value)


def _has_type(kind, value):
    if isinstance(value, bool) or kind is None:
        return kind in {"boolean", None}
    return isinstance(value, _TYPES[kind])


def _text_fits(rule, value):
    long = rule.get("minLength", 0) <= len(value) <= rule.get("maxLength", len(value))
    return long and re.search(rule.get("pattern", ""), value) is not None


def _number_fits(rule, value):
    return rule.get("minimum", value) <= value <= rule.get("maximum", value)


def _list_fits(rule, value):
    long = rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value))
    return long and all(_fits(rule.get("items", {}), item) for item in value)


def _mapping_fits(rule, value):
    many = rule.get("minProperties", 0) <= len(value) <= rule.get("maxProperties", len(value))
    whole = all(name in value for name in rule.get("required", []))
    inner = {name: _inner(rule, name) for name in value}
    return many and whole and all(inner[name] is not False and _fits(inner[name], value[name]) for name in value)


def _inner(rule, name):
    patterned = [inner for pattern, inner in rule.get("patternProperties", {}).items() if re.search(pattern, name)]
    return next(iter(patterned), rule.get("properties", {}).get(name, rule.get("additionalProperties", {})))


@pytest.mark.parametrize("path", sorted(PLANS.joinpath("good").iterdir()), ids=lambda path: path.name)
def test_good_plans_fit_the_schema(path):
    """What the loader accepts, an editor with the schema accepts."""
    kept = plan_file.load(path).plan.model_dump(mode="json", exclude_unset=True, by_alias=True)
    assert _fits(SCHEMA, kept)


@pytest.mark.parametrize(
    "name",
    ["unknown-step-field", "no-steps", "empty-steps", "no-title", "version-2", "on-failure", "command-text", "slug",
     "check-field", "two-actions-in-one", "env-number", "env-name", "many-retries", "owns-empty"],
)  # fmt: skip
def test_bad_structure_does_not_fit(name):
    """What the loader refuses for its structure, an editor marks too."""
    data = yaml.safe_load(PLANS.joinpath("bad", f"{name}.yaml").read_text(encoding="utf-8"))
    assert not _fits(SCHEMA, data)


def test_every_field_has_a_sentence():
    """Nothing is published without saying what it means."""
    parts = {"Plan": SCHEMA, **SCHEMA["$defs"]}
    missing = [
        f"{name}.{field}"
        for name, part in parts.items()
        for field, rule in part["properties"].items()
        if not rule.get("description", "").endswith(".")
    ]
    assert missing == []


def test_the_example_is_a_plan():
    """The published example loads and fits."""
    example = SCHEMA["examples"][0]
    assert Plan.model_validate(example)
    assert _fits(SCHEMA, example)


def test_the_schema_is_stable_json():
    """The same text every time, with its dialect and title."""
    text = json.dumps(SCHEMA)
    assert text == json.dumps(schema.plan_schema())
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert SCHEMA["title"] == "Orchestrix plan"
