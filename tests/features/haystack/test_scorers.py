"""Scorers: trained ones hold out the planted items, endpoints are asked, columns need scores."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from decon_core.errors import InputError
from decon_core.features.haystack import scorers
from decon_core.features.haystack.documents import HaystackDocument
from decon_core.features.haystack.planted import choose_items
from decon_core.features.haystack.product import fingerprints_of
from decon_core.features.haystack.scorers import load_scorers
from decon_core.features.haystack.settings import Haystack

COLUMN = "column:metadata.quality"


def documents(texts, *, is_conversation=False, **values):
    return [
        HaystackDocument("pages", "p.jsonl", row, text, is_conversation, values)
        for row, text in enumerate(texts)
    ]


@pytest.fixture
def planting(place):
    return choose_items(place.store, place.versions(), Haystack(items=3))


def test_a_trained_scorer_says_what_it_was_trained_on(planting):
    training = [*documents(["a page"] * 4), *documents(["a chat"], is_conversation=True)]
    instruction_like, educational, short = load_scorers(Haystack(), planting, training)
    assert instruction_like.about == (
        "trained on 544 built-in instructions, 1 conversation, 4 training items "
        "against 4 documents from the corpus"
    )
    assert "600 built-in teaching texts" in educational.about
    assert short.of_documents(training).tolist() == [-6] * 5


def test_without_its_package_a_trained_scorer_says_how_to_install_it(planting, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(InputError, match="pip install scikit-learn"):
        load_scorers(Haystack(scorers=("educational",)), planting, documents(["a page"]))


def test_no_scorer_is_trained_on_a_planted_item(planting):
    question = planting.planted[0].item.question
    leak = f"Somebody asked: {question.upper()} And nobody knew."
    training = [*documents(["a page", leak]), *documents([leak], is_conversation=True)]
    (scorer,) = load_scorers(Haystack(scorers=("instruction_like",)), planting, training)
    assert "conversation" not in scorer.about
    assert "against 1 document from the corpus" in scorer.about
    assert not any(question in text for text in planting.training)


def test_items_are_drawn_from_test_splits_and_trained_on_from_training_splits(planting):
    assert {one.item.split for one in planting.planted} == {"test"}
    assert [one.n_planted for one in planting.counts] == [3, 3]
    assert [one.n_without_answer for one in planting.counts] == [0, 1]
    assert len(planting.training) == 4
    assert planting.planted[0].text == f"{planting.planted[0].item.question}\nAnswer: forty two"


def test_a_corpus_of_conversations_has_nothing_to_train_against(planting):
    with pytest.raises(InputError, match="no document with plain text"):
        load_scorers(Haystack(), planting, documents(["a chat"], is_conversation=True))


def test_scores_that_are_no_numbers_are_refused(planting):
    scorer = scorers._of_texts("odd", "odd", lambda texts: np.full(len(texts), np.nan))
    with pytest.raises(InputError, match="no number for 2 of 2 texts"):
        scorer.of_documents(documents(["a", "b"]))


# Columns -----------------------------------------------------------------------------------------


def column(path, planting):
    (scorer,) = load_scorers(Haystack(scorers=(f"{COLUMN}={path}",)), planting, [])
    return scorer


def test_a_column_scores_documents_and_a_file_the_planted_items(tmp_path, planting):
    path = tmp_path / "scores.jsonl"
    rows = [{"item": one.item.name, "score": at} for at, one in enumerate(planting.planted)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scorer = column(path, planting)
    assert scorer.name == "metadata.quality"
    found = scorer.of_documents(documents(["a"], **{"metadata.quality": 0.5}) + documents(["b"]))
    assert found[0] == 0.5
    assert np.isnan(found[1])
    assert scorer.of_planted(planting.planted).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_column_without_scores_of_the_planted_items_is_refused(tmp_path, planting):
    with pytest.raises(InputError, match="Planted items are not rows of the corpus"):
        column(tmp_path / "scores.jsonl", planting)
    (tmp_path / "scores.jsonl").write_text(
        f'{{"item": "{planting.planted[0].item.name}", "score": 1}}'
    )
    with pytest.raises(InputError, match="no score for 5 planted items"):
        column(tmp_path / "scores.jsonl", planting)
    (tmp_path / "scores.jsonl").write_text('\n{"item": "quiz/test/0"}\n[]\n')
    with pytest.raises(InputError, match=r"line 2.*\n.*line 3"):
        column(tmp_path / "scores.jsonl", planting)


def test_a_column_that_no_document_has_is_refused(tmp_path, planting):
    rows = ({"item": one.item.name, "score": 0} for one in planting.planted)
    path = tmp_path / "scores.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"no number in the field 'metadata\.quality'"):
        column(path, planting).of_documents(documents(["a"]))


def test_all_files_that_are_missing_are_named_together(tmp_path):
    names = (f"fasttext:{tmp_path}/a.bin:hq", f"{COLUMN}={tmp_path}/b.jsonl")
    with pytest.raises(InputError) as error:
        fingerprints_of(Haystack(scorers=names))
    assert len(error.value.problems) == 2


def test_the_fingerprint_of_a_file_is_that_of_its_content(tmp_path):
    def fingerprint(folder, content):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "q.bin").write_bytes(content)
        name = f"fasttext:{tmp_path / folder}/q.bin:hq"
        return fingerprints_of(Haystack(scorers=(name,)))

    assert fingerprint("a", b"1") == fingerprint("b", b"1") != fingerprint("b", b"2")


# Endpoints ---------------------------------------------------------------------------------------


@pytest.fixture
def serve():
    """Start a server that answers requests with the value of a function."""
    servers = []

    def start(answer):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                content = json.dumps(answer(asked[-1])).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_address[1]}/score", asked

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def endpoint(url, planting, **settings):
    (scorer,) = load_scorers(Haystack(scorers=(f"endpoint:{url}",), **settings), planting, [])
    return scorer


def test_an_endpoint_is_asked_in_batches_and_scores_keep_their_order(serve, planting):
    url, asked = serve(lambda request: {"scores": [len(text) for text in request["input"]]})
    scorer = endpoint(url, planting, model="quality")
    found = scorer.of_documents(documents(["x" * n for n in range(150)]))
    assert found.tolist() == list(range(150))
    assert sorted(len(one["input"]) for one in asked) == [22, 64, 64]
    assert {one["model"] for one in asked} == {"quality"}


def test_the_answer_of_a_classification_server_is_understood(serve, planting):
    def classified(request):
        rows = [{"index": at, "probs": [1 - at / 4, at / 4]} for at in range(len(request["input"]))]
        return {"data": rows[::-1]}

    url, asked = serve(classified)
    found = endpoint(url, planting).of_documents(documents(["a", "b", "c"]))
    assert found.tolist() == [0, 0.25, 0.5]
    assert asked == [{"input": ["a", "b", "c"]}]


@pytest.mark.parametrize("answer", [{"scores": [1]}, {"scores": [1, None]}, {"data": []}, 3])
def test_an_answer_without_a_score_for_each_text_is_refused(serve, planting, answer):
    url, _ = serve(lambda _: answer)
    with pytest.raises(InputError, match="one number for each of the 2 texts"):
        endpoint(url, planting).of_documents(documents(["a", "b"]))
