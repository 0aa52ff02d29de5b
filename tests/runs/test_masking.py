"""What leaves the machine tells no secret and no place of it."""

from __future__ import annotations

from harness.runs.masking import Masking

ENVIRON = {
    "OPENAI_API_KEY": "one-two-three",
    "SHORT_TOKEN": "abc",
    "MINE": "passed-on-purpose",
    "PATH": "/usr/local/bin",
}


def test_secrets_and_places_are_replaced_longest_first() -> None:
    """Named like a secret or passed on purpose; a short value is a word; a place inside another keeps its own name."""
    hide = Masking.of(ENVIRON, ["MINE", "UNSET"], {"/h": "<home>", "/h/ws/0": "<workspace>", "/": "<root>"})
    assert hide.text("one-two-three abc passed-on-purpose /h/ws/0/f /h/x /usr/local/bin") == (
        "<OPENAI_API_KEY> abc <MINE> <workspace>/f <home>/x /usr/local/bin"
    )


def test_well_known_forms_are_replaced_whoever_they_belong_to() -> None:
    """Keys of providers, tokens of forges, private keys."""
    hide = Masking.of({}, [], {})
    forms = (
        "sk-ant-" + "a1" * 20,
        "ghp_" + "a1" * 18,
        "AKIA" + "A1" * 8,
        "-----BEGIN RSA {0}-----\nabc\n-----END RSA {0}-----".format("PRIVATE KEY"),
    )
    for form in forms:
        assert hide.text(f"before {form} after") == "before <secret> after"
    assert hide.text("sk-short and task-list") == "sk-short and task-list"


def test_every_text_of_a_value_is_looked_at() -> None:
    """Names, lists and numbers of usage and criteria."""
    hide = Masking.of(ENVIRON, [], {})
    told = {"one-two-three": [{"a": "one-two-three"}, 1, None, True]}
    assert hide.value(told) == {"<OPENAI_API_KEY>": [{"a": "<OPENAI_API_KEY>"}, 1, None, True]}


def test_a_secret_in_a_content_is_named() -> None:
    """By the name of its variable, never by its value."""
    hide = Masking.of(ENVIRON, [], {})
    assert hide.betrayed(b"\xff one-two-three") == "<OPENAI_API_KEY>"
    assert hide.betrayed(b"nothing") is None
