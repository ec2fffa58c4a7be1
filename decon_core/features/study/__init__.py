"""Compare the scores of models that were trained on variants of the data.

`scores` reads the results of each model, `differences` compares them with the baseline,
`through_training` does so at each step and `by_dose` by dose, `exposure` compares the items that a
model was exposed to with the others, `translation` has BLEU and chrF. `build` writes the study,
`page` has its figures, tables and section of the report's page.

Another kind of study is a feature of its own: `decon_core/feature.py` says what that takes.
"""

from decon_core.feature import Command, Feature

FEATURE = Feature(
    name="study",
    requires=("blends", "results"),
    tables={"study": "decon_core.features.study.settings:Study"},
    products={"study": "decon_core.features.study.product:is_missing"},
    folders={"study": "study.json"},
    commands={
        "study": Command(
            function="command:study_command",
            group="Studies",
            about="compare models that were trained on variants of the data",
            examples=(
                "study                        scores of models trained on variants of the data",
            ),
        )
    },
    page="decon_core.features.study.product:study_on_page",
)
