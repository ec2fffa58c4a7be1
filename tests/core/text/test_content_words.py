"""Content words: which words count, their stems, their weights."""

from decon_core.text.content_words import is_content, stems, weight_of


def test_stop_words_numbers_and_single_letters_do_not_count():
    words = ["she", "sells", "the", "12", "twelve", "s", "muffins", "at", "market"]
    assert [*filter(is_content, words)] == ["sells", "muffins", "market"]


def test_forms_of_a_word_have_one_stem():
    assert len(set(stems(["bake", "bakes", "baking", "baked"]))) == 1
    assert stems(["muffins", "muffin"]) == ["muffin", "muffin"]


def test_a_rare_word_weighs_more_than_a_frequent_one():
    assert weight_of(["people"]) < weight_of(["market"]) < weight_of(["muffins"])
    assert weight_of(["muffins", "people"]) == weight_of(["people"])
