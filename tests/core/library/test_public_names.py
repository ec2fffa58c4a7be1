"""The public names: exactly those that the page lists, documented, typed, and loaded when used."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

import decon_core as dc

PAGE = (Path(__file__).parents[3] / "docs" / "library.md").read_text()
METHODS = {
    "Findings": {"has_invalid_utf8", "is_kept", "is_leaked", "row", "slots", "text", "to_arrow"}
    | {"to_polars", "unread", "unreadable", "count", "index"},  # the last two: of a sequence
    "Index": {"benchmarks", "check", "check_all", "folder", "invisible", "keep", "keep_all"}
    | {"n_items", "policy", "record", "table"},
}


def test_the_public_names_are_these():
    assert dc.__all__ == [
        "DeconError",
        "Finding",
        "Findings",
        "Index",
        "Policy",
        "build_index",
        "open_index",
    ]
    assert {*dc.__all__} <= {*dir(dc)}
    for name, methods in METHODS.items():
        assert {one for one in dir(getattr(dc, name)) if not one.startswith("_")} == methods
    with pytest.raises(AttributeError, match="nothing_like_that"):
        _ = dc.nothing_like_that


def documented() -> list[tuple[str, object]]:
    """The public names, and those of their methods and properties."""
    named = [(name, getattr(dc, name)) for name in dc.__all__]
    named += [
        (f"{name}.{method}", inspect.getattr_static(getattr(dc, name), method))
        for name, methods in METHODS.items()
        for method in sorted(methods - {"count", "index"})
    ]
    return [(name, one) for name, one in named if not inspect.ismemberdescriptor(one)]


@pytest.mark.parametrize(("name", "one"), documented())
def test_each_name_has_a_docstring_types_and_a_place_on_the_page(name, one):
    assert len(inspect.getdoc(one) or "") > 20
    assert f"`{name.rpartition('.')[2]}" in PAGE
    function = one.fget if isinstance(one, property) else one
    if inspect.isfunction(function):
        hints = [*inspect.signature(function).parameters.values()]
        assert all(one.annotation is not one.empty for one in hints if one.name != "self")
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty


def test_the_fields_of_a_finding_are_typed_and_on_the_page():
    assert {*get_type_hints(dc.Finding)} == {*dc.Finding.__slots__}
    for name in (*dc.Finding.__slots__, "item", "outcome"):
        assert re.search(rf"`{name}\b", PAGE), name


def test_importing_the_package_loads_none_of_its_parts_and_no_other_package():
    heavy = ("numba", "numpy", "polars", "pyarrow", "pydantic", "datasets", "jinja2")
    program = f"""
import sys, decon_core
print(*[name for name in sys.modules if name.startswith("decon_core.") or name in {heavy}])
decon_core.build_index
print(*[name for name in ("datasets", "dagster", "duckdb") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "\n\n"
