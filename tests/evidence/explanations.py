"""What is behind the worst rows, by mechanism: (whether it is about a row, in words). The first that applies is printed.

A mechanism named here is not in the model, for the reason given; none of it is a factor on a prediction.
"""


def _framework(step, name):
    return f"framework={name}" in step.run["recipe"]


EXPLAINED = [
    (lambda s: s.table == "megatron_papers" and s.run["state_sharding"] == "zero3",
     "DeepSpeed of 2021 gathers each parameter tensor by itself and waits, which is modelled (rule set deepspeed-2021). At 530B some "
     "40 s a step are missing whatever the number of ranks; tensors of 3.4 GB that the allocator has to make room for are a guess."),
    (lambda s: s.table == "torchtitan" and s.run["cp"] > 1,
     "PyTorch's context parallelism of 2024, compiled: its exchanges hide behind nothing, which is modelled and is most of what 405B "
     "lacked across nodes. At cp 4 inside a node exchanges are short; there attention took 1.4 times as long as at cp 2 beside it. "
     "Why is not known."),
    (lambda s: s.table == "torchtitan" and s.run["pp"] > 1,
     "405B over 8 stages: the number of micro-batches is not printed; the default of the configuration is taken, one for each stage."),
    (lambda s: s.table == "torchtitan" and "overlap_tp=true" in s.run["recipe"],
     "asynchronous tensor parallelism saved 9 % in the source, where hidden gathers and scatters alone would save 20: products cut into "
     "eight pieces, some of a few columns, lose what is not counted."),
    (lambda s: s.table == "torchtitan" and s.low_precision,
     "torchao's float8 casts in passes of its own wherever compilation is split, and gathers in eight bits."),
    (lambda s: s.table == "usp_paper" and s.run["tp"] == 2 and s.run["cp"] == 8,
     "in the source these layouts take 1.1 to 1.5 times as long as tp 1, 4 and 8 beside them, the less the longer the sequence, and "
     "head exchanges longer than the ring alone. A gradient reduction at 15 GB/s would explain them and half of what tp 4 lacks; no "
     "share of the eight links gives that rate to groups of every second GPU."),
    (lambda s: s.table == "burstengine" and s.run["group"] == "LoongTrain" and "double_ring" in s.run["recipe"],
     "LoongTrain's double ring as BurstEngine's authors ran it: half the speed that their own kernel benchmark gives the same ring "
     "(140 TFLOP/s at these lengths). Its script sets INTRA_SIZE=1; what that does to the windows is not known."),
    (lambda s: s.table == "burstengine" and s.run["group"] == "Megatron CP",
     "one flat ring over four nodes sends 20 GB/s from node to node, in the source's kernel benchmark as in its training runs: NCCL "
     "may spread a pair's two channels over two 100 Gb/s NICs. cpfit routes a hop over one NIC."),
    (lambda s: s.table == "nemo_long_sequence" and s.run["cp"] == 1,
     "the best run without CP: its layout is not printed and is searched. Runs of 128k tokens and more on tp 8 and 16 all took 1.3 times "
     "the prediction, shorter ones and those with CP did not: full recompute or attention over keys beyond the cache would explain it."),
    (lambda s: s.table == "simumax_b200_measured" and s.run["tp"] == 8,
     "two steady iterations of a truncated model without overlap: collectives of tp 8 are a quarter of the step."),
    (lambda s: s.table == "hf_ultrascale_bench_sweep",
     "a run after the repair that stalls all the same: where the sweep has the layout with another micro-batch, that one is mostly "
     "5 to 50 times faster and predicted within 20 %. Nothing in the recipe foresees it."),
]
