//===- Resume.h - Training goes on from a checkpoint ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_RESUME_H
#define ZERO_EXAMPLES_TRANSFORMER_RESUME_H

#include "examples/transformer/Reference.h"

#include "zero_rt/step.h"

#include <string>
#include <vector>

namespace transformer {

/// Loads the checkpoint in |folder|. All ranks make this call. |ids| has the
/// number of each of the model's parameters in the step, or -1. The elements
/// that this rank holds become those of |reference|, too, which may be null.
/// Returns the number of steps that were made.
int64_t resume(zero_rt_step *step, const std::string &folder,
               const std::vector<int32_t> &ids, Reference *reference, int rank);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_RESUME_H
