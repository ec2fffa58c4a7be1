"""Writes rows in the forms of file in which training sets are published."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq


def write_jsonl(path: Path, rows: Sequence[Any]) -> None:
    """Write a row per line, every second one with all other characters than ASCII escaped."""
    lines = (json.dumps(row, ensure_ascii=number % 2 == 0) for number, row in enumerate(rows))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def write_json_array(path: Path, rows: Sequence[Any]) -> None:
    path.write_text(json.dumps([*rows], indent=1, ensure_ascii=False), encoding="utf-8")


def write_json_under_key(path: Path, rows: Sequence[Any]) -> None:
    path.write_text(json.dumps({"version": "1.0", "data": [*rows]}), encoding="utf-8")


def write_json_of_columns(path: Path, rows: Sequence[Any]) -> None:
    path.write_text(json.dumps(_columns(rows)), encoding="utf-8")


def write_csv(path: Path, rows: Sequence[Any]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*_columns(rows)])
        writer.writeheader()
        writer.writerows(rows)


def write_parquet(path: Path, rows: Sequence[Any]) -> None:
    """Write lists of structs with the union of all keys, as `datasets` does."""
    pq.write_table(pa.table(_columns(rows)), path)


def write_json_columns(path: Path, rows: Sequence[Any]) -> None:
    """Write lists of JSON strings as lists of Arrow's type JSON (`datasets` from 4.7)."""
    columns = {name: pa.array(values) for name, values in _columns(rows).items()}
    pq.write_table(
        pa.table({name: column.cast(pa.list_(pa.json_())) for name, column in columns.items()}),
        path,
    )


def write_folder(path: Path, rows: Sequence[Any]) -> None:
    """Write what `datasets.DatasetDict.save_to_disk` writes, with one split."""
    split = path / "train"
    split.mkdir(parents=True)
    table = pa.table(_columns(rows))
    with pa.ipc.new_stream(split / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": "train"}
    state |= {"_fingerprint": "0" * 16, "_format_columns": None, "_format_kwargs": {}}
    state |= {"_format_type": None, "_output_all_columns": False}
    (split / "state.json").write_text(json.dumps(state))
    (split / "dataset_info.json").write_text(json.dumps({"description": "", "features": None}))
    (path / "dataset_dict.json").write_text(json.dumps({"splits": ["train"]}))


def write_tar(path: Path, rows: Sequence[Any]) -> None:
    """Write a WebDataset: `KEY.json` for each row, and a picture beside it."""
    with tarfile.open(path, "w") as archive:
        for number, row in enumerate(rows):
            for ending, data in (("json", json.dumps(row).encode()), ("jpg", b"\xff\xd8\xff\xe0")):
                info = tarfile.TarInfo(f"{number:06}.{ending}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def _columns(rows: Sequence[Any]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


_FORMS: Mapping[str, tuple[str, Callable[[Path, Sequence[Any]], None]]] = {
    "jsonl": ("rows.jsonl", write_jsonl),
    "json": ("rows.json", write_json_array),
    "json_under_key": ("rows.json", write_json_under_key),
    "json_of_columns": ("rows.json", write_json_of_columns),
    "csv": ("rows.csv", write_csv),
    "parquet": ("rows.parquet", write_parquet),
    "json_columns": ("rows.parquet", write_json_columns),
    "folder": ("rows", write_folder),
    "tar": ("rows.tar", write_tar),
}


def write_rows(folder: Path, form: str, rows: Sequence[Any]) -> Path:
    """Write rows to a folder, which is made, in one of the forms of layouts.yaml."""
    name, write = _FORMS[form]
    folder.mkdir(parents=True)
    write(folder / name, rows)
    return folder / name
