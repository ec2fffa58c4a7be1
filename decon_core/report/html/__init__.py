"""The report as one HTML file: offline, self-contained, made from the database alone.

gather.py asks the database, labels.py makes any text harmless to show, charts.py draws, sections.py
says what is to be seen, pairs.py packs the pairs, build.py puts all of it into page.html together
with page.css and the scripts. What the page does is written in the scripts, data in none of them.
"""

from decon_core.report.html.build import write_page

__all__ = ["write_page"]
