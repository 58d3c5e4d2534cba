#include "sim/ask/hazards.h"

namespace cpfit::ask {

namespace {

bool context(const HazardCase& at) { return at.recipe.cp > 1; }
bool packed(const HazardCase& at) { return at.scenario.training.mask.kind == MaskKind::kDocuments; }
/// TransformerEngine does the attention.
bool engine(const HazardCase& at) { return at.rules.te_workspace && context(at); }
bool of(const HazardCase& at, std::string_view framework) { return at.rules.name.starts_with(framework); }

constexpr Hazard kHazards[] = {
    {"te_ring_gradients", HazardKind::kWrongGradients,
     "with the ring, dQ, dK and dV differed from those without context parallelism by up to 1.2 times their size, while the "
     "forward "
     "pass agreed",
     "reported and closed without a version named",
     "compare gradients, not the loss, of one step at cp=1 and here (cpfit verify)",
     "NVIDIA/TransformerEngine#1557, NVIDIA/Megatron-LM#1464, #1465",
     [](const HazardCase& at) { return engine(at) && at.recipe.cp_comm == CpComm::kP2p; }},
    {"hierarchy_without_sizes", HazardKind::kWrongGradients,
     "a2a+p2p without hierarchical sizes moves no keys or values at all: the job runs faster than the GPU's peak and is wrong",
     "Megatron-Bridge before the check was added", "write both sizes, as cpfit launch does; distrust a step above the peak",
     "NVIDIA-NeMo/Megatron-Bridge PR#2665",
     [](const HazardCase& at) { return engine(at) && at.recipe.cp_comm == CpComm::kA2aP2p; }},
    {"tail_padding", HazardKind::kLostTokens,
     "padding only behind the last document is taken for none: keys are dropped and rows stay zero, differently from run to run",
     "TransformerEngine before PR#3332", "pad every document to a multiple of 2 * cp and pass the padded lengths explicitly",
     "NVIDIA/TransformerEngine#3331", [](const HazardCase& at) { return engine(at) && packed(at); }},
    {"packed_backward_nan", HazardKind::kNan, "NaN in the backward pass of packed documents with context parallelism on Hopper",
     "cuDNN before 9.18", "use cuDNN 9.18 or later, or test odd document lengths first", "NVIDIA/TransformerEngine#2186",
     [](const HazardCase& at) { return engine(at) && packed(at) && at.scenario.cluster.gpu.generation == "hopper"; }},
    {"padding_attended", HazardKind::kWrongGradients, "padded tokens inside packed sequences took part in attention",
     "TransformerEngine before PR#1012", "change padded tokens and see that the loss stays", "NVIDIA/TransformerEngine PR#1012",
     [](const HazardCase& at) { return engine(at) && packed(at); }},
    {"packed_rotary_rows", HazardKind::kWrongGradients,
     "rotary frequencies of packed documents were read from wrong rows on the ranks of a ring", "Megatron-LM before PR#5243",
     "compare one step at cp=1 and here with two documents", "NVIDIA/Megatron-LM PR#5243, PR#4075",
     [](const HazardCase& at) { return engine(at) && packed(at) && of(at, "megatron"); }},
    {"gather_race", HazardKind::kWrongGradients, "a side stream read keys and values before the all-gather had brought them",
     "TransformerEngine before PR#2829, packed documents, seen at cp 8 and 128k tokens",
     "repeat a step: the result must be the same bits", "NVIDIA/TransformerEngine PR#2829",
     [](const HazardCase& at) { return engine(at) && packed(at) && at.recipe.cp_comm == CpComm::kAllGather; }},
    {"masked_rank", HazardKind::kNan,
     "a rank whose labels are all masked divides zero by zero: NaN where prompts fill a rank's share",
     "Megatron-LM as reported, with more than two CP ranks", "sum losses and counts over the ranks before dividing",
     "NVIDIA/Megatron-LM#1764", [](const HazardCase& at) { return of(at, "megatron") && at.recipe.cp > 2; }},
    {"replicated_gradients", HazardKind::kWrongGradients,
     "without state sharding the gradients come out smaller by the number of sequence ranks", "DeepSpeed before PR#5555",
     "use ZeRO stage 1 or higher, or compare the gradient norm with one rank", "deepspeedai/DeepSpeed PR#5555",
     [](const HazardCase& at) { return of(at, "deepspeed") && context(at) && at.recipe.state_sharding == StateSharding::kNone; }},
    {"rotation_ignored", HazardKind::kIgnored, "the choice of the rotation in torchtitan's configuration changes nothing",
     "torchtitan as reported", "expect the all-gather, whatever is written", "pytorch/torchtitan#3086",
     [](const HazardCase& at) { return of(at, "torchtitan") && context(at); }},
    {"balanced_unshard", HazardKind::kWrongGradients,
     "outputs put together again differ from those without context parallelism; with the balanced cut, illegal memory access in "
     "backward",
     "PyTorch, open when read", "invert the permutation that cut the sequence; compare with cp=1", "pytorch/pytorch#152261",
     [](const HazardCase& at) { return of(at, "torchtitan") && context(at); }},
    {"ring_ignores_documents", HazardKind::kWrongGradients,
     "a batch ring attends across documents: the loss nearly doubled in the report", "rings without variable lengths",
     "use the variable-length ring, or no packing", "axolotl-ai-cloud/axolotl#3608, PR#3867",
     [](const HazardCase& at) { return of(at, "ring-flash-attention") && packed(at) && context(at); }},
    {"double_ring_packing", HazardKind::kNan,
     "the double ring has no packed documents, and positions were lost: NaN gradient norm after some hundred steps",
     "InternEvo as reported", "do not pack with the double ring", "InternLM/InternEvo#346",
     [](const HazardCase& at) { return packed(at) && at.recipe.cp_comm == CpComm::kDoubleRing && context(at); }},
    {"one_queue", HazardKind::kIgnored,
     "with CUDA_DEVICE_MAX_CONNECTIONS=1 the overlapped gradient reduction overlaps nothing, and tp = cp = 1 does not need it",
     "Megatron-LM, before Blackwell", "unset the variable, as cpfit launch does", "NVIDIA/Megatron-LM#1468",
     [](const HazardCase& at) {
       return of(at, "megatron") && at.recipe.tp == 1 && at.recipe.cp == 1 && at.recipe.dp > 1 && at.recipe.overlap_grad_reduce;
     }},
    {"nominal_accumulation", HazardKind::kPrecision,
     "partial outputs and gradients of the ring's steps are added in 16 bits: the error bound grows with cp (cp * 2^-8)",
     "the rule set's own policy", "allow for it in a comparison: relative to the plain kernel's error, not absolute",
     "NVIDIA/TransformerEngine PR#821",
     [](const HazardCase& at) { return context(at) && at.recipe.cp_comm == CpComm::kP2p && !at.rules.accumulate_fp32; }},
};

}  // namespace

std::string_view name_of(HazardKind kind) {
  constexpr std::string_view kNames[] = {"wrong_gradients", "lost_tokens", "nan", "ignored_option", "precision"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::span<const Hazard> all_hazards() { return kHazards; }

std::vector<Hazard> hazards_of(const HazardCase& at) {
  std::vector<Hazard> rows;
  for (const Hazard& hazard : kHazards) {
    if (hazard.applies(at)) rows.push_back(hazard);
  }
  return rows;
}

}  // namespace cpfit::ask
