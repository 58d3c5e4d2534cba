// Reads the architecture out of a Hugging Face config.json: the text a model is published with. Defaults that a family's own
// configuration class sets when a key is absent (tied embeddings, biases, window patterns) are followed family by family; a
// family that is not known for certain is refused rather than guessed. In multimodal files the text model is read.
// Source: the configuration classes of huggingface/transformers, and of InternLM2 and ChatGLM (remote code).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/quantity/problem.h"
#include "model/transformer/architecture.h"

namespace cpfit {

/// `where` names the text in messages, e.g. the path. The architecture's name is `where` until the caller knows a better one.
/// Problems: malformed JSON (line and column), model types that are unknown or not dense decoders (mixture of experts, state
/// space, encoders), needed fields that are missing, values out of range or of the wrong type.
[[nodiscard]] Outcome<Architecture> read_config_json(std::string_view text, const std::string& where);

/// Reads the file; one that cannot be read is a Problem (a person's input).
[[nodiscard]] Outcome<Architecture> load_config_json(const std::string& path);

/// Values of "model_type" that read_config_json understands.
[[nodiscard]] std::vector<std::string> known_model_types();

}  // namespace cpfit
