"""What a sheet of paper says: step time and memory to first order, for comparison with cpfit.

Written from the textbook formulas alone; shares nothing with cpfit's own model.
"""

MFU = 0.40  # of the dense peak of the number format: a usual planning figure


def step_seconds(run):
    """6 N D at a fixed utilisation (Kaplan et al. 2020; recomputation does not count as useful work)."""
    tokens = run["sequence"] * run["global_batch"]
    return 6 * run["parameters"] * tokens / (run["gpus"] * run["peak_flops_per_second"] * MFU)


def static_bytes(run):
    """18 bytes a parameter (bf16 weight, fp32 gradient, master and two moments); the 12 of the optimizer over dp with ZeRO-1,
    everything with ZeRO-3."""
    share = run["parameters"] / (run["tp"] * run["pp"])
    data = run["dp"] * run["cp"]
    if run["state_sharding"] == "zero3":
        return 18 * share / data
    return (6 + 12 / (1 if run["state_sharding"] == "none" else data)) * share


def activation_bytes(run):
    """34 s b h a layer (Korthikanti et al. 2022, flash attention: no scores), over tp and cp; the first pipeline stage keeps
    the micro-batches of all stages, so layers are not divided by pp. 2 s b h when everything is recomputed."""
    layer = run["sequence"] * run["micro_batch"] * run["hidden"] / run["cp"]
    if run["recompute"] == "full":
        return 2 * layer * run["layers"] / run["tp"]
    micro_batches = run["global_batch"] / (run["dp"] * run["micro_batch"])
    in_flight = min(micro_batches, run["pp"])
    return 34 * layer / run["tp"] * run["layers"] / run["pp"] * in_flight


def peak_bytes(run):
    return static_bytes(run) + activation_bytes(run)


def fits(run):
    return peak_bytes(run) <= run["gpu_memory_bytes"]
