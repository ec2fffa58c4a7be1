"""The report as one self-contained HTML file that works offline, built from the database only.

gather.py queries the database, labels.py makes text safe to display, charts.py builds the figures,
sections.py the sections of the overview, matched_texts.py packs the texts, and build.py combines
them with page.html.j2, page.css and the files of scripts/. The scripts contain no data.

Where the words of the page are:

- overview: of sections and tables in overview.toml; counts by class, and sentences that depend on
  numbers, in sections.py; notes in notes.txt.j2, what was searched in scope.txt.j2;
- figures: titles, axes and what the pointer shows in charts.py, names of colours in charts.toml,
  sentences for readers who do not see them in descriptions.py;
- texts, documents, verdicts and keys: what is always there in page.html.j2, the rest in scripts/.
"""
