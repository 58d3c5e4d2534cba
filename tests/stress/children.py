"""Programs started, watched and killed; databases looked into. For the scripts beside it."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SCENARIO = """name = "stress"
model = {{preset = "{model}"}}
cluster = {{preset = "dgx-h100", nodes = {nodes}}}
[training]
sequence_length = "128k"
global_batch = {batch}
"""


def fail(message):
    print(f"FAILED: {message}", file=sys.stderr)
    sys.exit(1)


def need(holds, message):
    if not holds:
        fail(message)


def scenario(folder, nodes=64, model="llama3-70b", batch=512, name="s.toml"):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(nodes=nodes, model=model, batch=batch))
    return path


def run(words, code=0):
    """Runs to its end; the exit code must be `code` (or one of several)."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    codes = code if isinstance(code, tuple) else (code,)
    need(done.returncode in codes, f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
    return done


def run_json(words):
    return json.loads(run(words + ["--json"]).stdout)


def killed_after(words, seconds):
    """Starts, waits, kills with SIGKILL. None when it was still alive then; else it must have ended well: the seconds it took."""
    begin = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, said = child.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        _, said = child.communicate()
        if child.returncode == -signal.SIGKILL:
            return None
    need(child.returncode == 0, f"{' '.join(words)} ended with {child.returncode}: {said.decode()[-2000:]}")
    return time.monotonic() - begin


def sound(database):
    """SQLite's own checks of a file that a killed process left."""
    connection = sqlite3.connect(database)
    try:
        need(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], f"{database} is damaged")
        need(not connection.execute("PRAGMA foreign_key_check").fetchall(), f"{database}: a foreign key is broken")
    finally:
        connection.close()


def rows(database, query):
    connection = sqlite3.connect(database)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


__all__ = ["fail", "killed_after", "need", "os", "random", "rows", "run", "run_json", "scenario", "sound", "tempfile", "time"]
