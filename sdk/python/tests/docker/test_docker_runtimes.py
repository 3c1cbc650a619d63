"""CAMEL's Docker runtimes beside a real Engine, started by `e2e/sdk/run --docker`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Iterator, List

import pytest

import somewhere
from zareba import TimedOutError, ToolError, ZarebaError
from zareba.camel import DockerRuntime, TaskConfig, UbuntuDockerRuntime

IMAGE = "zareba-test/debian"
MODULE = Path(somewhere.__file__)
WORKSPACE = "/workspace"


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    named = os.environ.get("ZAREBA_TEST_DOCKER")
    assert named, "started without an Engine: use e2e/sdk/run --docker"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{named}")


@pytest.fixture(scope="module")
def shared() -> Iterator[DockerRuntime]:
    """One container for tests that change nothing in it."""
    os.environ["DOCKER_HOST"] = f"unix://{os.environ['ZAREBA_TEST_DOCKER']}"
    runtime = DockerRuntime(IMAGE, environment=["GREETING=hello there"])
    runtime.copy(str(MODULE), WORKSPACE)
    runtime.add([somewhere.double, somewhere.fail, somewhere.where])
    runtime.add(somewhere.Counter().get_tools(), "somewhere.Counter", arguments={"start": 5})
    runtime.add_task(TaskConfig(cmd="touch /tmp/prepared"))
    with runtime.build():
        yield runtime


def test_tools_run_in_the_container(shared: DockerRuntime) -> None:
    double, fail, where, count = shared.get_tools()
    assert double.func(4) == 8 and [count.func(), count.func()] == [6, 7]
    assert where.func()["cwd"] == WORKSPACE
    with pytest.raises(ToolError, match="ValueError: no good"):
        fail.func("no good")
    assert shared.ok and shared.wait() and shared.task_results[0].ok


def test_exec_run_is_docker_pys(shared: DockerRuntime) -> None:
    assert shared.exec_run(TaskConfig(cmd="printenv GREETING")) == (0, b"hello there\n")
    assert shared.exec_run(TaskConfig(cmd="ls /tmp/prepared")) == (0, b"/tmp/prepared\n")
    code, release = shared.exec_run(TaskConfig(cmd="cat /etc/os-release"))
    assert code == 0 and b"bookworm" in release
    assert shared.exec_run(TaskConfig(cmd="no-such-program"))[0] == 127


def test_it_is_hardened_unless_something_else_is_asked_for(shared: DockerRuntime) -> None:
    assert shared.exec_run(TaskConfig(cmd="id -u"))[1] == b"1000\n"
    assert shared.exec_run(TaskConfig(cmd="touch /etc/x"))[0] != 0
    status = shared.exec_run(TaskConfig(cmd="cat /proc/self/status"))[1].decode()
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert (fields["NoNewPrivs"], int(fields["CapEff"], 16)) == ("1", 0)
    assert shared.exec_run(TaskConfig(cmd="cat /proc/net/route"))[1].count(b"\n") == 1


def test_a_directory_is_mounted_and_a_root_can_be_asked_for(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "given").write_text("from outside")
    runtime = DockerRuntime(IMAGE, read_only=False, user="root").mount(str(tmp_path), "/data")
    with runtime.build():
        assert runtime.exec_run(TaskConfig(cmd="cat /data/given")) == (0, b"from outside")
        assert runtime.exec_run(TaskConfig(cmd=["sh", "-c", "id -u; echo x > /opt/x"]))[0] == 0
        assert runtime.exec_run(TaskConfig(cmd=["sh", "-c", "echo back > /data/made"]))[0] == 0
    assert (tmp_path / "made").read_text() == "back\n"


def test_reset_is_a_fresh_container() -> None:
    with DockerRuntime(IMAGE) as runtime:
        runtime.exec_run(TaskConfig(cmd="touch mark"))
        assert runtime.exec_run(TaskConfig(cmd="ls"))[1] == b"mark\n"
        runtime.reset()
        assert runtime.exec_run(TaskConfig(cmd="ls"))[1] == b""


def test_options_that_would_open_a_wall_are_refused_with_the_reason() -> None:
    with pytest.raises(ZarebaError, match="privileged"):
        DockerRuntime(IMAGE, privileged=True).build()


def test_python_is_found_and_files_run_by_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "hello.py"
    script.write_text(
        "import os, sys\n"
        "print('hello', *sys.argv[1:], os.environ['A'], 'äöü' * 3)\n"
        "print(os.environ['PYTHON_EXECUTABLE'], os.environ['PYTHONPATH'])\n"
        "print('trouble', file=sys.stderr)\n"
        "sys.exit(3)\n"
    )
    with UbuntuDockerRuntime(IMAGE, environment=["B=1"]) as runtime:
        assert runtime.python == "/usr/bin/python3"
        told: List[str] = []
        # Another name inside than here.
        done = runtime.exec_python_file(
            str(script), "/tmp/other/name.py", ["a b"], {"A": "1"}, told.append, timeout=60
        )
        assert done.exit_code == 3 and done.stdout.startswith("hello a b 1 äöüäöüäöü\n".encode())
        assert "ERROR: trouble\n" in told
        assert "/usr/bin/python3" in done.stdout.decode() and "/python3" in runtime.site_packages
        runtime.exec_python_file(str(script), env={"A": "2"})
        shown = capfd.readouterr()
        assert shown.out.startswith("hello 2") and shown.err == "ERROR: trouble\n"
        script.write_text("import time; time.sleep(600)")
        with pytest.raises(TimedOutError):
            runtime.exec_python_file(str(script), timeout=0.5)


def test_a_python_that_is_named_and_not_there_fails_the_build() -> None:
    with pytest.raises(RuntimeError, match="Python installation verification failed"):
        UbuntuDockerRuntime(IMAGE, python_path="/opt/none").build()


def test_an_image_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ZarebaError, match="zareba-test/none"):
        DockerRuntime("zareba-test/none").build()


def test_the_example_of_the_page_prints_what_it_says(tmp_path: Path) -> None:
    page = Path(__file__).resolve().parents[4] / "docs" / "camel-sdk.md"
    pattern = r"^```python docker\n(.*?)^```$"
    [code] = re.findall(pattern, page.read_text(), re.MULTILINE | re.DOTALL)
    # The page says how to make its image from a registry, which is not there.
    assert '"debian-python"' in code
    code = code.replace("debian-python", IMAGE)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^ *#> (.*)$", code, re.MULTILINE)
