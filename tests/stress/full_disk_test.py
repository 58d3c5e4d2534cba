#!/usr/bin/env python3
"""Every command that writes, on a disk that is full and on one that is read-only.

  tests/stress/full_disk_test.py build/cli/cpfit          needs the right to mount (root); else ends with 77: skipped

Each says a sentence on standard error and ends with code 1; what was on the disk before is there still, byte for byte or (of a
database) row for row, and nothing half-written lies beside it.
"""

import argparse
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True  # no folder beside the sources
from children import need, os, rows, run, scenario, sound, tempfile
from kill_test import FIXTURES, LOGS, nccl_tests_output

SKIPPED = 77


def mount(disk, options):
    return subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], capture_output=True, text=True, check=False)


def remount(disk, options):
    subprocess.run(["mount", "-o", f"remount,{options}", disk], check=True)


def fill_up(disk):
    """Leaves no byte."""
    with open(os.path.join(disk, "rest"), "wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(b"x" * size) == size:
                    pass
            except OSError:
                pass


def commands(cpfit, folder, disk):
    """Name, words, and the file that the command writes."""
    question = scenario(folder, nodes=1, model="llama3-8b", batch=8)
    measured = nccl_tests_output(os.path.join(folder, "ar.txt"))
    elsewhere, bundle = os.path.join(folder, "elsewhere.sqlite"), os.path.join(folder, "bundle.json")
    if not os.path.exists(bundle):
        run([cpfit, "plan", question, "--no-crossover", "--no-candidates", "--db", elsewhere])
        run([cpfit, "runs", "export", "1", "--db", elsewhere, "--out", bundle])
    recipe = ["--recipe", "tp=2,cp=4,pp=1,dp=1,recompute=full"]
    database, out = os.path.join(disk, "d.sqlite"), os.path.join(disk, "out")
    timeline = ["simulate", question] + recipe + ["--fidelity", "timeline"]
    return [
        ("plan --db", [cpfit, "plan", question, "--db", database], database),
        ("simulate --db", [cpfit] + timeline + ["--db", database], database),
        ("verify --db", [cpfit, "verify", "--method", "te_p2p", "--mask", "causal", "--cp", "2", "--dtype", "fp64", "--db", database],
         database),
        ("calibrate fit --db", [cpfit, "calibrate", "fit", measured, "--name", "other", "--db", database], database),
        ("simulate --trace", [cpfit] + timeline + ["--trace", out], out),
        ("simulate --spans", [cpfit] + timeline + ["--spans", out], out),
        ("report --out", [cpfit, "report", question, "--out", out], out),
        ("topology import --out", [cpfit, "topology", "import", str(FIXTURES / "slurm_tree.conf"), "--gpu", "H100-SXM5-80GB", "--out", out],
         out),
        ("launch --out", [cpfit, "launch", question, "--format", "megatron"] + recipe + ["--out", out], out),
        ("calibrate fit --out", [cpfit, "calibrate", "fit", measured, "--out", out], out),
        ("runs export --out", [cpfit, "runs", "export", "1", "--db", elsewhere, "--out", out], out),
        ("runs import --db", [cpfit, "runs", "import", bundle, "--db", database], database),
        ("ingest --db", [cpfit, "ingest", str(LOGS / "megatron.log"), "--db", database], database),
        ("verify emit", [cpfit, "verify", "emit", os.path.join(disk, "tensors"), "--mask", "causal"], None),
    ]


def contents(database):
    tables = [name for (name,) in rows(database, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    return {table: rows(database, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables}


def kept(before, after):
    """Rows of `before` that are not in `after`; new ones (a run that was begun) are none of ours."""
    lost = []
    for table, known in before.items():
        now = set(after.get(table, []))
        lost += [(table, row) for row in known if row not in now]
    return lost


def try_all(cpfit, folder, disk, kind, reason):
    database, out = os.path.join(disk, "d.sqlite"), os.path.join(disk, "out")
    copy = os.path.join(folder, "before.sqlite")
    before = contents(copy)
    tried = 0
    for name, words, target in commands(cpfit, folder, disk):
        said = run(words, 1)
        need(said.stderr.startswith("cpfit: ") and any(word in said.stderr for word in reason), f"{name}, {kind}: {said.stderr!r}")
        need(len(said.stderr) < 2000, f"{name}, {kind}: more than a sentence: {said.stderr!r}")
        with open(out, "rb") as file:
            need(file.read() == b"what was there before\n", f"{name}, {kind}: changed a file")
        left = sorted(os.listdir(disk))
        strangers = [one for one in left if one not in ("d.sqlite", "d.sqlite-shm", "d.sqlite-wal", "out", "rest", "tensors")]
        need(not strangers, f"{name}, {kind}: left {strangers}")
        if target == database:
            look = os.path.join(folder, "look.sqlite")  # a copy: SQLite itself wants room beside the file
            for end in ("", "-wal"):
                if os.path.exists(database + end):
                    shutil.copy(database + end, look + end)
                elif os.path.exists(look + end):
                    os.unlink(look + end)
            sound(look)
            lost = kept(before, contents(look))
            need(not lost, f"{name}, {kind}: lost {lost[:3]}")
        tried += 1
    return tried


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cpfit")
    cpfit = os.path.abspath(parser.parse_args().cpfit)
    with tempfile.TemporaryDirectory(prefix="cpfit_disk_") as folder:
        disk = os.path.join(folder, "disk")
        os.mkdir(disk)
        refused = mount(disk, "size=4m")
        if refused.returncode != 0:
            print(f"skipped: a small file system cannot be mounted here: {refused.stderr.strip()}")
            return SKIPPED
        try:
            question = scenario(folder, nodes=1, model="llama3-8b", batch=8)
            database = os.path.join(disk, "d.sqlite")
            run([cpfit, "plan", question, "--no-crossover", "--no-candidates", "--db", database])
            shutil.copy(database, os.path.join(folder, "before.sqlite"))
            with open(os.path.join(disk, "out"), "wb") as file:
                file.write(b"what was there before\n")
            fill_up(disk)
            full = try_all(cpfit, folder, disk, "full", ("No space left", "no space is left", "cannot write"))
            shown = run([cpfit, "runs", "show", "1", "--db", database])
            need("Verdict" in shown.stdout, "a run on a full disk cannot be shown")
            os.unlink(os.path.join(disk, "rest"))
            remount(disk, "ro")
            locked = try_all(cpfit, folder, disk, "read-only", ("Read-only file system", "read-only", "cannot be written", "cannot write"))
            need("Verdict" in run([cpfit, "runs", "show", "1", "--db", database]).stdout, "a read-only run cannot be shown")
        finally:
            subprocess.run(["umount", disk], check=False)
        print(f"full: {full} commands, read-only: {locked} commands; each a sentence and code 1, nothing lost, nothing half-written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
