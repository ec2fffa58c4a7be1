"""The pipeline with corpus, benchmarks and products on a store that speaks S3, served by moto."""

import gzip
import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dagster import DagsterInstance

from decon_assets.cli.main import main
from decon_assets.cli.store_state import remove_damaged_files
from decon_assets.runner.pipeline import Pipeline
from decon_core.config.load import load_config
from decon_core.config.sources import Source
from decon_core.corpus.packs import find_shards
from decon_core.corpus.registration import list_packs
from decon_core.corpus.shards import read_blocks, read_places, read_shard
from decon_core.errors import ConfigError, CorpusError
from decon_core.planner import input_files
from decon_core.storage.compression import create
from decon_core.storage.mirror import Mirror, files_in
from decon_core.storage.paths import list_files, parse_path, use_options
from decon_core.storage.store import Store
from tests.conftest import graph_until

BUCKET = "s3://mill"


@pytest.fixture(scope="module")
def endpoint():
    # Here, not in each process that looks for tests: it takes a second.
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3(endpoint, monkeypatch):
    """An empty bucket; keys come from the environment, as s3fs has it."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("FSSPEC_S3", "{}")  # so that what is set is taken back
    use_options({"s3": {"endpoint_url": endpoint}})
    files = fsspec.filesystem("s3", use_listings_cache=False)
    files.mkdir("mill")
    yield files
    files.rm("mill", recursive=True)
    fsspec.config.conf.pop("s3")


@pytest.fixture
def remote_world(world, s3, endpoint, tmp_path_factory):
    """The world with everything in a bucket, and nothing here but a decon.toml."""
    world.write_config()
    add_table(world)
    for path in world.folder.glob("corpus/*"):
        s3.put_file(str(path), f"mill/in/corpus/{path.name}")
    for path in (world.folder / "evals.yaml", *world.folder.glob("*.jsonl")):
        s3.put_file(str(path), f"mill/in/recipes/{path.name}")
    return settings_for(tmp_path_factory.mktemp("machine"), world, endpoint)


def add_table(world) -> None:
    """The documents of a shard once more, in parquet, and a source that takes both."""
    with gzip.open(world.folder / "corpus" / "s0.jsonl.gz") as file:
        table = pa.Table.from_pylist([json.loads(line) for line in file])
    pq.write_table(table, world.folder / "corpus" / "table.parquet")
    text = world.config_path.read_text().replace('"corpus/*.jsonl.gz"', '"corpus/*"')
    world.config_path.write_text(text)


def settings_for(folder: Path, world, endpoint, *, store=f"{BUCKET}/out") -> Path:
    text = world.config_path.read_text()
    text = text.replace('"corpus/*', f'"{BUCKET}/in/corpus/*')
    text = text.replace('"evals.yaml"', f'"{BUCKET}/in/recipes/*.yaml"')
    text += f'\n[store]\npath = "{store}"\n[storage.s3]\nendpoint_url = "{endpoint}"\n'
    (folder / "decon.toml").write_text(text)
    return folder / "decon.toml"


def run(config: Path, *, until: Sequence[str] = ("mixture", "clean_benchmark")) -> list[str]:
    said: list[str] = []
    with DagsterInstance.ephemeral() as instance:
        graph = graph_until(*until)
        Pipeline(config, instance, said.append, graph=graph).run()
    return said


def contents(folder: Path, *parts: str) -> dict[str, bytes]:
    return {
        name: (folder / name).read_bytes()
        for name in files_in(folder)
        if name.startswith(parts) and "_manifest" not in name
    }


MADE = ("records/", "idf/", "index/", "scan_results/", "manifests/", "mixtures/", "clean/")


def test_a_run_on_urls_makes_the_same_bytes_a_second_machine_scans_nothing_and_damage_is_mended(
    at_home, world, remote_world, s3, endpoint, tmp_path_factory, capsys
):
    assert main(["run", "--config", str(remote_world)]) == 0
    said = capsys.readouterr().out
    assert "read 4 shards" in said
    assert f"stored at {BUCKET}/out" in said

    # Commands work where nothing is here but the settings.
    shutil.rmtree(remote_world.parent / ".decon")
    assert main(["status", "--config", str(remote_world)]) == 0
    assert main(["report", "--config", str(remote_world)]) == 0
    assert "harbor" in capsys.readouterr().out

    run(world.config_path)
    made = contents(Store(remote_world.parent / ".decon").root, *MADE)
    by_hand = contents(world.store.root, *MADE)
    there, here = (
        [shard.fingerprint for pack in list_packs(store) for shard in pack.shards]
        for store in (Store(remote_world.parent / ".decon"), world.store)
    )
    local_name = dict(zip(there, here, strict=True))
    assert {*there}.isdisjoint(here)  # of tags, not of bytes
    renamed = {
        re.sub("[0-9a-f]{32}", lambda match: local_name.get(match[0], match[0]), name): content
        for name, content in made.items()
    }
    assert len(renamed) == len(by_hand)
    # Ledgers and matches contain the fingerprint, and folders of scan results are named by it.
    found, expected = (
        sorted(content for name, content in of.items() if name.endswith("/documents.parquet"))
        for of in (renamed, by_hand)
    )
    assert found == expected != []
    documents = [name for name in by_hand if name.startswith("mixtures/")]
    assert documents
    assert all(renamed[name] == by_hand[name] for name in documents)

    config = load_config(remote_world)
    assert {*files_in(config.store)} == {*list_files(config.kept)}

    second = settings_for(tmp_path_factory.mktemp("second"), world, endpoint)
    said = run(second)
    assert not [line for line in said if "read " in line and "read 0 shards" not in line]
    assert contents(second.parent / ".decon", *MADE) == made

    # A flipped bit here is fetched again, and one behind the URL is made again.
    path = min(config.store.glob("scan_results/*/*/ledgers.json"))
    name = path.relative_to(config.store).as_posix()
    flipped = bytearray(path.read_bytes())
    flipped[len(flipped) // 2] ^= 1

    path.write_bytes(flipped)
    assert f"  fetched again: {path}" in removed_by(config)
    assert path.read_bytes() == made[name]

    s3.pipe_file(f"mill/out/{name}", bytes(flipped))
    path.write_bytes(flipped)  # as a machine has it that fetched it after that
    assert f"  removed: {path}" in removed_by(config)
    assert not s3.exists(f"mill/out/{name}")
    run(remote_world)
    assert contents(config.store, *MADE) == made
    assert s3.cat_file(f"mill/out/{name}") == made[name]


def removed_by(config) -> list[str]:
    said: list[str] = []
    remove_damaged_files(config, said.append)
    return said


def test_a_remote_shard_is_hashed_once_and_another_content_is_another_shard(s3, tmp_path):
    source = Source(name="web", path=f"{BUCKET}/in/**/*.jsonl", text="text")
    for name in ("a.jsonl", "deep/b.jsonl", ".hidden/c.jsonl"):
        s3.pipe_file(f"mill/in/{name}", f'{{"text": "{name}"}}\n'.encode())
    first = find_shards(source, folder=tmp_path, known={})
    assert [shard.name for shard in first] == ["a.jsonl", "deep/b.jsonl"]
    assert all(shard.tag for shard in first)
    known = {shard.path: shard for shard in first}
    forged = {path: _with(shard, content="from before") for path, shard in known.items()}
    again = find_shards(source, folder=tmp_path, known=forged)
    assert {shard.content for shard in again} == {"from before"}
    s3.pipe_file("mill/in/a.jsonl", b'{"text": "A.jsonl"}\n')  # as long as before
    changed, same = find_shards(source, folder=tmp_path, known=known)
    assert changed.fingerprint != first[0].fingerprint
    assert same == first[1]
    with pytest.raises(CorpusError, match="changed since it was registered"):
        list(read_shard(first[0], source))


def test_processes_that_are_started_find_the_store_by_what_they_inherit(s3):
    s3.pipe_file("mill/in/a.jsonl", b"{}")
    asked = (
        "from decon_core.storage.paths import parse_path; "
        f"print(parse_path('{BUCKET}/in/a.jsonl').is_file())"
    )
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True)
    assert told.stdout.strip() == b"True"


def test_input_files_are_listed_by_what_the_store_calls_them(remote_world):
    config = load_config(remote_world)
    found = input_files(config)
    names = [one.path.removeprefix(f"{BUCKET}/in/") for one in found[1:]]
    shards = [f"corpus/s{number}.jsonl.gz" for number in range(3)]
    assert names == [
        *shards,
        "corpus/table.parquet",
        *(f"recipes/{x}" for x in ("evals.yaml", "harbor.jsonl", "ledger.jsonl")),
    ]
    assert found[0].path == str(remote_world)
    assert found == input_files(config)


def _with(shard, **values):
    return type(shard)(**{**vars(shard), **values})


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet", "a.arrow", "stream.arrow"]
)
def test_every_format_is_read_from_a_url_as_from_a_file(s3, tmp_path, name):
    rows = [{"text": f"row {at} " + "x" * 500, "n": at} for at in range(3_000)]
    path = tmp_path / name
    table = pa.Table.from_pylist(rows)
    if name.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=700)
    elif name.endswith(".arrow"):
        kind = pa.ipc.new_stream if "stream" in name else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, kind(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=700)
    else:
        with create(path, path.suffix) as file:
            file.write(b"".join(b'{"text": "%s"}\n' % row["text"].encode() for row in rows))
    s3.put_file(str(path), f"mill/in/{name}")
    here = Source(name="web", path=name, text="text")
    there = Source(name="web", path=f"{BUCKET}/in/{name}", text="text")
    (local,) = find_shards(here, folder=tmp_path, known={})
    (remote,) = find_shards(there, folder=tmp_path, known={})
    rows_here = list(read_shard(local, here))
    assert list(read_shard(remote, there)) == rows_here
    blocks = list(read_blocks(remote, there, block_bytes=1 << 18))
    assert len(blocks) > 1
    assert documents_of(blocks) == rows_here
    (last,) = read_places(remote, there, [blocks[-1].place])
    assert documents_of([last]) == documents_of(blocks[-1:])


def documents_of(blocks):
    batches = [block.read() for block in blocks]
    return [batch.document(at) for batch in batches for at in range(batch.rows.size)]


KILLED = """
import os, sys
from pathlib import Path
from decon_core.storage import mirror
from decon_core.storage.mirror import Mirror
from decon_core.storage.paths import parse_path, use_options

use_options({"s3": {"endpoint_url": sys.argv[3]}})
send, n_left = mirror.send, int(sys.argv[4])

def send_some(work, kept, names):
    global n_left
    if not n_left:
        send(work, kept, names[: len(names) // 2])
        os.kill(os.getpid(), 9)
    n_left -= 1
    send(work, kept, names)

mirror.send = send_some
Mirror(Path(sys.argv[1]), parse_path(sys.argv[2])).push()
"""


@pytest.mark.kills
def test_a_push_that_was_killed_is_gone_on_with(world, s3, endpoint, tmp_path):
    """Nothing was noted of what it did, and half of some files had been sent."""
    world.start()
    work, kept = world.store.root, parse_path(f"{BUCKET}/out")
    command = [sys.executable, "-c", KILLED, str(work), str(kept), endpoint, "2"]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert 0 < len(list_files(kept)) < len(files_in(work))
    Mirror(work, kept).push()
    second = Mirror(tmp_path / "second", kept)
    second.pull()
    assert contents(second.work, "") == contents(work, "")
    world.run()
    assert "mixture: up to date" in world.said


def test_secrets_have_no_place_in_the_settings(world, endpoint):
    world.write_config()
    with world.config_path.open("a") as file:
        file.write('[storage.s3]\nsecret = "s3cr3t"\nendpoint_url = "http://x"\n')
    with pytest.raises(ConfigError, match=r"storage\.s3\.secret.*environment") as error:
        load_config(world.config_path)
    assert "s3cr3t" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "where"),
    [
        (
            '[storage.s3.client_kwargs]\naws_secret_access_key = "s3cr3t"',
            "client_kwargs.aws_secret",
        ),
        ('[storage.s3.a.b]\ntoken = "s3cr3t"', r"a\.b\.token"),
        ('[storage.s3]\nsome = [{ password = "s3cr3t" }]', r"some\[0\]\.password"),
    ],
)
def test_secrets_are_found_in_tables_within_tables(world, options, where):
    world.write_config()
    with world.config_path.open("a") as file:
        file.write(options + "\n")
    with pytest.raises(ConfigError, match=rf"storage\.s3\.{where}.*environment") as error:
        load_config(world.config_path)
    assert "s3cr3t" not in str(error.value)


@pytest.mark.parametrize(
    "option", ['endpont_url = "http://127.0.0.1:1"', "client_kwargs = { endpont_url = 'http://x' }"]
)
def test_an_option_that_the_file_system_does_not_know_is_told_with_its_table(
    world, s3, capsys, option
):
    world.write_config()
    text = world.config_path.read_text().replace('"corpus/*', f'"{BUCKET}/*')
    world.config_path.write_text(f"{text}[storage.s3]\n{option}\n")
    assert main(["status", "--config", str(world.config_path)]) == 2
    assert re.search(r"ConfigError: storage\.s3: found .*endpont_url", capsys.readouterr().err)


def test_a_scheme_that_nobody_knows_is_told(world):
    world.write_config()
    text = world.config_path.read_text().replace('"corpus/*', '"gopher://mill/*')
    world.config_path.write_text(text)
    config = load_config(world.config_path)
    with pytest.raises(ConfigError, match="gopher"):
        find_shards(config.corpus.sources[0], folder=config.folder, known={})
    assert list_packs(world.store) == []
