"""The pipeline as Dagster assets: which inputs, when, and is the answer still valid?"""
