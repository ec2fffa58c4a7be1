"""Derive recipes from the files in which registries declare benchmarks."""

from decon_core.feature import Feature

FEATURE = Feature(name="importers", registry="decon_assets.features.importers:print_recipes")
