"""What comes from outside: benchmark files and training shards. Never materialized, only named."""

from dagster import AssetSpec

from decon_assets.partitions import benchmarks, packs
from decon_assets.provenance import OWNERS

benchmark_files = AssetSpec(
    "benchmark_files",
    group_name="inputs",
    owners=OWNERS,
    kinds={"file"},
    code_version="1",
    partitions_def=benchmarks,
    description="Raw benchmark files, read through their recipe in `evals.yaml`. They come from "
    "outside: nothing here is materialized.",
)

corpus = AssetSpec(
    "corpus",
    group_name="inputs",
    owners=OWNERS,
    kinds={"file"},
    code_version="1",
    partitions_def=packs,
    description="Shards of training text, grouped into packs that never change their members. They "
    "come from outside: nothing here is materialized.",
)
