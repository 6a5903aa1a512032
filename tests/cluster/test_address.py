"""Where no Ray cluster answers, a command says so at once, and does not wait for one."""

import socket

import pytest
from kept_sweeps import sweep
from typer.testing import CliRunner

from interp.cli import app
from interp.cluster import ray as address
from interp.cluster.ray import Ray
from interp.errors import InputError
from interp.runs.run import Run

pytestmark = pytest.mark.unchecked


@pytest.fixture
def listening():
    """The address of somebody who is no cluster: he takes calls, and says nothing."""
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        yield f"127.0.0.1:{somebody.getsockname()[1]}"


@pytest.mark.parametrize(
    "where",
    ["127.0.0.1:9", "ray://127.0.0.1:9", "[::1]:9", "nobody.invalid:6379", "localhost:99999", "a..b:6379"],
    ids=range(6),
)
def test_an_address_where_nobody_listens(ray_module, tmp_path, where):
    with pytest.raises(InputError, match=r"expected a cluster at .*, got nobody who listens"):
        sweep(Run(tmp_path, Ray(2, address=where)))
    assert list(tmp_path.iterdir()) == [], "a question that was refused"


def test_the_command_says_it_in_a_line(ray_module, tmp_path, monkeypatch):
    monkeypatch.setattr("interp.tasks.catalogue.REFERENCES", 40)
    asked = ["ablate", "--task", "ioi", "--n", "5", "--executor", "ray", "--address", "127.0.0.1:9", "--runs", tmp_path]
    done = CliRunner().invoke(app, [str(each) for each in asked])
    assert done.exit_code == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ray: expected a cluster at 127.0.0.1:9, got nobody who listens ([Errno")
    assert "start one with `ray start --head`" in line


def test_somebody_who_is_no_cluster(ray_module, listening, monkeypatch):
    monkeypatch.setattr(address, "SECONDS", 1)
    with pytest.raises(InputError, match="got nobody who answers as one within 1 s"):
        address.require_cluster(listening)


@pytest.mark.slow
def test_a_file_of_the_present_folder_is_not_taken_for_ray(ray_module, listening, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(address, "SECONDS", 5)
    (tmp_path / "ray.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    with pytest.raises(InputError, match="got nobody who answers"):
        address.require_cluster(listening)
    assert not (tmp_path / "imported").exists()


@pytest.mark.slow
def test_what_ray_itself_refuses(ray_module):
    with pytest.raises(InputError, match="expected a cluster at nobody, got ValueError: Invalid address format"):
        address.require_cluster("nobody")


@pytest.mark.slow
def test_no_cluster_on_this_machine(ray_module, monkeypatch, tmp_path):
    """Those of tests beside are hidden: Ray looks for them among the processes."""
    hidden = address._CONNECT.replace("ray.init(", "import psutil; psutil.process_iter = lambda *_: (); ray.init(")
    monkeypatch.setattr(address, "_CONNECT", hidden)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    with pytest.raises(InputError, match="expected a cluster at auto, got ConnectionError"):
        address.require_cluster("auto")
