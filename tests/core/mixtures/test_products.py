"""Mixtures, report and truth: what is left, what is said about it, and whether that is right."""

import json
import random
import shutil
from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from decon_core.benchmarks.normalized import fingerprint_of
from decon_core.benchmarks.records import save_records
from decon_core.config.load import Report
from decon_core.config.mixtures import DEFAULT
from decon_core.config.sources import Source
from decon_core.corpus.packs import Pack, find_shards
from decon_core.decisions.match_reader import MatchReader
from decon_core.decisions.not_read import UnreadRule, gaps_without_rows
from decon_core.errors import IncompleteError, MissingError
from decon_core.index.term_weights import current_snapshot, freeze
from decon_core.mixtures.builder import Builder
from decon_core.mixtures.clean_evals import build_clean_benchmarks, has_clean_benchmark
from decon_core.report.build import build_report
from decon_core.report.html.gather import gather
from decon_core.report.truth import compare
from decon_core.report.verify import moved_since_report
from decon_core.scan.scanner import scan_packs
from decon_core.schemas import RECORDS
from tests.core.conftest import DECON
from tests.core.places import build_mixture, faults_in, manifest_of, removed_in, report_of


def words(seed, n):
    rng = random.Random(seed)
    return " ".join(f"w{rng.randrange(10_000)}" for _ in range(n))


@pytest.fixture
def leaky(bench, make_words):
    """Two items; the second row of the shard holds the first item, the fourth a broken line."""
    items = [(make_words(n, 30), make_words((n, "a"), 8), None) for n in range(2)]
    versions = bench.prepare({"b": items})
    odd = b'{"id":"kept",   "text":"spacing and   order stay", "z":1, "a":[NaN]}'
    leak = f"{make_words('x', 20)} {items[0][0]} {items[0][1]}"
    return bench, versions, [make_words("clean", 40), leak, odd]


def build(bench, pack, versions, *, policy=None):
    mixtures = (DEFAULT,)
    builder = Builder(bench.store, (pack,), tuple(versions), policy or bench.policy, mixtures)
    return build_mixture(builder, DEFAULT, pack)


def scanned(leaky, *extra, **settings):
    bench, versions, rows = leaky
    bench.policy = replace(DECON, **settings)
    pack = bench.pack({"a.jsonl": [*rows, *extra]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    return bench, versions, pack


def test_untouched_documents_keep_their_bytes_and_the_manifest_accounts_for_all(leaky):
    bench, versions, pack = scanned(leaky)
    summary = build(bench, pack, versions)
    folder = bench.store.mixture("decontaminated", pack.name)
    before = (bench.folder / "shards" / "a.jsonl").read_bytes().splitlines()
    assert (folder / "a.jsonl").read_bytes().splitlines() == [before[0], before[2]]
    assert (summary.counts["n_documents_in"], summary.counts["n_documents_out"]) == (3, 2)
    (shard,) = json.loads(manifest_of(folder).read_text())["shards"]
    assert shard["removed"] == {"leak": 1}
    (removed,) = removed_in(folder).to_pylist()
    assert (removed["row"], removed["doc_id"], removed["why"]) == (1, "a.jsonl-1", "leak")
    named = [removed[name] for name in ("benchmark", "split", "instance_index", "score")]
    assert named == ["b", "test", 0, 1.0]
    assert removed["n_tokens"] == 58
    counts = [shard[f"n_tokens_{way}"] for way in ("in", "out")]
    assert counts[0] - counts[1] == 58
    assert faults_in(bench.store.mixture("decontaminated", pack.name)) == []


def test_a_mixture_is_not_built_while_a_scan_result_is_missing(leaky, make_words):
    bench, versions, pack = scanned(leaky)
    late = bench.save("late", [(make_words("r", 30), None, None)])
    with pytest.raises(MissingError, match=r"a\.jsonl.*no scan result for late"):
        build(bench, pack, [*versions, late])
    with pytest.raises(MissingError, match="no benchmark"):
        build(bench, pack, [])


def test_a_report_lists_what_was_not_scanned(leaky, make_words):
    bench, versions, pack = scanned(leaky)
    late = bench.save("late", [(make_words("r", 30), None, None)])
    bench.index([late], current_snapshot(bench.store, bench.policy))
    (gap,) = report_of(bench.store, [pack], [*versions, late], bench.policy).gaps
    assert (gap.lacking, gap.is_read, gap.reason) == (("late",), True, "not scanned yet")


def test_rows_that_could_not_be_read_block_the_mixture_with_place_and_reason(leaky):
    bench, versions, pack = scanned(leaky, b"{broken")
    with pytest.raises(IncompleteError, match=r"a\.jsonl: line 4: not JSON"):
        build(bench, pack, versions)
    assert not bench.store.mixture("decontaminated", pack.name).exists()


def test_the_policy_may_leave_unreadable_rows_out_and_then_says_so(leaky):
    bench, versions, pack = scanned(leaky, b"{broken", unreadable="drop")
    summary = build(bench, pack, versions)
    counts = summary.counts
    assert (counts["n_documents_out"], counts["n_unreadable_left_out"]) == (2, 1)
    out = bench.store.mixture("decontaminated", pack.name) / "a.jsonl"
    assert b"broken" not in out.read_bytes()


def test_a_shard_of_which_nothing_could_be_read_is_never_emptied_silently(leaky):
    bench, versions, _ = leaky
    bench.policy = replace(DECON, unreadable="drop")
    pack = bench.pack({"a.jsonl": [{"txet": "a field of another name"}] * 3})
    scan_packs(bench.store, [pack], versions, bench.policy)
    with pytest.raises(
        IncompleteError, match=r"field missing \(text\).*the file has the fields txet"
    ):
        build(bench, pack, versions)
    reader = MatchReader(bench.store, tuple(versions), bench.policy, bench.scan)
    assert [gap.shard.name for gap in gaps_without_rows(reader, [pack])] == ["a.jsonl"]
    report_of(bench.store, [pack], versions, bench.policy)
    facts = gather(bench.store.report)
    assert "1 of 1 shard was not scanned" in facts.notice
    assert facts.totals["n_shards"] == 0


def test_a_shard_without_text_blocks_the_mixture_unless_its_fields_are_ignored(leaky):
    bench, versions, _ = leaky
    bench.policy = DECON
    ids = [{"input_ids": [7, 8]}] * 3
    pack = bench.pack({"a.jsonl": [{"text": "a text"}], "ids.jsonl": ids})
    pack = replace(pack, source=replace(pack.source, text=None))
    scan_packs(bench.store, [pack], versions, bench.policy)
    with pytest.raises(IncompleteError, match=r"no text .*\(`ids\.jsonl`\), only `input_ids`"):
        build(bench, pack, versions)
    ignored = UnreadRule(((pack.source.name, ("input_ids",)),))
    builder = Builder(
        bench.store, (pack,), tuple(versions), bench.policy, (DEFAULT,), unread=ignored
    )
    assert build_mixture(builder, DEFAULT, pack).counts["n_documents_out"] == 4
    _, not_searched = builder.card(DEFAULT).split("## Text that was not searched")
    assert "(`ids.jsonl`), only `input_ids` (" in not_searched


def test_products_are_outdated_once_ignore_no_longer_names_a_field_that_is_there(leaky, make_words):
    bench, versions, _ = leaky
    bench.policy = DECON
    rows = [{"text": "a text", "notes": make_words("notes", 40), "id": "a"}]
    pack = bench.pack({"a.jsonl": rows, "b.jsonl": [{"text": "a text", "id": "b"}]})
    scan_packs(bench.store, [pack], versions, bench.policy)

    def states(*ignored):
        rule = UnreadRule(((pack.source.name, ignored),))
        builder = Builder(
            bench.store, (pack,), tuple(versions), bench.policy, (DEFAULT,), unread=rule
        )
        clean = [has_clean_benchmark(builder, version) for version in versions]
        return builder, [builder.is_current(DEFAULT, pack), *clean]

    builder, _ = states("notes")
    build_mixture(builder, DEFAULT, pack)
    assert all(built.folder.is_dir() for built in build_clean_benchmarks(builder, versions))
    build_report(builder)
    assert [*moved_since_report(states("notes")[0], Report())] == []
    assert states("notes")[1] == states("notes", "other")[1] == [True, True]  # nothing is rebuilt
    withdrawn, now = states()
    assert now == [False, False]
    found = [str(change) for change in moved_since_report(withdrawn, Report())]
    assert "text in `notes`" in found[0]
    assert "accepted by `ignore` in the report, not accepted now" in found[0]
    assert "up to date when the report was built, out of date or missing now" in found[1]
    assert states("nots")[1] == [False, False]
    assert states("notes")[1] == [True, True]  # what is there decides, not what was set between


def test_a_mixture_that_is_there_is_kept_and_one_of_other_inputs_is_not(leaky):
    bench, versions, pack = scanned(leaky)
    assert not build(bench, pack, versions).was_there
    assert build(bench, pack, versions).was_there
    looser = replace(DECON, contamination_score_threshold=0.7)
    assert not build(bench, pack, versions, policy=looser).was_there


def test_verify_sees_a_changed_byte(leaky):
    bench, versions, pack = scanned(leaky)
    build(bench, pack, versions)
    out = bench.store.mixture("decontaminated", pack.name) / "a.jsonl"
    out.write_bytes(out.read_bytes().replace(b"spacing", b"Spacing"))
    (problem,) = faults_in(bench.store.mixture("decontaminated", pack.name))
    assert problem.found == "checksum mismatch"


def test_parquet_keeps_its_columns_and_row_groups(leaky):
    bench, versions, rows = leaky
    folder = bench.folder / "tables"
    folder.mkdir()
    table = pa.table(
        {
            "text": [rows[0], rows[1], "short", rows[1]],
            "meta": [{"license": "MIT"}, None, {"license": None}, {"license": "x"}],
        }
    )
    pq.write_table(table, folder / "a.parquet", row_group_size=2)
    source = Source(name="web", path="*", text="text")
    pack = Pack(
        name="web-0000",
        source=source,
        shards=tuple(find_shards(source, folder=folder, known={})),
    )
    scan_packs(bench.store, [pack], versions, bench.policy)
    build(bench, pack, versions)
    out = pq.ParquetFile(bench.store.mixture("decontaminated", pack.name) / "a.parquet")
    assert out.read().equals(table.take([0, 2]))
    assert out.schema_arrow == table.schema
    assert out.num_row_groups == 2


@pytest.mark.parametrize("is_file", [True, False])
def test_an_arrow_file_stays_a_file_and_a_stream_a_stream(leaky, is_file):
    bench, versions, rows = leaky
    folder = bench.folder / "tables"
    folder.mkdir()
    table = pa.table(
        {
            "text": [rows[0], rows[1], "short", rows[1]],
            "license": pa.array(["MIT", None, "MIT", "x"]).dictionary_encode(),
        }
    ).replace_schema_metadata({"made": "by hand"})
    name = "a.feather" if is_file else "a.arrow"
    with (pa.ipc.new_file if is_file else pa.ipc.new_stream)(
        str(folder / name), table.schema
    ) as writer:
        writer.write_table(table, max_chunksize=3)
    source = Source(name="web", path="*", text="text")
    pack = Pack(
        name="web-0000",
        source=source,
        shards=tuple(find_shards(source, folder=folder, known={})),
    )
    scan_packs(bench.store, [pack], versions, bench.policy)
    build(bench, pack, versions)
    out = bench.store.mixture("decontaminated", pack.name) / name
    read = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(str(out))
    assert read.schema.equals(table.schema, check_metadata=True)
    assert read.read_all().equals(table.take([0, 2]))


@pytest.fixture
def reported(leaky):
    bench, versions, pack = scanned(leaky, b"{broken", unreadable="drop")
    build(bench, pack, versions)
    return bench, report_of(bench.store, [pack], versions, bench.policy).counts


def test_the_report_answers_what_leaked_from_where_and_what_was_removed(reported):
    bench, n = reported
    assert (n["items"], n["leaked_items"], n["unreadable_rows"]) == (2, 1, 1)
    with duckdb.connect(str(bench.store.report), read_only=True) as connection:

        def rows(query):
            return connection.execute(query).fetchall()

        columns = "benchmark, split, n_items, n_leaked, n_checkable, leak_rate, n_leaks"
        assert rows(f"SELECT {columns} FROM by_benchmark") == [("b", "test", 2, 1, 2, 0.5, 1)]
        columns = "source, n_documents, n_unreadable, n_contaminated_documents, n_leaked_items"
        assert rows(f"SELECT {columns} FROM by_source") == [("web", 3, 1, 1, 1)]
        by_both = "SELECT benchmark, source, n_leaked, n_documents FROM by_benchmark_and_source"
        assert rows(by_both) == [("b", "web", 1, 1)]
        assert rows("SELECT status FROM item_status ORDER BY instance_index") == [
            ("leaked",),
            ("clean",),
        ]
        assert rows("SELECT shard_name, row, doc_id, benchmark, score FROM removed") == [
            ("a.jsonl", 1, "a.jsonl-1", "b", 1.0),
            ("a.jsonl", 3, None, None, None),  # the row that could not be read
        ]
        assert rows("SELECT row, reason FROM unreadable") == [(3, "not JSON")]
        assert rows("SELECT n_documents_in, n_documents_out FROM mixtures") == [(3, 2)]


def test_a_mixture_made_before_the_latest_policy_is_not_called_current(leaky):
    bench, versions, pack = scanned(leaky)
    build(bench, pack, versions)
    for threshold, expected in ((0.8, True), (0.7, False)):
        policy = replace(DECON, contamination_score_threshold=threshold)
        report_of(bench.store, [pack], versions, policy)
        with duckdb.connect(str(bench.store.report), read_only=True) as connection:
            assert connection.execute("SELECT is_current FROM mixtures").fetchall() == [(expected,)]


def test_every_table_and_view_says_what_it_holds(reported):
    bench, _ = reported
    with duckdb.connect(str(bench.store.report), read_only=True) as connection:
        comments = connection.execute(
            "SELECT table_name, comment FROM duckdb_tables() UNION ALL "
            "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    assert len(comments) >= 17
    assert all(comment for _, comment in comments)


def test_an_exact_repeat_of_a_leaked_item_has_leaked_as_well(bench, make_words):
    twin, other = ((make_words(n, 30), None, None) for n in range(2))
    versions = bench.prepare({"b": [twin, other, twin]})
    pack = bench.pack({"a.jsonl": [f"{make_words('x', 20)} {twin[0]}"]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    report_of(bench.store, [pack], versions, bench.policy)
    with duckdb.connect(str(bench.store.report), read_only=True) as connection:
        statuses = connection.execute("SELECT status FROM item_status ORDER BY instance_index")
        assert statuses.fetchall() == [("leaked",), ("clean",), ("leaked",)]


def test_an_item_that_repeats_part_of_another_shares_its_leak(bench):
    """Same question in two splits, one choice in common, the other not."""

    def choice(split, answer, *, is_correct):
        question = words("q", 30)
        return {
            "benchmark": "b", "split": split, "instance_index": 7, "question": question,
            "answer": answer, "is_correct": is_correct,
            "fingerprint": fingerprint_of(None, question, answer),
        }  # fmt: skip

    right, wrong, other = (words(name, 8) for name in ("x", "y", "z"))
    rows = [
        choice("train", right, is_correct=True),
        choice("train", wrong, is_correct=False),
        choice("test", right, is_correct=True),
        choice("test", other, is_correct=False),
    ]
    version = save_records(bench.store, "b", pa.Table.from_pylist(rows, schema=RECORDS))
    filler = bench.save("filler", [(words(n, 30), None, None) for n in range(3)])
    bench.index([version, filler], freeze(bench.store, [version, filler], bench.policy))
    pack = bench.pack({"a.jsonl": [f"{words('noise', 20)} {rows[0]['question']} {right}"]})
    scan_packs(bench.store, [pack], [version], bench.policy)
    report_of(bench.store, [pack], [version], bench.policy)
    with duckdb.connect(str(bench.store.report), read_only=True) as connection:
        query = "SELECT split, status, best_score FROM item_status ORDER BY split"
        assert connection.execute(query).fetchall() == [
            ("test", "leaked", 1.0),
            ("train", "leaked", 1.0),
        ]
        assert connection.execute("SELECT n_leaked_items FROM by_source").fetchall() == [(2,)]


def test_a_report_whose_index_is_gone_is_refused_in_words(leaky):
    bench, versions, pack = scanned(leaky)
    shutil.rmtree(bench.store.root / "index")
    with pytest.raises(MissingError, match="benchmark 'b': no index"):
        report_of(bench.store, [pack], versions, bench.policy)


def test_a_report_of_no_corpus_is_refused(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)] * 2})
    with pytest.raises(MissingError, match="no registered pack"):
        report_of(bench.store, [], versions, bench.policy)


def test_a_source_without_leaks_has_a_share_of_zero(bench, make_words):
    versions = bench.prepare({"b": [(make_words("q", 30), None, None)] * 2})
    pack = bench.pack({"a.jsonl": [make_words(1, 50)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    n = report_of(bench.store, [pack], versions, bench.policy).counts
    assert n["shards_without_mixture"] == 1
    with duckdb.connect(str(bench.store.report), read_only=True) as connection:
        columns = "source, n_documents, n_unreadable, n_contaminated_documents, contaminated_share"
        assert connection.execute(f"SELECT {columns} FROM by_source").fetchall() == [
            ("web", 1, 0, 0, 0.0)
        ]


def test_a_mixture_that_was_damaged_is_built_again(leaky):
    bench, versions, pack = scanned(leaky)
    build(bench, pack, versions)
    out = bench.store.mixture("decontaminated", pack.name) / "a.jsonl"
    for damaged in (b"cut", out.read_bytes().swapcase()):
        out.write_bytes(damaged)
        assert not build(bench, pack, versions).was_there
        assert faults_in(bench.store.mixture("decontaminated", pack.name)) == []


def test_an_item_too_short_to_index_is_never_called_clean(bench, make_words):
    # Two long ones: with a single record all idf is 0, and nothing could be found.
    long = [(make_words(name, 30), None, None) for name in ("q", "r")]
    versions = bench.prepare({"b": [*long, ("Too short", None, None)]})
    pack = bench.pack({"a.jsonl": [make_words(1, 50)]})
    scan_packs(bench.store, [pack], versions, bench.policy)
    report_of(bench.store, [pack], versions, bench.policy)
    with duckdb.connect(str(bench.store.report), read_only=True) as connection:
        statuses = connection.execute(
            "SELECT s.status, i.why_not_indexed FROM item_status s "
            "JOIN items i USING (benchmark, split, instance_index) ORDER BY instance_index"
        ).fetchall()
    assert statuses == [("clean", None), ("clean", None), ("cannot be checked", "too few tokens")]


def truth_line(row, number, **more):
    line = {
        "source": "web",
        "shard": "a.jsonl",
        "row": row,
        "kind": "plant",
        "phenomenon": "verbatim",
        "benchmark": "b",
        "split": "test",
        "instance_index": number,
        "expected": True,
        **more,
    }
    return json.dumps(line) + "\n"


def test_truth_counts_what_was_found_and_what_was_missed(reported, tmp_path):
    bench, _ = reported
    truth = tmp_path / "truth.jsonl"
    truth.write_text(truth_line(1, 0) + truth_line(0, 1))
    (score,), (phenomenon,) = compare(bench.store.report, truth)
    names = ("n_items", "n_leaked", "n_planted", "n_found", "n_false_alarms")
    assert [score[name] for name in names] == [2, 1, 2, 1, 0]
    assert [phenomenon[name] for name in ("n", "n_flagged", "n_wrong")] == [2, 1, 1]


def test_truth_calls_a_match_that_nobody_planted_a_false_alarm(reported, tmp_path):
    bench, _ = reported
    truth = tmp_path / "truth.jsonl"
    negative = {"kind": "hard_negative", "phenomenon": "template", "expected": False}
    truth.write_text(truth_line(1, None, benchmark=None, split=None, **negative))
    (score,), (phenomenon,) = compare(bench.store.report, truth)
    assert score["n_false_alarms"] == 1
    assert phenomenon["n_wrong"] == 1
