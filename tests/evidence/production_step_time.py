#!/usr/bin/env python3
"""Step-time errors of ten tables of production training together, by number format.

usage: production_step_time.py CPFIT FOLDER_OF_TABLES

One figure per row: its step time, else tokens/s, TFLOP/s or MFU turned into a step time.
"""
import csv
import json
import os
import statistics
import subprocess
import sys

TABLES = ["nemo_2407_summary", "nemo_long_sequence", "megatron_bridge_performance", "dgxc_benchmarking", "megatron_papers",
          "llama3_paper_table4", "simumax_b200_measured", "kwai_atc24", "torchtitan", "usp_paper"]
METRICS = ["step_seconds", "tokens_per_second_per_gpu", "tflops_per_gpu", "mfu"]  # the first that a row has
LOW_PRECISION = ("FP8", "FLOAT8", "NVFP4", "MXFP")


def step_errors(cpfit, path):
    """(line, predicted / measured step time - 1) of every row with a speed."""
    said = subprocess.run([cpfit, "validate", path, "--json"], capture_output=True, text=True, check=True)
    best = {}
    for row in json.loads(said.stdout)["rows"]:
        if row["metric"] not in METRICS:
            continue
        known = best.get(row["line"])
        if known is None or METRICS.index(row["metric"]) < METRICS.index(known["metric"]):
            best[row["line"]] = row
    for line, row in best.items():
        yield line, row["error"] if row["metric"] == "step_seconds" else 1 / (1 + row["error"]) - 1


def summary(name, errors):
    sizes = [abs(error) for error in errors]
    print(f"{name:<30}{len(errors):>5} rows  median {statistics.median(sizes):6.1%}  mean {statistics.mean(sizes):6.1%}"
          f"  bias {statistics.median(errors):+6.1%}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    by_format = {"16 bits": [], "8 bits and fewer": []}
    for table in TABLES:
        path = os.path.join(sys.argv[2], table + ".csv")
        with open(path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        errors = list(step_errors(sys.argv[1], path))
        for line, error in errors:
            precision = (rows[line - 2].get("precision") or "").upper()
            low = any(word in precision for word in LOW_PRECISION)
            by_format["8 bits and fewer" if low else "16 bits"].append(error)
        summary(table, [error for _, error in errors])
    for name, errors in by_format.items():
        summary("all, " + name, errors)


main()
