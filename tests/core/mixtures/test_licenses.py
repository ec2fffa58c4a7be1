"""Licenses that are names, and SPDX expressions compared with a plain recursive evaluation."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decon_core.config.mixtures import Licenses, Mixture
from decon_core.mixtures.licenses import may_be_taken, parse
from tests.uncompiled import fewer


def licenses(*allow, deny=(), unknown="drop"):
    return Licenses(fields=("license",), allow=allow, deny=deny, unknown=unknown)


@pytest.mark.parametrize(
    ("found", "is_taken"),
    [
        ("MIT", True),
        ("mit ", True),
        ("CC-BY-4.0", True),
        ("CC-BY-NC-4.0", False),  # denied, though the pattern allows it
        ("GPL-3.0-only", False),
        ("", False),
        ("NOASSERTION", False),
        (None, False),
    ],
)
def test_licenses_are_names_in_any_case_and_deny_outweighs_allow(found, is_taken):
    allowed = licenses("mit", "cc-by-*", deny=("*-NC-*",))
    assert may_be_taken(found, allowed) == is_taken


def test_without_an_allow_list_all_that_is_not_denied_is_taken():
    allowed = licenses(deny=("GPL-*",), unknown="keep")
    assert may_be_taken("anything", allowed)
    assert may_be_taken(None, allowed)
    assert may_be_taken("unknown", allowed)
    assert not may_be_taken("gpl-3.0", allowed)


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("MIT OR GPL-3.0-only", True),
        ("gpl-3.0-only or mit", True),
        ("MIT AND GPL-3.0-only", False),
        ("MIT AND CC-BY-4.0", True),
        ("MIT AND (GPL-3.0-only OR CC-BY-SA-4.0)", True),
        ("(MIT AND GPL-3.0-only) OR ISC", False),
        ("GPL-3.0-only OR MIT AND CC-BY-4.0", True),  # AND binds closer
        ("GPL-3.0-only OR MIT AND ISC", False),
        ("(MIT)", True),
        ("MIT+", True),
        ("MIT WITH some-exception", True),
        ("GPL-2.0-only WITH Classpath-exception-2.0", True),
        ("(GPL-2.0-only with Classpath-exception-2.0) AND MIT", True),
        ("GPL-2.0-only", False),
        ("GPL-2.0-only WITH another-exception", False),
        ("MIT OR CC-BY-NC-4.0", True),  # the other one can be chosen
        ("MIT AND CC-BY-NC-4.0", False),
        ("CC-BY-NC-4.0+ OR CC-BY-NC-3.0", False),
        ("NOASSERTION AND MIT", False),
        ("NOASSERTION OR MIT", True),
        ("LicenseRef-a OR DocumentRef-b:LicenseRef-c OR MIT", True),
    ],
)
def test_an_expression_is_taken_if_its_terms_can_be_met_with_allowed_licenses(text, is_taken):
    allowed = licenses(
        "MIT", "CC-BY-*", "GPL-2.0-only WITH Classpath-exception-2.0", deny=("CC-BY-NC-*",)
    )
    assert may_be_taken(text, allowed) == is_taken


@pytest.mark.parametrize(
    "text",
    [
        *("", "MIT", "Apache 2.0", "MIT License or Apache License", "The Unlicense (Unlicense)"),
        *("MIT/Apache-2.0", "MIT OR", "(MIT", "()", "(OR MIT", "A WITH B WITH C", "C++", "+"),
        *("(A OR B) WITH C", "a & b", "use it for good, and share", "MIT OR " * 200 + "MIT"),
    ],
)
def test_a_text_that_is_no_expression_is_a_name_as_a_whole(text):
    assert parse(text) is None
    assert may_be_taken(text, licenses("mit")) == (text == "MIT")
    assert not may_be_taken(text, licenses(text.replace("(", "[(]") or "x", deny=("*",)))


def test_an_expression_that_is_allowed_as_written_is_taken_unless_a_part_is_denied():
    assert may_be_taken("ISC OR Foo", licenses("isc or foo"))
    assert may_be_taken("ISC AND Foo", licenses("isc and foo"))
    assert not may_be_taken("ISC AND Foo", licenses("isc and foo", deny=("foo",)))


def test_a_denied_pattern_may_mean_the_expression_as_a_whole():
    assert may_be_taken("MIT OR GPL-3.0", licenses(deny=("GPL-*",)))
    assert not may_be_taken("MIT OR GPL-3.0", licenses(deny=("*GPL*",)))
    assert not may_be_taken("GPL-2.0+ WITH Classpath-exception-2.0", licenses(deny=("GPL-2.0",)))


def test_parts_of_unknown_license_are_treated_as_declared():
    assert may_be_taken("MIT AND unknown", licenses("MIT", unknown="keep"))
    assert not may_be_taken("MIT AND unknown", licenses("MIT", unknown="drop"))
    assert not may_be_taken("GPL-3.0 AND unknown", licenses("MIT", unknown="keep"))


def test_mixtures_in_which_expressions_were_names_are_built_again():
    assert "texts" in Mixture(name="m", licenses=licenses("MIT")).to_json()["licenses"]
    assert Mixture(name="m").to_json()["licenses"] is None


NAMES = st.sampled_from(["MIT", "mit", "GPL-2.0", "CC-BY-4.0", "CC-BY-SA-3.0", "unknown", "x"])
PATTERNS = st.sampled_from(["MIT", "gpl-*", "CC-BY-SA-*", "*", "GPL-2.0+", "*with e", "x", "MIT*"])
LICENSES = st.builds(
    lambda name, plus, exception: ("name", name + plus, exception),
    NAMES,
    st.sampled_from(["", "", "+"]),
    st.sampled_from(["", "", "E"]),
)
EXPRESSIONS = st.recursive(
    LICENSES,
    lambda inner: st.tuples(
        st.sampled_from(["AND", "and", "OR", "or"]), st.lists(inner, min_size=2, max_size=3)
    ),
    max_leaves=8,
)


def written(expression):
    """The text of an expression, with parentheses around every part."""
    if expression[0] == "name":
        _, name, exception = expression
        return f"{name} WITH {exception}" if exception else name
    return f" {expression[0]} ".join(f"({written(part)})" for part in expression[1])


def plain(expression, allowed):
    """Whether an expression is taken, as its definition says."""
    if expression[0] != "name":
        each = [plain(part, allowed) for part in expression[1]]
        return all(each) if expression[0] in ("AND", "and") else any(each)
    _, name, exception = expression
    if name.rstrip("+") == "unknown":
        return allowed.unknown == "keep"
    names = {name, name.rstrip("+"), f"{name} WITH {exception}" if exception else name}

    def is_in(patterns):
        return any(
            fnmatchcase(one.lower(), pattern.lower()) for one in names for pattern in patterns
        )

    return (not allowed.allow or is_in(allowed.allow)) and not is_in(allowed.deny)


@settings(derandomize=True, max_examples=fewer(150))
@given(
    EXPRESSIONS,
    st.builds(
        Licenses,
        field=st.just(("license",)),
        allow=st.lists(PATTERNS, max_size=3, unique=True).map(tuple),
        deny=st.lists(PATTERNS, max_size=2, unique=True).map(tuple),
        unknown=st.sampled_from(["keep", "drop"]),
    ),
)
def test_prop_expressions_are_evaluated_as_defined(expression, allowed):
    text = written(expression)
    is_denied = any(fnmatchcase(text.lower(), pattern.lower()) for pattern in allowed.deny)
    if text == "unknown":
        assert may_be_taken(text, allowed) == (allowed.unknown == "keep")
    else:
        assert may_be_taken(text, allowed) == (plain(expression, allowed) and not is_denied)


@given(st.text("MITab-+:.() ORANDWITHorandwith\n*[é", max_size=40))
@example("A AND (B OR C+) WITH")
@example("(AND x y")
def test_prop_any_text_is_read(text):
    assert isinstance(may_be_taken(text, licenses("MIT", deny=("a*",))), bool)
