"""Nothing that only POSIX has is needed, to import splitgraph, to convert, or to verify.

A `sitecustomize` hides it from every Python that a test starts, the processes of engines included. What subprocess
itself needs stays, since these tests run on a POSIX system.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODEL = ROOT / "models" / "split11_attribute.onnx"

MODULES = ("fcntl", "grp", "posix1e", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
OF_OS = (
    "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "copy_file_range", "fchmod", "fchown", "fork", "forkpty",
    "getegid", "geteuid", "getgid", "getpgid", "getuid", "killpg", "lchown", "link", "mkfifo", "nice", "pidfd_open",
    "posix_fadvise", "posix_fallocate", "pread", "preadv", "pwrite", "sched_getaffinity", "sendfile", "setpgid",
    "setsid", "splice", "sysconf",
)  # fmt: skip
OF_SIGNAL = ("SIGALRM", "SIGHUP", "SIGKILL", "SIGUSR1", "alarm", "pthread_sigmask", "setitimer", "siginterrupt")
OF_SELECT = ("epoll", "kqueue", "poll")

HIDING = f"""
import os, select, signal, subprocess, sys
# Popen of POSIX looks for the number of the signal; that of Windows has a function of the system.
subprocess.Popen.kill = lambda self: self.send_signal(9)
for name in {MODULES!r}:
    sys.modules[name] = None
for module, names in ((os, {OF_OS!r}), (signal, {OF_SIGNAL!r}), (select, {OF_SELECT!r})):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
# Neither Linux, macOS nor Windows: no branch for one of them may be the only one.
sys.platform = "other"
"""

IMPORT_ALL = """
import importlib, pkgutil, splitgraph
# These extend classes of packages that may not be installed.
optional = ("splitgraph.openvino.passes", "splitgraph.pipelines.olive_pass", "splitgraph.pipelines.onnx_ir_passes")
for module in pkgutil.walk_packages(splitgraph.__path__, "splitgraph."):
    # The programs of runtimes run in Pythons of their own.
    if module.name not in (*optional, "splitgraph.__main__") and ".programs." not in module.name:
        importlib.import_module(module.name)
"""
CONVERT = """
import sys, splitgraph
assert splitgraph.infer(sys.argv[1]).ok
rewrite = splitgraph.upgrade(sys.argv[1], 18)
splitgraph.save(rewrite, "saved.onnx")
rewrite.save("saved.onnx", external_data="beside")
assert splitgraph.downgrade("saved.onnx", 11).changes
"""
VERIFY = """
import sys, splitgraph
found = splitgraph.upgrade(sys.argv[1], 18, verify=True, engine="reference").verification
assert found.verdict == "equal", found
"""
NO_POSIX = """
import os, signal, sys
for name in ("fcntl", "resource", "pwd", "termios"):
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} is there")
assert not hasattr(os, "fork") and not hasattr(signal, "SIGKILL")
"""


def run(*arguments: str, folder: Path, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python in a folder, with everything hidden."""
    hiding = folder / "hiding"
    hiding.mkdir(exist_ok=True)
    (hiding / "sitecustomize.py").write_text(HIDING, encoding="utf-8")
    path = os.pathsep.join(filter(None, (str(hiding), str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        input=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize(
    "script", [NO_POSIX, IMPORT_ALL, CONVERT, VERIFY], ids=["hidden", "import", "convert", "verify"]
)
def test_python(script: str, tmp_path: Path) -> None:
    done = run("-c", script, str(MODEL), folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


COMMANDS = [
    ("infer", str(MODEL), "-o", "inferred.onnx"),
    ("upgrade", str(MODEL), "--opset", "18", "-o", "upgraded.onnx", "--verify", "--engine", "reference"),
    ("convert", str(MODEL), "--to", "slice", "-o", "folder/", "--external-data"),
    ("check", str(MODEL), "--target", "onnxruntime"),
    ("verify", str(MODEL), str(MODEL), "--engine", "reference"),
    ("infer", str(MODEL), str(MODEL.with_name("split13_equal.onnx")), "--jobs", "2", "--timeout", "600"),
    ("upgrade", str(MODEL), "--opset", "18", "-o", "many/", "--verify", "--engine", "reference", "--jobs", "1"),
    ("report", str(MODEL), "-o", "report.html"),
    ("diff", str(MODEL), str(MODEL)),
    ("doctor",),
]


# One process for all, so that it imports once; what one of them says is in standard error.
RUN_COMMANDS = """
import json, os, sys
from splitgraph.cli import main
for number, arguments in enumerate(json.load(sys.stdin)):
    os.mkdir(str(number))
    os.chdir(str(number))
    if code := main(arguments):
        print("exit code", code, "of", arguments, file=sys.stderr)
    os.chdir("..")
"""


def test_commands(tmp_path: Path) -> None:
    done = run("-c", RUN_COMMANDS, folder=tmp_path, given=json.dumps(COMMANDS))
    assert (done.returncode, done.stderr) == (0, "")


def test_the_program(tmp_path: Path) -> None:
    done = run("-m", "splitgraph", "infer", str(MODEL), folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    script = f"import tempfile; tempfile.tempdir = {str(temporary)!r}\n{VERIFY}"
    assert run("-c", script, str(MODEL), folder=tmp_path).returncode == 0
    assert list(temporary.iterdir()) == []


def test_an_engine_that_hangs_is_ended(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from splitgraph.processes.kept_processes import run_once
from splitgraph.processes.worker_process import ProcessEnded
try:
    run_once("hanging:hang", "", Path(sys.argv[1]), 1)
except ProcessEnded as ended:
    print(ended)
"""
    (tmp_path / "hanging.py").write_text("import time\ndef hang(message): time.sleep(600)\n", encoding="utf-8")
    done = run("-c", f"import sys; sys.path.append({str(tmp_path)!r})\n{script}", str(tmp_path), folder=tmp_path)
    assert (done.stdout.strip(), done.stderr) == ("did not finish within 1 seconds", "")
