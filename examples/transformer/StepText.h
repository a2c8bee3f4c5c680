//===- StepText.h - The logical step as MLIR text ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_STEPTEXT_H
#define ZERO_EXAMPLES_TRANSFORMER_STEPTEXT_H

#include "examples/transformer/Parameters.h"
#include "examples/transformer/Precision.h"

#include <string>
#include <vector>

namespace transformer {

/// What is computed for |parameters| over |ranks| ranks, for zero-compile: the
/// mean of gradients over backwards and ranks, summed in f32, clipped to
/// norm 1, then AdamW with decay for matrices only. Gradients arrive in
/// |precision|, those in f16 times a loss scale.
std::string stepText(const std::vector<Parameter> &parameters, int ranks,
                     Precision precision);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_STEPTEXT_H
