"""What is behind the worst rows, by mechanism: (whether it is about a row, in words). The first that applies is printed.

A mechanism named here is not in the model, for the reason given; none of it is a factor on a prediction.
"""


def _framework(step, name):
    return f"framework={name}" in step.run["recipe"]


EXPLAINED = [
    (lambda s: s.table == "megatron_papers" and s.run["state_sharding"] == "zero3",
     "DeepSpeed of 2021 gathers each parameter tensor by itself and waits: a ring over hundreds of ranks pays its steps thousands "
     "of times. cpfit's ZeRO-3 gathers a layer ahead and hides it, as FSDP2 does."),
    (lambda s: s.table == "torchtitan" and s.run["cp"] > 1,
     "PyTorch's context parallelism of 2024 was slower than its exchange explains, the more the larger cp: its ring was not "
     "balanced at the time or its steps were not overlapped; the source does not say which. The schedule (vpp) is not printed "
     "for 405B."),
    (lambda s: s.table == "torchtitan" and s.run["pp"] > 1,
     "405B over 8 stages: neither the schedule's chunks nor whether FSDP gathered weights again for every micro-batch is "
     "printed; the fastest legal schedule is assumed."),
    (lambda s: s.table == "torchtitan" and s.low_precision,
     "torchao's float8 casts in passes of its own wherever compilation is split by a collective, and its row-wise products (as slow "
     "as bf16 in the source) ran on a kernel that no table rates; the bf16 rows beside them are off by 8 and 21 %."),
    (lambda s: s.table == "torchtitan" and s.run["tp"] > 1,
     "eager sequence parallelism at tp 8 on one node: the source's own asynchronous-TP row is 10 % faster, its overlap is not "
     "known for this version."),
    (lambda s: s.table == "usp_paper" and s.run["tp"] == 2 and s.run["cp"] == 8,
     "in the source these layouts take 1.3 times as long as tp 1, 4 and 8 beside them: close to out of memory, or placed across "
     "nodes in a way that is not printed."),
    (lambda s: s.table == "nemo_long_sequence" and s.run["cp"] == 1,
     "the best run without CP: its layout is not printed and is searched; the source's authors may have used pipeline or "
     "recompute settings that cpfit's ledger calls out of memory."),
    (lambda s: s.table == "simumax_b200_measured" and s.run["tp"] == 8,
     "two steady iterations of a truncated model without overlap: collectives of tp 8 are a quarter of the step."),
    (lambda s: s.table == "hf_ultrascale_bench_sweep",
     "a run after the repair that stalls all the same: where the sweep has the layout with another micro-batch, that one is mostly "
     "5 to 50 times faster and predicted within 20 %. Nothing in the recipe foresees it."),
]
