"""The folders of blends in the store."""

from pathlib import Path

from decon_core.storage.store import Store


def blend_folder(store: Store, name: str) -> Path:
    return store.root / "blends" / name


def blend_manifest(store: Store, name: str) -> Path:
    return store.root / "manifests/blends" / name / "manifest.json"
