"""A setting with the name of a field that no row has is reported."""

import json

from decon_core.config.mixtures import Licenses, Mixture
from decon_core.config.sources import Source
from decon_core.corpus.absent_fields import absent_fields
from decon_core.corpus.packs import Pack, find_shards


def test_a_field_that_no_row_has_is_reported_with_its_setting(tmp_path):
    rows = [{"text": "t", "uid": None}, {"text": "t", "uid": 0, "meta": {"license": "MIT"}}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def found(named=None, *fields, sources=()):
        source = Source(name="web", path="*.jsonl", id=named)
        shards = tuple(find_shards(source, folder=tmp_path, known={}))
        licenses = Licenses(field=fields, allow=("MIT",)) if fields else None
        mixture = Mixture(name="open", licenses=licenses, sources=sources)
        pack = Pack(name="web-0000", source=source, shards=shards)
        return [*map(str, absent_fields([pack], [mixture]))]

    assert found() == found("uid") == found("uid", "licens", "meta.license") == []
    assert found("uid", "meta.licens", sources=("books",)) == []
    (wrong_id, wrong_license) = found("uidd", "meta.licens")
    assert wrong_id.startswith("corpus.source 'web': id: found 'uidd', which is in none of the")
    assert "Did you mean 'uid'?" in wrong_id
    assert wrong_license.startswith("mixture 'open': licenses.field: found 'meta.licens', which")
    assert "Did you mean 'meta.license'?" in wrong_license
    (tmp_path / "a.jsonl").write_text("no JSON")
    assert found("uidd") == []
