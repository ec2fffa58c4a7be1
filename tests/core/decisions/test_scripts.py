"""Benchmarks that the tokenizer splits into letters are named, with the tokenizer to take."""

import pytest

from decon_core.config.policy import Policy
from decon_core.decisions.scripts import split_scripts

# The first article of the Universal Declaration of Human Rights.
ENGLISH = "All human beings are born free and equal in dignity and rights."
URDU = "تمام انسان آزاد اور حقوق و عزت کے اعتبار سے برابر پیدا ہوئے ہیں۔"
HINDI = "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।"
CHINESE = "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"


@pytest.mark.parametrize(
    ("questions", "settings", "times"),
    [
        ([URDU], {}, "3."),
        ([HINDI], {}, "3."),
        ([URDU, ENGLISH[:40]], {}, "2."),  # most letters are not Latin
        ([ENGLISH, URDU[:30]], {}, None),
        ([CHINESE], {}, None),
        ([ENGLISH], {}, None),
        ([""], {}, None),
        ([URDU], {"tokenizer_str": "o200k"}, None),
        ([URDU], {"tokenizer_str": "words"}, None),
        ([HINDI], {"tokenizer_str": "llama3"}, "1."),
        ([URDU], {"detectors": ("decon", "exact")}, None),
        ([URDU], {"detectors": ("decon", "longest_match")}, "3."),
    ],
)
def test_a_benchmark_whose_script_is_split_into_letters_is_named(bench, questions, settings, times):
    policy = Policy(**{"detectors": ("ratcliff",)} | settings)
    versions = [bench.save("b", [(question, "12", None) for question in questions])]
    found = split_scripts(bench.store, versions, policy)
    assert [one.where for one in found] == (["b"] if times else [])
    for one in found:
        assert f"needs {times}" in one.found
        assert 'tokenizer_str = "o200k"' in one.remedy
