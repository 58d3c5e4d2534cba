// Private to calibrate/read: the adapters, one per family of published tables. Each files or skips exactly one row.
#pragma once

#include "calibrate/read/published_run.h"

namespace cpfit::published {

// published_megatron.cpp
void read_megatron_functional_test(const Row& row, Reading& reading);
void read_simumax(const Row& row, Reading& reading);
void read_kwai(const Row& row, Reading& reading);
void read_megatron_paper(const Row& row, Reading& reading);
void read_model_zoo(const Row& row, Reading& reading);

// published_nemo.cpp
void read_nemo_long_sequence(const Row& row, Reading& reading);
void read_nemo_summary(const Row& row, Reading& reading);
void read_dgxc(const Row& row, Reading& reading);
void read_megatron_bridge(const Row& row, Reading& reading);

// published_nanotron.cpp
void read_nanotron_sweep(const Row& row, Reading& reading);

// published_sweeps.cpp
void read_playbook_figure(const Row& row, Reading& reading);
void read_vtrain(const Row& row, Reading& reading);
void read_internevo(const Row& row, Reading& reading);
void read_llm_foundry(const Row& row, Reading& reading);

// published_context.cpp
void read_torchtitan(const Row& row, Reading& reading);
void read_llama3_table(const Row& row, Reading& reading);
void read_usp_paper(const Row& row, Reading& reading);
void read_distflashattn(const Row& row, Reading& reading);
void read_burstengine(const Row& row, Reading& reading);
void read_fpdt(const Row& row, Reading& reading);
void read_ring_attention_paper(const Row& row, Reading& reading);
void read_misc_training(const Row& row, Reading& reading);
void read_galvatron(const Row& row, Reading& reading);
void read_architecture(const Row& row, Reading& reading);  // a join table of model shapes: nothing was measured

// published_common.cpp
void read_common_training(const Row& row, Reading& reading);

// published_operators.cpp: one attention operator over the ranks of a context-parallel group
void read_usp_operator(const Row& row, Reading& reading);
void read_ring_flash_operator(const Row& row, Reading& reading);
void read_burst_operator(const Row& row, Reading& reading);
void read_burstengine_operator(const Row& row, Reading& reading);
void read_prefill_inference(const Row& row, Reading& reading);

}  // namespace cpfit::published
