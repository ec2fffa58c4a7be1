"""Names of languages in the templates of translations, which differ by direction."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping

from decon_core.benchmarks.languages import LANGUAGES
from decon_core.benchmarks.recipe import LANGUAGE_KEYS, Recipe, TranslationPair
from decon_core.errors import Problem
from decon_core.features.blends.settings import Blend, Contamination
from decon_core.wording import counted

_PLACEHOLDERS = " and ".join(f"{{{key}}}" for key in LANGUAGE_KEYS)


def named_languages(blends: Iterable[Blend], recipes: Mapping[str, Recipe]) -> Iterator[Problem]:
    """Yield a problem for each template that names a language, but is of both directions."""
    pairs = {name: recipe.questions for name, recipe in recipes.items()}
    for blend in blends:
        for number, contamination in enumerate(blend.contamination):
            for benchmark in contamination.benchmarks:
                pair, template = pairs.get(benchmark), contamination.template_of(benchmark)
                if template is None or not isinstance(pair, TranslationPair):
                    continue
                if pair.both_directions and (named := _languages_in(template, pair)):
                    yield Problem(
                        f"blend {blend.name!r}: contamination[{number}].template",
                        f"the language {' and '.join(named)} for {benchmark!r}, which is "
                        "translated in both directions: half of the texts would be mislabelled",
                        f"{_PLACEHOLDERS}, which are swapped with the direction",
                    )


def _languages_in(template: str, pair: TranslationPair) -> list[str]:
    names = {*LANGUAGES.values(), *pair.languages(None).values()}
    name = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    literals = (literal for literal, *_ in string.Formatter().parse(template))
    return sorted({language for literal in literals for language in name.findall(literal)})


def no_languages(benchmark: str, contamination: Contamination, n_items: int) -> Iterator[Problem]:
    """Yield a problem if a template shows the languages of items that name none."""
    template = contamination.template_of(benchmark) or ""
    if any(name in LANGUAGE_KEYS for _, name, _, _ in string.Formatter().parse(template)):
        found = f"{counted(n_items, 'item')} without languages"
        expected = f"items with both, because the template has {_PLACEHOLDERS}"
        remedy = f"Set {' and '.join(LANGUAGE_KEYS)} in the recipe."
        yield Problem(f"benchmark {benchmark!r}", found, expected, remedy)
