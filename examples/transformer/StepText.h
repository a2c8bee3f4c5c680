//===- StepText.h - The logical step as MLIR text ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_STEPTEXT_H
#define ZERO_EXAMPLES_TRANSFORMER_STEPTEXT_H

#include "examples/transformer/Mesh.h"
#include "examples/transformer/Parameters.h"
#include "examples/transformer/Precision.h"

#include <string>

namespace transformer {

/// What a stage sends to the next one.
std::string activationName(int64_t stage);

/// The step of a model of |shape| on |mesh|, for zero-compile: the mean of
/// gradients over backward passes and copies, summed in f32, clipped to norm 1,
/// then AdamW with decay for matrices only. Gradients arrive in |precision|,
/// those in f16 times a loss scale. Stages of the pipeline send f32. With
/// |units| each layer is a unit, as stage 3 of ZeRO wants it.
std::string stepText(const ModelShape &shape, const Mesh &mesh,
                     Precision precision, bool units = false);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_STEPTEXT_H
