"""The website: the pages of docs/, and reference pages made from the code. Not in the wheel."""
