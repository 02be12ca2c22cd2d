"""Models by hub id. The hub is never asked here: a cache that the test makes stands for an earlier download."""

import json
import os
import shutil
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from models import make_model

from malmoi.checkpoint import location
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


@pytest.fixture
def here(monkeypatch, tmp_path):
    """An empty working directory in an empty folder, and a hub that must not be asked."""

    def ask(hub_id):
        raise AssertionError(f"the hub is asked for {hub_id}")

    monkeypatch.setattr(location, "_download", ask)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize(
    "name",
    [
        "bert",
        "a/b/c",
        "../x",
        "./x/y",
        "~/x",
        "~nobody/x",
        "/x/y",
        "x/y/",
        "owner/",
        "a\\b/c",
        "모델/이름",
        ".owner/name",
    ],
)
def test_what_is_no_hub_id_is_a_folder_that_is_missing(here, name):
    with pytest.raises(MalmoiError) as caught:
        find_folder(name)
    assert str(caught.value).startswith(f"{name}: there is no such folder") and "give the folder" in str(caught.value)


def test_a_path_is_no_hub_id(here):
    with pytest.raises(MalmoiError, match="someone/other: there is no such folder"):
        find_folder(Path("someone/other"))


def test_a_name_that_begins_with_a_folder_here_is_no_hub_id(here, cache):
    (here / "someone").mkdir()
    with pytest.raises(MalmoiError, match=r"\(someone has no other\), and the hub is not asked .* give the folder"):
        find_folder("someone/other")
    shutil.copytree(cache / "made", here / "someone" / "korean-bert")
    shutil.copytree(cache / "made", here / "someone" / "run" / "model")
    (here / "someone" / "notes").mkdir()
    with pytest.raises(MalmoiError, match=r"models nearby: someone/korean-bert, someone/run/model\.$"):
        find_folder("someone/korean_bert")


def test_a_short_name_of_a_published_model_leads_to_the_hub(here):
    with pytest.raises(MalmoiError, match="no such folder; the published model has the hub id google-bert/bert-base-"):
        find_folder("bert-base-cased")


RUN = {"training": {"steps": 3}, "architecture": {"hidden_size": 32}, "store": {}}


@pytest.mark.parametrize("name", ["run", "run/model", "run/model/", "./run", "run/modell"])
def test_a_run_without_a_model_says_so(here, name):
    (here / "run" / "checkpoints").mkdir(parents=True)
    (here / "run" / "config.json").write_text(json.dumps(RUN))
    with pytest.raises(MalmoiError, match=r"^run: this run holds no finished model yet \(run/model is missing\)"):
        find_folder(name)


def test_the_folder_of_a_run_means_its_model(here, cache):
    shutil.copytree(cache / "made", here / "run" / "model")
    (here / "run" / "config.json").write_text(json.dumps(RUN))
    assert find_folder("run") == Path("run/model") == find_folder(Path("run"))
    with pytest.raises(MalmoiError, match=r"run/modell: .* models nearby: run/model\."):
        find_folder("run/modell")
    # A save over this model that was killed where folders cannot be exchanged.
    (here / "run" / "model").rename(here / "run" / ".model.old")
    assert find_folder("run") == Path("run/model")


def test_the_home_folder_is_found(here, cache, monkeypatch):
    monkeypatch.setenv("HOME", str(cache))
    assert find_folder("~/made") == cache / "made"


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
