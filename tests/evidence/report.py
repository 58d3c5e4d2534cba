#!/usr/bin/env python3
"""The evidence: cpfit's predictions against public measurements, as tests/evidence/REPORT.md with its pictures.

usage: report.py CPFIT FOLDER_OF_TABLES            writes REPORT.md and *.svg beside this file
       report.py CPFIT FOLDER_OF_TABLES --check    compares with what lies there; exit code 1 when a figure has moved,
                                                   77 when there are no tables, or others than it was written from

Only the standard library; a first-order estimate stands beside cpfit's figures (first_order.py).
"""
import collections
import copy
import glob
import hashlib
import json
import math
import os
import re
import statistics
import subprocess
import sys

import first_order
from explanations import EXPLAINED, RING_MESSAGES
from scatter import scatter

WAIVED = 77
HERE = os.path.dirname(os.path.abspath(__file__))
PRODUCTION = ["nemo_2407_summary", "nemo_long_sequence", "megatron_bridge_performance", "dgxc_benchmarking", "megatron_papers",
              "llama3_paper_table4", "simumax_b200_measured", "kwai_atc24", "torchtitan", "usp_paper"]
SWEEP, SINGLE_CLUSTER = "hf_ultrascale_bench_sweep", "vtrain_ground_truth"
SPEEDS = ["step_seconds", "tokens_per_second_per_gpu", "tflops_per_gpu", "mfu"]  # the first that a row has
CP_TABLES = ["nemo_long_sequence", "torchtitan", "llama3_paper_table4", "simumax_b200_measured", "kwai_atc24",
             "dgxc_benchmarking", "usp_paper", "distflashattn", "burstengine"]
STALLED = 3  # times the predicted step: nothing but a stall is that far off
CAUSES = ["compute", "tp", "cp", "pp", "dp", "bubble", "launch"]


class Step:
    """One measured training run: its step time, as measured and as predicted."""

    def __init__(self, table, row, run):
        self.table, self.line, self.group, self.run = table, row["line"], row["group"], run
        time_is_printed = row["metric"] == "step_seconds"
        # A rate is inverse to the time: the same error seen from the other side.
        self.error = row["error"] if time_is_printed else 1 / (1 + row["error"]) - 1
        tokens = run["sequence"] * run["global_batch"]
        if time_is_printed:
            self.predicted = row["predicted"]
        elif row["metric"] == "tokens_per_second_per_gpu":
            self.predicted = tokens / run["gpus"] / row["predicted"]
        else:
            self.predicted = run["time"]["step_seconds"]
        self.measured = self.predicted / (1 + self.error)
        self.inside = row["low"] <= row["measured"] <= row["high"]
        # Half of the 90 % interval's width in the logarithm, the same for a rate and its time.
        self.reach = math.log(row["high"] / row["low"]) / 2 if row["low"] > 0 else math.inf
        self.first_order_error = first_order.step_seconds(run) / self.measured - 1
        # What a unit of this table's figures says of the work alone: comparable inside one model and length.
        self.tokens_per_gpu_second = tokens / run["gpus"] / self.measured
        self.predicted_tokens = tokens / run["gpus"] / self.predicted

    @property
    def low_precision(self):
        return any(word in self.run["precision"] for word in ("fp8", "fp4"))

    def share(self, cause):
        time = self.run["time"]
        step = time["step_seconds"]
        if cause == "compute":
            return (time["compute"] + time["optimizer"] + time["other"]) / step
        return (time["exposed"][cause] if cause in time["exposed"] else time[cause]) / step


def waived(why):
    print(f"report.py: waived: {why}", file=sys.stderr)
    sys.exit(WAIVED)


def tables_in(folder):
    files = sorted(glob.glob(os.path.join(folder, "*.csv")))
    if not files:
        waived(f"no tables of public measurements in {folder}")
    return files


def fingerprint(folder):
    """Of all tables' names and bytes: figures of other rows cannot be compared."""
    digest = hashlib.sha256()
    for path in tables_in(folder):
        digest.update(os.path.basename(path).encode())
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()[:16]


def validated(cpfit, folder):
    files = tables_in(folder)
    said = subprocess.run([cpfit, "validate", *files, "--json"], capture_output=True, text=True, check=True)
    return {os.path.splitext(os.path.basename(one["file"]))[0]: one for one in json.loads(said.stdout)["files"]}


def steps_of(table, result):
    best = {}
    for row in result["rows"]:
        if row["metric"] not in SPEEDS:
            continue
        known = best.get(row["line"])
        if known is None or SPEEDS.index(row["metric"]) < SPEEDS.index(known["metric"]):
            best[row["line"]] = row
    runs = {run["line"]: run for run in result["runs"]}
    return [Step(table, row, runs[line]) for line, row in best.items()]


def percent(value, digits=1):
    return f"{100 * value:.{digits}f} %"


def table_text(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "|".join("---" if i == 0 else "---:" for i in range(len(head))) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]) + "\n"


def error_cells(errors):
    sizes = [abs(error) for error in errors]
    return [len(errors), percent(statistics.median(sizes)), percent(statistics.mean(sizes)), percent(max(sizes)),
            f"{100 * statistics.median(errors):+.1f} %"]


def repeats(steps):
    """The floor of any prediction: how far measured times of one and the same configuration lie from their median."""
    same = collections.defaultdict(list)
    for step in steps:
        run = step.run
        same[(step.table, run["model"], run["recipe"], run["gpus"], run["gpu"], run["sequence"], run["global_batch"],
              step.group)].append(step.measured)
    spreads = [abs(one / statistics.median(times) - 1) for times in same.values() if len(times) > 1 for one in times]
    return (f"{percent(statistics.median(spreads))} median, {percent(max(spreads))} worst of {len(spreads)}"
            if spreads else "none repeated")


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    placed = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for i in range(at, end + 1):
            placed[order[i]] = (at + end) / 2
        at = end + 1
    return placed


def spearman(steps):
    a, b = ranks([step.measured for step in steps]), ranks([step.predicted for step in steps])
    return statistics.correlation(a, b)


def recognised_stall(step):
    """Seconds that the reader added to a run of the sweep because of its measured step; 0 for all others."""
    for words in step.run["conditions"]:
        if "recognised by the measured step" in words:
            run = step.run
            return float(re.search(r"([0-9.]+) s per micro-batch", words).group(1)) * run["global_batch"] / (run["dp"] * run["micro_batch"])
    return 0.0


def by_the_flags_alone(sweep):
    """The sweep's healthy group and all of it, had nobody looked at the measured steps: runs recognised as stalled count to where
    their row's columns put them, and are predicted without the stall."""
    plain = []
    for step in sweep:
        one = copy.copy(step)
        one.predicted -= recognised_stall(step)
        one.error = one.predicted / one.measured - 1
        plain.append(one)
    healthy = [one for one in plain if one.group == "healthy" or
               (recognised_stall(one) > 0 and not any("sick node" in words for words in one.run["conditions"]))]
    return healthy, plain


def odd(steps):
    return [step for step in steps if step.line % 2 == 1]


def step_section(steps):
    head = ["source", "rows", "median", "mean", "worst", "bias", "in 90 % interval", "6ND median", "6ND bias"]

    def row(name, chosen):
        first = [step.first_order_error for step in chosen]
        return [name, *error_cells([step.error for step in chosen]),
                percent(sum(step.inside for step in chosen) / len(chosen), 0),
                percent(statistics.median(map(abs, first)), 0), f"{100 * statistics.median(first):+.0f} %"]

    out = "## Step time\n\nPredicted over measured step time less one (rates turned into times), one figure a run.\n\n"
    production = [step for step in steps if step.table in PRODUCTION]
    rows = []
    for name, chosen in (("16-bit formats", [s for s in production if not s.low_precision]),
                         ("8-bit and 4-bit formats", [s for s in production if s.low_precision])):
        rows.append(row(f"**production, {name}**", chosen))
        rows.append(row("of these, lines of odd number", odd(chosen)))
    for table in PRODUCTION:
        rows.append(row(table, [step for step in production if step.table == table]))
    others = sorted({step.table for step in steps} - set(PRODUCTION) - {SWEEP})
    for table in others:
        rows.append(row(table, [step for step in steps if step.table == table]))
    sweep = [step for step in steps if step.table == SWEEP]
    for group in sorted({step.group for step in sweep}):
        rows.append(row(f"nanotron sweep, {group}", [step for step in sweep if step.group == group]))
    if sweep:
        rows.append(row("healthy, lines of odd number", odd([step for step in sweep if step.group == "healthy"])))
        rows.append(row("nanotron sweep, all", sweep))
    rows.append(row("**all**", steps))
    rows.append(row("of these, lines of odd number", odd(steps)))
    out += table_text(head, rows)
    out += f"\nThe same configuration measured again: production {repeats(production)}; sweep {repeats(sweep)}.\n"
    healthy = [step for step in sweep if step.group == "healthy"]
    if healthy:
        going = [step for step in healthy if step.measured < STALLED * step.predicted]
        cells = error_cells([step.error for step in going])
        out += (f"Rank correlation over the sweep: healthy {spearman(healthy):.3f}, all {spearman(sweep):.3f}. Layouts there range "
                "from sensible to absurd; runs before a repair of nanotron's pipeline carry a measured stall, sick nodes are no "
                f"property of a recipe. {len(healthy) - len(going)} healthy runs took more than {STALLED} times as long as predicted "
                f"(below): without them median {cells[1]}, mean {cells[2]}, rank correlation {spearman(going):.3f}.\n")
        flagged, plain = by_the_flags_alone(sweep)
        flags = error_cells([step.error for step in flagged])
        found = sum(recognised_stall(step) > 0 for step in sweep)
        out += (f"\n{found} runs marked as repaired ran the unrepaired pipeline all the same: their own step says so (at least twice "
                "their work, and 0.75 to 1.5 of the old stall per micro-batch beyond it), and reserved memory and the split of layers "
                "agree (`calibrate/read/published_nanotron.cpp`). They count to the third group and are predicted with the stall. By the "
                f"table's flags alone, no step looked at, the healthy group would be {flags[0]} runs with median {flags[1]}, mean "
                f"{flags[2]}, rank correlation {spearman(flagged):.3f}, all {spearman(plain):.3f}.\n")
    out += ("`6ND`: 6 x parameters x tokens at a fixed utilisation of 40 %, the usual sheet of paper. The constants of "
            "`[[training]]` in `model/presets/rates_documented.toml` were fitted on production rows, so those figures flatter. Which "
            "lines a fit used its `source` says.\n")
    return out


def context_parallel_section(steps, tables):
    chosen = [step for step in steps if step.table in CP_TABLES and step.run["cp"] > 1]
    out = "## Rows with context parallelism\n\n"
    rows = []
    for table in CP_TABLES:
        of_table = [step for step in chosen if step.table == table]
        if of_table:
            near = sum(abs(step.error) <= 0.12 for step in of_table) / len(of_table)
            rows.append([table, *error_cells([step.error for step in of_table]), percent(near, 0)])
    for name, some in (("**all**", chosen), ("of these, lines of odd number", odd(chosen))):
        near = sum(abs(step.error) <= 0.12 for step in some) / len(some)
        rows.append([name, *error_cells([step.error for step in some]), percent(near, 0)])
    out += table_text(["source", "rows", "median", "mean", "worst", "bias", "within 12 %"], rows)
    out += "\n" + missed_text(chosen) + "\n" + order_text(steps)
    ring = tables.get("cp_inference_meta", {"rows": []})["rows"]
    if ring:
        cells = []
        for metric, name in (("kernel_seconds", "kernels"), ("collective_seconds", "messages")):
            errors = [row["error"] for row in ring if row["metric"] == metric]
            cells.append(f"{len(errors)} {name}, median {percent(statistics.median(map(abs, errors)))}")
        out += f"Single ring steps of Meta's inference paper: {'; '.join(cells)}. {RING_MESSAGES}\n"
    out += crossover_text(steps)
    return out


def explained(step):
    return next((text for test, text in EXPLAINED if test(step)), None)


def missed_text(chosen):
    """Every row with CP beyond 12 %, by mechanism."""
    by_reason = collections.defaultdict(list)
    for step in chosen:
        if abs(step.error) > 0.12:
            by_reason[explained(step)].append(step)
    if None in by_reason:
        sys.exit("report.py: no mechanism is written down for " + ", ".join(f"{s.table}:{s.line}" for s in by_reason[None]))
    rows = []
    for reason, missed in sorted(by_reason.items(), key=lambda item: -max(abs(step.error) for step in item[1])):
        lines = collections.defaultdict(list)
        for step in missed:
            lines[step.table].append(f"{step.line} ({100 * step.error:+.0f} %)")
        rows.append(["; ".join(f"{table} {', '.join(found)}" for table, found in lines.items()), reason])
    return "Beyond 12 %, by line:\n\n" + table_text(["rows", "mechanism"], rows) if rows else ""


def order_text(steps):
    """Which of two recipes is faster, as measured and as predicted. Twice the same recipe (other containers, or measured again) has
    no order to predict."""
    same = collections.defaultdict(list)
    for step in steps:
        if step.table in CP_TABLES:
            run = step.run
            same[(step.table, step.group, run["model"], run["gpu"], run["gpus"], run["sequence"], run["precision"])].append(step)
    pairs, repeated = [], 0
    for group in same.values():
        for i, one in enumerate(group):
            for other in group[i + 1:]:
                measured = math.log(one.tokens_per_gpu_second / other.tokens_per_gpu_second)
                if abs(measured) <= math.log(1.05):
                    continue
                if (one.run["recipe"], one.predicted) == (other.run["recipe"], other.predicted):
                    repeated += 1
                    continue
                predicted = math.log(one.predicted_tokens / other.predicted_tokens)
                pairs.append(((measured > 0) == (predicted > 0), abs(measured), abs(predicted) > math.hypot(one.reach, other.reach)))
    if not pairs:
        return ""
    right = sum(well for well, _, _ in pairs)
    told = [well for well, _, apart in pairs if apart]
    wide = [well for well, measured, _ in pairs if measured > math.log(1.15)]
    out = (f"Order of recipes for one model, length and cluster in these tables: right for {right} of {len(pairs)} pairs that differ "
           f"by more than 5 % ({percent(right / len(pairs), 0)}), for {sum(wide)} of {len(wide)} that differ by more than 15 %")
    if told:
        out += (f"; for {sum(told)} of the {len(told)} that cpfit itself tells apart, by more than both 90 % intervals (root of "
                "the sum of squares: errors that both share count in full)")
    return out + f". {repeated} pairs of one and the same recipe are left out.\n"


def crossover_text(steps):
    """Where CP starts to win in NeMo's table: the shortest length whose best CP run beats the best run without it."""
    out = ""
    by_gpu = collections.defaultdict(lambda: collections.defaultdict(dict))
    for step in steps:
        if step.table != "nemo_long_sequence":
            continue
        with_cp = "without" not in step.group
        kept = by_gpu[step.group.split(" with")[0]][step.run["sequence"]].setdefault(with_cp, [0.0, 0.0])
        kept[0] = max(kept[0], step.tokens_per_gpu_second)
        kept[1] = max(kept[1], step.predicted_tokens)
    for gpu, lengths in sorted(by_gpu.items()):
        first = [None, None]
        for length in sorted(lengths):
            found = lengths[length]
            if True not in found or False not in found:
                continue
            for which in (0, 1):
                if first[which] is None and found[True][which] > 1.02 * found[False][which]:
                    first[which] = length
        if all(first):
            out += f"CP starts to win in NeMo's table on {gpu} at {first[0]:,} tokens as measured, {first[1]:,} as predicted.\n"
    return out


def memory_section(tables):
    names = {"peak_bytes": "allocated peak", "resident_bytes": "resident (static)", "reserved_bytes": "reserved"}
    rows = []
    for metric, name in names.items():
        for table, result in tables.items():
            figures = [row for row in result["rows"] if row["metric"] == metric]
            if not figures:
                continue
            runs = {run["line"]: run for run in result["runs"]}
            estimate = first_order.static_bytes if metric == "resident_bytes" else first_order.peak_bytes
            first = [estimate(runs[row["line"]]) / row["measured"] - 1 for row in figures]
            inside = sum(row["low"] <= row["measured"] <= row["high"] for row in figures) / len(figures)
            rows.append([f"{name}, {table}", *error_cells([row["error"] for row in figures]), percent(inside, 0),
                         percent(statistics.median(map(abs, first)), 0)])
    out = "## Memory\n\n" + table_text(["figure", "rows", "median", "mean", "worst", "bias", "in interval", "first order median"], rows)
    rows = []
    for table, result in tables.items():
        score = result["summary"].get("out_of_memory")
        if not score:
            continue
        told = [run for run in result["runs"] if run["died"] is not None]
        dead = [run for run in told if run["died"]]
        alive = [run for run in told if not run["died"]]
        dead_fit = sum(first_order.fits(run) for run in dead)
        alive_oom = sum(not first_order.fits(run) for run in alive)
        rows.append([table, score["rows"], percent(score["right"] / score["decided"]), percent(score["at_risk"] / score["rows"]),
                     f"{score['dead_called_fits']} of {len(dead)}", f"{score['live_called_oom']} of {len(alive)}",
                     percent(1 - (dead_fit + alive_oom) / len(told)), f"{dead_fit} of {len(dead)}"])
    out += "\nDid the run die of memory? `at_risk` is not decided; nothing is fitted to the outcome.\n\n"
    out += table_text(["source", "runs", "decided right", "at risk", "dead called fits", "live called oom", "first order right",
                       "first order: dead called fits"], rows)
    out += ("\nFirst order: 18 bytes a parameter (the optimizer's 12 over dp with ZeRO-1) and 34 s b h a layer and micro-batch in "
            "flight.\n")
    return out


def cause_section(steps):
    """Residuals by what the step waits for, as far as the parts tell."""
    rows = []
    for cause in CAUSES:
        for low, high in ((0.1, 0.3), (0.3, 1.01)) if cause != "compute" else ((0.0, 0.5), (0.5, 0.8), (0.8, 1.01)):
            chosen = [step for step in steps if low <= step.share(cause) < high]
            if len(chosen) >= 8:
                rows.append([f"{cause} {low:.0%} to {min(high, 1):.0%} of the step",
                             *error_cells([step.error for step in chosen]),
                             percent(sum(step.inside for step in chosen) / len(chosen), 0)])
    rows.append(["every rate inside its measured range",
                 *error_cells([step.error for step in steps if step.run["in_range"]]),
                 percent(statistics.mean(step.inside for step in steps if step.run["in_range"]), 0)])
    rows.append(["some rate outside its range",
                 *error_cells([step.error for step in steps if not step.run["in_range"]]),
                 percent(statistics.mean(step.inside for step in steps if not step.run["in_range"]), 0)])
    return ("## Errors by cause\n\nRuns grouped by the share of the predicted step that one part takes; `in 90 % interval` should be "
            "85 to 95 %.\n\n" + table_text(["part", "rows", "median", "mean", "worst", "bias", "in 90 % interval"], rows))


def kernel_section(tables):
    rows = []
    for table, result in tables.items():
        for metric in ("kernel_seconds", "collective_seconds"):
            figures = [row for row in result["rows"] if row["metric"] == metric]
            printed = [row for row in figures if not row["searched"]]
            supposed = [row for row in figures if row["searched"]]
            for chosen, name in ((printed, ""), (supposed, ", an input supposed")):
                if chosen:
                    inside = sum(row["low"] <= row["measured"] <= row["high"] for row in chosen) / len(chosen)
                    rows.append([f"{table}, {metric.split('_')[0]}{name}", *error_cells([row["error"] for row in chosen]),
                                 percent(inside, 0)])
    return ("## Kernels and collectives\n\nOperators alone, eager code of other libraries included. `an input supposed`: a head size or a "
            "length that contradicts the source's own scripts or other rows was read otherwise than printed, partly because of the "
            "times themselves; these rows prove nothing.\n\n" +
            table_text(["table", "rows", "median", "mean", "worst", "bias", "in interval"], rows))


def worst_section(steps):
    production = sorted((step for step in steps if step.table in PRODUCTION), key=lambda step: -abs(math.log1p(step.error)))[:10]
    healthy = sorted((step for step in steps if step.table == SWEEP and step.group == "healthy"),
                     key=lambda step: -abs(math.log1p(step.error)))[:10]
    out = "## The ten worst rows\n\n"
    missing = []
    for title, chosen in (("Production", production), ("Nanotron sweep, group healthy", healthy)):
        rows = []
        for step in chosen:
            why = explained(step)
            if why is None:
                missing.append(f"{step.table}:{step.line}")
            rows.append([f"{step.table}:{step.line}", f"{100 * step.error:+.0f} %", f"{step.run['model']}, {step.run['gpus']} GPUs",
                         f"tp {step.run['tp']} cp {step.run['cp']} pp {step.run['pp']} dp {step.run['dp']}", why or "?"])
        out += f"{title}:\n\n" + table_text(["row", "error", "what", "layout", "mechanism"], rows) + "\n"
    if missing:
        sys.exit("report.py: no mechanism is written down for " + ", ".join(missing) + ": see explanations.py")
    return out


def skipped_section(tables):
    reasons = collections.Counter(row["reason"] for result in tables.values() for row in result["skipped"])
    rows = [[reason, count] for reason, count in reasons.most_common() if count >= 10]
    rest = sum(count for count in reasons.values() if count < 10)
    return ("## Rows that are not predicted\n\n" + table_text(["reason", "rows"], rows) +
            f"\n{rest} more for reasons of fewer than ten rows each.\n")


def pictures(steps, tables):
    by_table = collections.defaultdict(list)
    for step in steps:
        if step.table in PRODUCTION:
            by_table[step.table].append((step.measured, step.predicted))
    sweep = collections.defaultdict(list)
    for step in steps:
        if step.table in (SWEEP, SINGLE_CLUSTER):
            sweep[step.group if step.table == SWEEP else "vTrain's cluster"].append((step.measured, step.predicted))
    memory = collections.defaultdict(list)
    for table, result in tables.items():
        for row in result["rows"]:
            if row["metric"] in ("peak_bytes", "resident_bytes", "reserved_bytes"):
                memory[f"{row['metric'].split('_')[0]}, {table.split('_')[0]}"].append((row["measured"] / 2**30, row["predicted"] / 2**30))
    return {
        "step_time.svg": scatter("Step time, production tables", "seconds", sorted(by_table.items())),
        "sweep.svg": scatter("Step time, sweeps of layouts", "seconds", sorted(sweep.items())),
        "memory.svg": scatter("Memory of a GPU", "GiB", sorted(memory.items())),
    }


def report(cpfit, folder):
    tables = validated(cpfit, folder)
    steps = [step for table, result in tables.items() for step in steps_of(table, result)]
    text = ("# What the predictions are worth\n\n"
            "Written by `tests/evidence/report.py CPFIT ../shared/published`; a test compares it with what the code says now. The "
            "tables are public measurements, named after their sources; they are not part of this repository. Errors are "
            "predicted/measured - 1; bias is their median. Tables: " + fingerprint(folder) + ".\n\n"
            "![step time](step_time.svg)\n\n")
    text += step_section(steps) + "\n" + context_parallel_section(steps, tables) + "\n"
    text += "![sweeps](sweep.svg)\n\n" + cause_section(steps) + "\n![memory](memory.svg)\n\n" + memory_section(tables) + "\n"
    text += kernel_section(tables) + "\n" + worst_section(steps) + skipped_section(tables)
    return text, pictures(steps, tables)


NUMBER = re.compile(r"-?\+?\d+(?:\.\d+)?")


def drift(old, new):
    """Lines that differ by more than the last printed digit: compilers round differently."""
    old_lines, new_lines = old.splitlines(), new.splitlines()
    moved = []
    if len(old_lines) != len(new_lines):
        moved.append(f"{len(old_lines)} lines before, {len(new_lines)} now")
    for before, now in zip(old_lines, new_lines):
        a, b = NUMBER.findall(before), NUMBER.findall(now)
        alike = NUMBER.sub("#", before) == NUMBER.sub("#", now) and len(a) == len(b)
        if alike:
            alike = all(abs(float(x) - float(y)) <= 1.001 * 10.0 ** -len(x.partition(".")[2]) for x, y in zip(a, b))
        if not alike:
            moved.append(f"- {before}\n+ {now}")
    return moved


def main():
    arguments = [one for one in sys.argv[1:] if one != "--check"]
    if len(arguments) != 2:
        sys.exit(__doc__)
    path = os.path.join(HERE, "REPORT.md")
    if "--check" in sys.argv:
        with open(path, encoding="utf-8") as file:
            before = file.read()
        if fingerprint(arguments[1]) not in before:
            waived("the tables are not those that REPORT.md was written from")
        moved = drift(before, report(*arguments)[0])
        for line in moved:
            print(line)
        if moved:
            sys.exit("report.py: the figures have moved; look at them, then write the report anew")
        print("the report says what the code says")
        return
    text, drawn = report(*arguments)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    for name, picture in drawn.items():
        with open(os.path.join(HERE, name), "w", encoding="utf-8") as file:
            file.write(picture)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
