"""The report as one self-contained HTML file that works offline, built from the database only.

gather.py queries the database, labels.py makes text safe to display, charts.py builds the figures,
sections.py the sections of the overview, pairs.py packs the pairs, and build.py combines them with
page.html.j2, page.css and the files of scripts/. The scripts contain no data.

Sentences: of sections overview.toml, of notes notes.txt.j2, of what was searched scope.txt.j2, of
figures charts.toml, of terms descriptions.py.
"""

from decon_core.report.html.build import write_page

__all__ = ["write_page"]
