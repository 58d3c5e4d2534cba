#!/usr/bin/env python3
"""Two writers and a reader on one database.

  tests/stress/writers_test.py build/cli/cpfit [--seconds 60] [--nodes 8]

Two processes plan into the same file again and again, a third lists and shows what is there. Nobody fails, whatever the others do;
what the reader saw once stays; the file is whole from the moment it is there; and in the end every run is whole and has the same verdict.
"""

import argparse
import sys
import threading

sys.dont_write_bytecode = True  # no folder beside the sources
from children import need, os, rows, run, run_json, scenario, sound, tempfile, time


class Party(threading.Thread):
    """Repeats its work until the time is over; a failure ends the program at the end."""

    def __init__(self, work, until):
        super().__init__()
        self.work, self.until, self.rounds, self.trouble = work, until, 0, None

    def run(self):
        try:
            while time.monotonic() < self.until:
                self.work()
                self.rounds += 1
        except SystemExit:
            self.trouble = "see above"


class Reader:
    """Lists the runs and shows the youngest finished one; what was there once must stay."""

    def __init__(self, cpfit, database):
        self.cpfit, self.database, self.seen, self.looks = cpfit, database, {}, 0

    def read(self):
        if not os.path.exists(self.database):
            time.sleep(0.005)
            return
        self.looks += 1
        for one in run_json([self.cpfit, "runs", "list", "--db", self.database])["runs"]:
            number, candidates = one["run"], one["candidates"]
            need(candidates >= self.seen.get(number, 0), f"run {number} had {self.seen.get(number)} recipes, now {candidates}")
            self.seen[number] = candidates
        done = [one["run"] for one in run_json([self.cpfit, "runs", "list", "--db", self.database])["runs"] if one["status"] == "done"]
        if done:
            run([self.cpfit, "runs", "show", str(done[0]), "--db", self.database])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cpfit")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--nodes", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cpfit_writers_") as folder:
        database = os.path.join(folder, "shared.sqlite")
        until = time.monotonic() + arguments.seconds
        scenarios = [scenario(folder, nodes=arguments.nodes, model="llama3-8b", batch=64, name=f"{name}.toml") for name in ("one", "two")]
        writers = [Party(lambda path=path: run([arguments.cpfit, "plan", path, "--no-crossover", "--db", database]), until)
                   for path in scenarios]
        reader = Reader(arguments.cpfit, database)
        parties = writers + [Party(reader.read, until)]
        for party in parties:
            party.start()
        for party in parties:
            party.join()
        need(not any(party.trouble for party in parties), "a writer or the reader failed")
        sound(database)
        written = sum(party.rounds for party in writers)
        runs = rows(database, "SELECT status, (SELECT count(*) FROM candidate WHERE run_id = run.id AND origin = 'search') FROM run")
        need(len(runs) == written, f"{written} plans ended well, {len(runs)} runs are stored")
        need(len(set(runs)) == 1 and runs[0][0] == "done", f"runs of the same question differ: {set(runs)}")
        ships = set(rows(database, "SELECT recipe FROM run_candidate JOIN candidate ON id = candidate_id WHERE list = 'ship'"))
        need(len(ships) == 1, f"verdicts differ: {ships}")
        print(f"two writers stored {written} runs, the reader looked {reader.looks} times in {arguments.seconds:g} s: all whole")
    return 0


if __name__ == "__main__":
    sys.exit(main())
