"""Asset checks, one file per stage; `graph.py` finds them here.

Those of a feature are in its file in `features/`.

Each check examines all partitions on disk, as a run over a range of partitions has only one result
per check. Checks that read every record, ledger, scan result, mixture or blend skip what passed
before and has not changed since. The others examine everything each time, which is cheap: they map
index parts into memory and read only manifests of mixtures and tables of the report.
"""
