"""What is kept is found by who asks again, and gone on with by `interp runs resume`; damage is told, and mended."""

import json
import shutil

import pandas as pd
import pytest
import torch
from giving_commands import ABLATE, in_a_process_of_its_own, interp
from test_attend_command import bank

from interp.model.loading import load_model, save_model
from interp.runs.files import signed

pytestmark = pytest.mark.unchecked


@pytest.mark.parametrize("others", [(), ("result.json",), ("frame.parquet",)], ids=str)
def test_damage_is_found_and_going_on_mends_it(kept, runs, folder, others):
    assert "its part is as written" in runs("verify").stdout
    (part,) = (folder / "parts").iterdir()
    whole = part.read_bytes()
    part.write_bytes(whole[:-1])
    for each in others:
        (folder / each).write_text("{}")
    done = runs("verify", folder.name)
    assert done.exit_code == 2
    assert "; ".join(f"{each} is damaged" for each in [f"parts/{part.name}", *others]) in done.stdout
    assert "1 of 1 runs are damaged" in done.stderr
    again = interp("runs", "resume", folder.name, "--runs", folder.parent, cwd=kept[1])
    assert again.exit_code == 0, again.stderr
    assert again.stderr.count("damaged or missing, and made again") == 1 + len(others)
    told = [line for line in again.stderr.splitlines() if "damaged" in line]
    assert all(line.startswith("warning: ") for line in told), "and where in the program it was found is not said"
    assert f"(in {kept[1]})" in again.stderr
    assert "note:" not in again.stderr
    first, second = kept[2], json.loads(again.stdout)
    assert {**second, "seconds": 0} == {**first, "seconds": 0}
    assert part.read_bytes() == whole
    assert runs("verify").exit_code == 0


def test_what_was_found_and_not_measured_is_said(runs, folder, tmp_path):
    own = shutil.copytree(folder, tmp_path / "runs" / folder.name)
    asked = (*ABLATE, "--runs", own.parent)
    found = interp(*asked, cwd=tmp_path)
    assert (
        f"note: run {folder.name}: found, and not measured again; --fresh (fresh=True) measures it again\n"
        in found.stderr
    )
    (own / "result.json").unlink()
    resumed = interp("runs", "resume", folder.name, "--runs", own.parent, cwd=tmp_path)
    noted = [line for line in resumed.stderr.splitlines() if line.startswith("note:")]
    assert noted == [f"note: run {folder.name}: goes on, with 1 of 1 parts found"]
    assert "note:" not in interp(*asked, "--fresh", cwd=tmp_path).stderr


def test_damage_is_told_by_the_command_that_asks_again(folder, tmp_path):
    own = shutil.copytree(folder, tmp_path / "runs" / folder.name)
    (own / "frame.parquet").write_bytes(b"")
    again = interp(*ABLATE, "--runs", own.parent, cwd=tmp_path)
    assert again.exit_code == 0, again.stderr
    (told,) = [line for line in again.stderr.splitlines() if not line.startswith(("note:", "ablate"))]
    assert told == f"warning: {own / 'frame.parquet'}: damaged or missing, and made again when its run is asked for"


def test_a_manifest_that_is_damaged_is_listed_in_a_line_and_asking_again_mends_it(runs, folder, tmp_path, monkeypatch):
    own = shutil.copytree(folder, tmp_path / folder.name)
    (own / "manifest.json").write_text("{}")
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    assert f"see `interp runs verify {folder.name}`" in runs("ls").stdout
    for refused in (runs("verify"), runs("resume", folder.name)):
        assert refused.exit_code == 2
        assert "giv" in refused.stderr
        assert "the command again" in refused.stderr
    assert interp(*ABLATE, "--runs", tmp_path, cwd=tmp_path).exit_code == 0
    assert runs("verify").exit_code == 0


def test_a_fresh_answer_is_listed_gone_on_with_and_removed(tmp_path, folder):
    own = shutil.copytree(folder, tmp_path / folder.name)
    before = (own / "log.jsonl").read_bytes()
    assert interp(*ABLATE, "--fresh", "--runs", tmp_path, cwd=tmp_path).exit_code == 0
    key = f"{folder.name}-1"
    (tmp_path / key / "result.json").unlink()
    listed = json.loads(interp("runs", "ls", "--json", "--runs", tmp_path).stdout)["runs"]
    assert {each["key"]: each["state"] for each in listed} == {folder.name: "finished", key: "begun"}
    resumed = in_a_process_of_its_own("runs", "resume", key, "--runs", tmp_path, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / key / "result.json").exists()
    for each in (folder.name, key):
        out = ("--out", tmp_path / f"{each}.csv", "--runs", tmp_path)
        assert interp("runs", "export", each, *out).exit_code == 0
    assert (tmp_path / f"{key}.csv").read_bytes() == (tmp_path / f"{folder.name}.csv").read_bytes()
    assert json.loads(interp("runs", "show", key, "--json", "--runs", tmp_path).stdout)["key"] == key
    assert (own / "log.jsonl").read_bytes() == before
    assert interp("runs", "rm", key, "--runs", tmp_path).exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".csv") == [folder.name]


def test_what_cannot_be_gone_on_with_is_left_as_it_is(tmp_path, folder, monkeypatch):
    own = shutil.copytree(folder, tmp_path / folder.name)
    content = json.loads((own / "manifest.json").read_text())
    content["about"]["folder"] = str(tmp_path / "gone")
    del content["sha256"]
    (own / "manifest.json").write_text(signed(content))
    part = next((own / "parts").iterdir())
    part.write_bytes(b"")
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path))
    refused = interp("runs", "resume", folder.name)
    assert "which is gone" in refused.stderr
    assert part.exists()
    assert (own / "result.json").exists()


@pytest.mark.parametrize("command", [["train", "default"], ["runs", "rm", "abcd"], "ablate", [], [1], None])
def test_a_strangers_manifest_begins_nothing_but_a_measurement(monkeypatch, tmp_path, folder, command):
    content = json.loads((folder / "manifest.json").read_text())
    content["about"] = {"command": command, "folder": str(tmp_path)}
    del content["sha256"]
    own = tmp_path / folder.name
    own.mkdir()
    (own / "manifest.json").write_text(signed(content))
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path))
    done = interp("runs", "resume", folder.name)
    assert done.exit_code == 2
    assert "expected one that a command of interp has begun" in done.stderr


def test_attention_is_listed_found_exported_and_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERP_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    asked = ("attend", "--data", str(bank(tmp_path / "bank.conllu")), "--relation", "nsubj", "--json")
    first = interp(*asked, cwd=tmp_path)
    assert first.exit_code == 0, first.stderr

    listed = {each["asked"]: each for each in json.loads(interp("runs", "ls", "--json").stdout)["runs"]}
    assert set(listed) == {"attend: nsubj, on default", "attention counted: nsubj, on default"}
    key = listed["attend: nsubj, on default"]["key"]
    tables = {None: {"layer", "head", "attention"}, "cells": {"layer", "head", "excess"}}
    for name, columns in {**tables, "relations": {"n_pairs", "chance"}}.items():
        table = () if name is None else ("--table", name)
        assert interp("runs", "export", key, "--out", tmp_path / "table.csv", *table).exit_code == 0
        assert columns <= set(pd.read_csv(tmp_path / "table.csv"))
    refused = interp("runs", "export", key, "--out", tmp_path / "table.csv", "--table", "../frame")
    assert refused.exit_code == 2
    assert "no table '../frame'" in refused.stderr

    kept = tmp_path / "runs" / key / "relations.parquet"
    kept.write_bytes(kept.read_bytes()[:-1])
    assert "relations.parquet" in interp("runs", "verify", key).stdout
    again = interp("runs", "resume", key, cwd=tmp_path)
    assert again.exit_code == 0, again.stderr
    assert "relations.parquet: damaged or missing, and made again" in again.stderr
    found, before = ({**json.loads(each.stdout), "seconds": 0} for each in (again, first))
    assert found == before
    assert interp("runs", "verify").exit_code == 0


def test_a_folder_of_runs_that_was_moved_is_gone_on_with_there(few, tmp_path):
    asked = (*(each for each in ABLATE if each != "--json"), "--fresh", "--runs", tmp_path / "old")
    assert interp(*asked, cwd=tmp_path).exit_code == 0
    (tmp_path / "old").rename(tmp_path / "new")
    (folder,) = (tmp_path / "new").iterdir()
    (folder / "result.json").unlink()
    again = interp("runs", "resume", folder.name, "--runs", tmp_path / "new", "--json", cwd=tmp_path)
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["task"] == "agreement", "as JSON, though it was begun without"
    assert (folder / "result.json").exists()
    assert not (tmp_path / "old").exists()
    events = [json.loads(line)["event"] for line in (folder / "log.jsonl").read_text().splitlines()]
    assert events.count("begun") == len(list((folder / "parts").iterdir()))


def test_a_command_that_asks_another_question_by_now(few, tmp_path):
    save_model(interp_model := load_model("default"), tmp_path / "model")
    asked = (*ABLATE, "--model", "./model", "--runs", tmp_path / "runs")
    assert interp(*asked, cwd=tmp_path).exit_code == 0
    (folder,) = (tmp_path / "runs").iterdir()
    (folder / "result.json").unlink()
    with torch.no_grad():
        interp_model.blocks[0].attn.W_O.mul_(1.1)
    shutil.rmtree(tmp_path / "model")
    save_model(interp_model, tmp_path / "model")
    done = interp("runs", "resume", folder.name, "--runs", folder.parent, cwd=tmp_path)
    assert done.exit_code == 2
    assert f"run {folder.name}: its command asks another question by now" in done.stderr
    (other,) = set((tmp_path / "runs").iterdir()) - {folder}
    about = json.loads((other / "manifest.json").read_text())["about"]
    assert about["command"] == [str(each) for each in asked[:-2]], "which can be gone on with, too"


def test_what_another_program_computed_is_not_gone_on_with(runs, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("interp.runs.key.code_hash", lambda: "0" * 64)
    refused = runs("resume", folder.name)
    assert refused.exit_code == 2
    assert "computed by another version of the program (code " in refused.stderr
    assert ", here 000000000000)" in refused.stderr
