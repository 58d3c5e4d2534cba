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
     "gradients of groups with some of a node's GPUs go over one NIC here (read off the rows of tp 4; the mean of these rows was -27 % "
     "before, -13 % now). With head exchange these layouts took 0.4 to 0.6 s a step longer than with the ring alone, at 64k as at 80k "
     "tokens, where tp 1 and 4 gain by it: 13 in place of 19 GB/s for the gradients. NVIDIA/nccl#820 measured 12 and 19 on such nodes, "
     "12 where two groups had chosen the same NIC; which do is not known before."),
    (lambda s: s.table == "usp_paper" and s.run["cp"] > 1,
     "products of A100 and A800 in training: sources lie 10 % apart; the factor lies between them, USP's took longer. Eager merges of ring "
     "steps between short kernels take more beside them."),
    (lambda s: s.table == "burstengine" and s.run["group"] == "LoongTrain" and "double_ring" in s.run["recipe"],
     "LoongTrain's double ring as BurstEngine's authors ran it: half the speed that their own kernel benchmark gives the same ring "
     "(140 TFLOP/s at these lengths). It is no other window: INTRA_SIZE=1 of the benchmark's script is read by nobody, its log prints "
     "windows of a node, and the training's configuration has cp / 4, a node too (of its older file for 13B one window of all ranks, a "
     "flat ring, which would cost 6 % and not half)."),
    (lambda s: s.table == "burstengine" and s.run["gpus"] > 8 and "cp_comm=a2a" in s.run["recipe"],
     "head exchange over the nodes at the shortest lengths, a sixth of the step. Ulysses on 32 GPUs and 256k tokens is in the sheet twice, "
     "20 % apart, with the prediction between; how far Burst's own exchange reached is not printed."),
    (lambda s: s.table == "burstengine" and s.run["group"] == "BurstEngine",
     "one node, 13B with cp 2 and 4: products are half of these steps, and BMTrain's took less than the training factors of A100 say, "
     "which are a mean over sources that lie 10 % apart. Adam on the host is in: copies over PCIe, two GPUs to a switch."),
    (lambda s: s.table == "burstengine" and s.run["group"] == "DeepSpeed-Ulysses",
     "four fifths of DeepSpeed's optimizer lie on the host (ds.json, ratio 0.8), whose copies of 0.3 s for 7B are not counted."),
    (lambda s: s.table == "distflashattn" and s.run["sequence"] / s.run["cp"] <= 4096,
     "1,024 to 4,096 tokens a rank, eager: at 1,024 a layer takes 26 ms, where its kernels take 14. Hooks of FSDP and batches of sends "
     "from Python that the host does not finish before the GPU would explain it; what a call of that code takes was not measured, and the"
     " driver's launches alone are counted."),
    (lambda s: s.table == "dgxc_benchmarking" and s.run["pp"] == 3 and s.run["cp"] > 1,
     "a 405B cut to 21 layers, one to a chunk: pipeline messages are 6 % of the step, because the screen shows one share (0.7) of every "
     "interleaved message, a mean over the sources' layouts. In BF16, and in FP8 with the largest batch, 405B is within 4 %."),
    (lambda s: s.table == "dgxc_benchmarking" and s.run["model"].startswith("Llama-3-8B"),
     "containers before TransformerEngine 2 are taken with FlashAttention 2, later ones with cuDNN's attention. These ran within 1 % of "
     "the later ones all the same, whose rows are predicted within 3 %: theirs probably was cuDNN's too."),
    (lambda s: s.table == "megatron_bridge_performance" and s.run["pp"] == 16 and "nvfp4" in s.run["recipe"],
     "405B on GB200 over 16 stages of 8 chunks: at every fourth border a message of 67 MB leaves the NVLink domain over one NIC, 1.4 ms. "
     "The screen shows one share (0.7) of every interleaved message, 12 % of this step; the timeline hides them and is still 11 % too "
     "slow. Casts to four bits take what their traffic does; what fuses them is not known."),
    (lambda s: s.table == "nemo_long_sequence" and s.run["cp"] == 1,
     "the best run without CP: its layout is not printed and is searched. Runs of 128k tokens and more on tp 8 and 16 all took 1.3 times "
     "the prediction, shorter ones and those with CP did not. Full recompute would explain it: the same layouts with it, products "
     "overlapped, are within 6 % (128k -1, 256k -5, 512k and 1M -2 %; 256k on B200 -9). The search takes them without, at 90 % of the "
     "memory, because others' runs were that full (Llama 3's 405B)."),
    (lambda s: s.table == "hf_ultrascale_bench_sweep" and s.run["pp"] == 2 and 1 < s.run["tp"] and s.run["dp"] < 64 and s.error < -0.2,
     "the excess is one stall of the unrepaired pipeline for every micro-batch, but the step is less than twice its work, or has fewer "
     "micro-batches than stages: too little to be recognised as stalled."),
    (lambda s: s.table == "hf_ultrascale_bench_sweep" and s.run["verdict"] == "oom" and s.error < -0.3,
     "memory ran out and the allocator gave its cache back and took it anew, layer by layer: 77 to 116 GiB would be reserved with what "
     "the collectives' stream holds, 46 to 67 were. A layer took 0.1 to 0.3 s longer; what one retry takes three rows do not tell."),
    (lambda s: s.table == "hf_ultrascale_bench_sweep" and s.run["tp"] >= 16,
     "tensor parallelism over two to four of 64 nodes: large messages are up to twice as slow there as in jobs of two and four nodes "
     "alone, other rows of the same job size are not."),
    (lambda s: s.table == "hf_ultrascale_bench_sweep" and s.run["dp"] >= 32,
     "gradients of 32 to 128 ranks in the slow state of the network: the latency of a bucket is taken from one measured collective of "
     "256 MiB over all GPUs, and is half to twice that."),
    (lambda s: s.table == "hf_ultrascale_bench_sweep",
     "hosts that wait for others, several ways: rows of the same layout with another micro-batch are within 15 %."),
]

RING_MESSAGES = ("Its messages of 13 and 16 MB went at 24 to 26 GB/s, half of a NIC's 50: NCCL gives a peer two channels of 14 GB/s "
                 "between nodes.")
