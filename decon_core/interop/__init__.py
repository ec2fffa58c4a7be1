"""Findings that were written in another form, as a report's database, and the other way round.

folder.py reads what `decon-assets scan` leaves in a folder, read.py the reports of the reference
implementation, marks.py the marks in their texts; write.py writes such reports from a store. What a
form does not hold is null in the database: nobody counted it.
"""
