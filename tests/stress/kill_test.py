#!/usr/bin/env python3
"""kill -9 at random moments: of a sweep that writes a database, and of imports and exports that write files, calibrations,
bundles and results of jobs.

  tests/stress/kill_test.py build/cli/cpfit [--kills 100] [--seed N] [--small]

After every kill: the database is whole, everything that was committed before is there still, and the next run of the same command
goes on from it; a file is what it was or what it becomes, never in between. --small: a search of a second, for ctest.
"""

import argparse
import pathlib
import sys

sys.dont_write_bytecode = True  # no folder beside the sources
from children import fail, killed_after, need, os, random, rows, run, run_json, scenario, sound, tempfile, time

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "topology"
LOGS = FIXTURES.parent / "logs"
CANDIDATES = "SELECT count(*) FROM candidate WHERE origin = 'search'"


def measured(work):
    begin = time.monotonic()
    work()
    return time.monotonic() - begin


class Work:
    """A command with the seconds it takes; on a busy machine the shortest time seen."""

    seconds = 0.0

    def hit(self, words, moment):
        """Kills it at that share of its time; whether it was alive then."""
        took = killed_after(words, moment * self.seconds)
        if took is not None:
            self.seconds = min(self.seconds, took)
        return took is None


class Sweep(Work):
    """`plan --db`: killed, continued, and in the end the same result as one that nobody disturbed."""

    def __init__(self, cpfit, folder, small):
        self.cpfit, self.database = cpfit, os.path.join(folder, "sweep.sqlite")
        self.words = [cpfit, "plan", scenario(folder, nodes=4 if small else 16), "--no-crossover", "--db", self.database]
        self.undisturbed = os.path.join(folder, "undisturbed.sqlite")
        self.seconds = measured(lambda: run(self.words[:-1] + [self.undisturbed]))
        self.expected = rows(self.undisturbed, CANDIDATES)[0][0]
        self.ship = rows(self.undisturbed, "SELECT recipe FROM run_candidate JOIN candidate ON id = candidate_id WHERE list = 'ship'")
        self.kept, self.done = 0, 0

    def killed(self, moment):
        hit = self.hit(self.words, moment)
        if not os.path.exists(self.database):
            return hit
        sound(self.database)
        listed = run_json([self.cpfit, "runs", "list", "--db", self.database])["runs"]
        done = [one for one in listed if one["status"] == "done"]
        need(len(done) >= self.done, f"{self.done} runs were done, {len(done)} are")
        need(len(listed) <= len(done) + 1, "a run was begun anew instead of continued")
        for one in done:
            need(one["candidates"] == self.expected, f"a finished run holds {one['candidates']} recipes of {self.expected}")
        kept = sum(one["candidates"] for one in listed)
        need(kept >= self.kept, f"{self.kept} recipes were stored, {kept} are")
        self.kept, self.done = kept, len(done)
        if self.done >= 3 and self.done == len(listed):  # a file that grows without end only makes the checks slow
            self.finish()
            for end in ("", "-wal", "-shm"):
                if os.path.exists(self.database + end):
                    os.unlink(self.database + end)
            self.kept, self.done = 0, 0
        return hit

    def finish(self):
        run(self.words)
        recipes = rows(self.database, "SELECT run_id, recipe FROM candidate WHERE origin = 'search'")
        need(len(set(recipes)) == len(recipes), "a recipe was stored twice")
        ships = rows(self.database, "SELECT recipe FROM run_candidate JOIN candidate ON id = candidate_id WHERE list = 'ship'")
        need(ships and set(ships) == set(self.ship), f"another verdict after kills: {ships} instead of {self.ship}")
        unfinished = rows(self.database, "SELECT count(*) FROM run WHERE status <> 'done'")[0][0]
        need(unfinished == 0, "a run was left unfinished")


class FileImport(Work):
    """A command that writes a file over an older one."""

    def __init__(self, words, out):
        self.words, self.out, self.old = words, out, b"what was there before\n"
        self.seconds = measured(lambda: run(words))
        with open(out, "rb") as file:
            self.new = file.read()

    def killed(self, moment):
        with open(self.out, "wb") as file:
            file.write(self.old)
        hit = self.hit(self.words, moment)
        with open(self.out, "rb") as file:
            left = file.read()
        need(left in (self.old, self.new), f"{self.out} is half-written: {len(left)} bytes of {len(self.new)}")
        return hit

    def finish(self):
        run(self.words)


class DatabaseImport(Work):
    """A command that brings something into a new database: it is there whole, or not at all."""

    def __init__(self, folder, name, words, tables, once):
        """`words` want the database after them; `once`: what is known already is not stored a second time."""
        self.folder, self.name, self.words, self.tables, self.once, self.number = folder, name, words, tables, once, 0
        reference = os.path.join(folder, name + ".sqlite")
        self.seconds = measured(lambda: run(self.words + [reference]))
        self.whole = self.count(reference)
        need(all(self.whole[:1]), f"{name} stores nothing")

    def count(self, database):
        known = {table for (table,) in rows(database, "SELECT name FROM sqlite_schema WHERE type = 'table'")}
        return [rows(database, f"SELECT count(*) FROM {table}")[0][0] if table in known else 0 for table in self.tables]

    def killed(self, moment):
        self.number += 1
        database = os.path.join(self.folder, f"{self.name}{self.number}.sqlite")
        hit = self.hit(self.words + [database], moment)
        if os.path.exists(database):
            sound(database)
            left = self.count(database)
            need(left == self.whole or not any(left), f"{self.name}: half of it is stored: {left} of {self.whole}")
            run(self.words + [database])  # finishes what was cut off, a schema included
            expected = self.whole if self.once else [a + b for a, b in zip(left, self.whole)]
            need(self.count(database) == expected, f"{self.name}: {self.count(database)} rows after a second try, not {expected}")
        return hit

    def finish(self):
        pass


def nccl_tests_output(path):
    """An output of all_reduce_perf as the tool prints it, its figures made up: alpha 20 us, 300 GB/s."""
    lines = ["# nThread 1 nGpus 8 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
             "validation: 1 graph: 0", "#", "# Using devices"]
    lines += [f"#  Rank {rank:2} Group  0 Pid  {100 + rank} on  n0 device {rank:2} [0x{0x10 + rank:02x}] NVIDIA H100 80GB HBM3"
              for rank in range(8)]
    lines += ["#", "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
              "#wrong", "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)"]
    for power in range(10, 31):
        size = 1 << power
        us = 20 + size * 1.75 / 300e3
        algbw = size / us / 1e3
        figures = f"{us:8.2f} {algbw:7.2f} {algbw * 1.75:7.2f}      0"
        lines.append(f"{size:12} {size // 4:13} float     sum      -1 {figures} {figures}")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n# Out of bounds values : 0 OK\n")
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cpfit")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--small", action="store_true")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    dice = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="cpfit_kill_") as folder:
        nodes = 1 if arguments.small else 8
        plain = scenario(folder, nodes=nodes, model="llama3-8b", batch=8, name="plain.toml")
        recipe = f"tp=2,cp=4,pp=1,dp={nodes},recompute=full"
        topology, trace = os.path.join(folder, "t.json"), os.path.join(folder, "trace.json")
        stored, bundle = os.path.join(folder, "stored.sqlite"), os.path.join(folder, "bundle.json")
        exported = os.path.join(folder, "exported.json")
        run([arguments.cpfit, "plan", plain, "--no-crossover", "--db", stored])
        run([arguments.cpfit, "runs", "export", "1", "--db", stored, "--out", bundle])
        works = {
            "sweep": Sweep(arguments.cpfit, folder, arguments.small),
            "topology import": FileImport([arguments.cpfit, "topology", "import", str(FIXTURES / "slurm_tree.conf"), "--gpu",
                                           "H100-SXM5-80GB", "--out", topology], topology),
            "simulate --trace": FileImport([arguments.cpfit, "simulate", plain, "--recipe", recipe, "--fidelity", "timeline", "--trace",
                                            trace], trace),
            "runs export": FileImport([arguments.cpfit, "runs", "export", "1", "--db", stored, "--out", exported], exported),
            "calibrate fit": DatabaseImport(
                folder, "calibrations",
                [arguments.cpfit, "calibrate", "fit", nccl_tests_output(os.path.join(folder, "ar.txt")), "--name", "node", "--db"],
                ("calibration", "calibration_source", "calibration_gap", "calibration_exclusion", "calibration_surface"), once=True),
            "runs import": DatabaseImport(folder, "bundles", [arguments.cpfit, "runs", "import", bundle, "--db"], ("bundle",), once=True),
            "ingest": DatabaseImport(folder, "jobs", [arguments.cpfit, "ingest", str(LOGS / "megatron.log"), "--db"],
                                     ("measured_job", "measured_source", "measured_figure", "measured_left_out"), once=False),
        }
        hits = dict.fromkeys(works, 0)
        names = list(works)
        tries = 0
        while sum(hits.values()) < arguments.kills:
            tries += 1
            if tries > 4 * arguments.kills:
                fail(f"only {sum(hits.values())} of {tries} programs lived long enough to be killed")
            # Every second one is the sweep: it has the most moments.
            name = names[0] if tries % 2 else names[1 + (tries // 2) % (len(names) - 1)]
            hits[name] += works[name].killed(dice.uniform(0.0, 1.0))
            if tries % 20 == 0:
                print(f"{sum(hits.values())} of {arguments.kills} kills", flush=True)
        for work in works.values():
            work.finish()
    print(", ".join(f"{name}: {count} kills" for name, count in hits.items()))
    print(f"{sum(hits.values())} of {sum(hits.values())}: nothing finished was lost, nothing was half-written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
