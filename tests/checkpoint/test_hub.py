"""Models by hub id. The hub is never asked here: a cache that the test makes stands for an earlier download."""

import os
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from models import make_model

from malmoi.checkpoint.location import find_folder
from malmoi.errors import MalmoiError

DIRECT = {"NO_PROXY": "*", "no_proxy": "*"}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    place = folder / "models--someone--korean-bert"
    make_model().save(folder / "made")
    shutil.copytree(folder / "made", place / "snapshots" / COMMIT)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(COMMIT)
    return folder


def run(program, cache, folder, **environment):
    """The library reads its settings when it is imported, so each case is a process of its own."""
    settings = {"HF_HUB_CACHE": str(cache), **environment}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, env={**os.environ, **settings}
    )


LOAD = """
import malmoi
for name in {names!r}:
    try:
        loaded = malmoi.load(name)
        print(loaded.system, loaded.config.hidden_size, loaded.notes)
    except malmoi.MalmoiError as mistake:
        print("SAYS", mistake)
"""
UNREACHABLE = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9", **DIRECT}


@pytest.mark.parametrize("settings", [{"HF_HUB_OFFLINE": "1"}, UNREACHABLE], ids=["offline", "unreachable"])
def test_without_a_network_the_cache_is_used(cache, tmp_path, settings):
    finished = run(LOAD.format(names=["someone/korean-bert", "someone/other"]), cache, tmp_path, **settings)
    loaded, said = finished.stdout.splitlines()
    assert loaded == "bert 32 []", finished.stderr
    assert said.startswith("SAYS someone/other: there is no such folder, the hub cannot be reached")


def test_a_folder_of_that_name_comes_first(cache, tmp_path, monkeypatch):
    shutil.copytree(cache / "made", tmp_path / "someone" / "korean-bert")
    monkeypatch.chdir(tmp_path)
    assert find_folder("someone/korean-bert") == Path("someone/korean-bert")


class Unknown(BaseHTTPRequestHandler):
    """Answers as the hub does for a model that it does not have or does not show."""

    def do_GET(self):
        self.send_response(404)
        self.send_header("X-Error-Code", "RepoNotFound")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


def test_a_model_the_hub_does_not_have(cache, tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Unknown) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        settings = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}"}
        finished = run(LOAD.format(names=["someone/other"]), cache, tmp_path, **settings, **DIRECT)
        server.shutdown()
    assert finished.stdout.startswith("SAYS someone/other: there is no such folder, and the hub shows no such model")
    assert finished.stdout.count("\n") == 1


@pytest.mark.parametrize("name", ["bert", "a/b/c", "../x", "owner/", "모델/이름", ".owner/name"])
def test_what_is_no_hub_id_is_a_folder_that_is_missing(monkeypatch, tmp_path, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MalmoiError) as caught:
        find_folder(name)
    assert str(caught.value).startswith(f"{name}: there is no such folder; give")


def test_only_files_that_cannot_be_executed_are_asked_for(monkeypatch, cache, tmp_path):
    import huggingface_hub
    from huggingface_hub.utils import filter_repo_objects

    asked = {}

    def download(hub_id, *, allow_patterns):
        asked[hub_id] = allow_patterns
        return str(cache / "made")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    assert find_folder("someone/else") == cache / "made"
    offered = "config.json model.safetensors vocab.txt spiece.model pytorch_model.bin modeling.py tf_model.h5 x.pkl"
    taken = list(filter_repo_objects(offered.split(), allow_patterns=asked["someone/else"]))
    assert taken == ["config.json", "model.safetensors", "vocab.txt", "spiece.model"]
