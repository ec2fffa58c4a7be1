"""How the work is cut: by benchmark, by pack, and the scan by both.

A new benchmark shows in the grid as a missing column, new shards as a missing row. Names are checked
in `decon_core.names` before they come here; Dagster itself would take a name with "|" in it and lose
the cell without a word.
"""

from dagster import DynamicPartitionsDefinition, MultiPartitionsDefinition

BENCHMARK = "benchmark"
PACK = "pack"

benchmarks = DynamicPartitionsDefinition(name=BENCHMARK)
packs = DynamicPartitionsDefinition(name=PACK)
cells = MultiPartitionsDefinition({PACK: packs, BENCHMARK: benchmarks})
