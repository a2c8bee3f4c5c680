//===- CharModel.h - char_model as a function -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_CHARMODEL_H
#define ZERO_EXAMPLES_TRANSFORMER_CHARMODEL_H

#include "examples/transformer/Launch.h"

namespace transformer {

/// Runs char_model and returns its exit code. |launch| is the rank of this
/// process where they are no threads; null: --launched finds it.
int runTool(int argc, char **argv, const Launch *launch = nullptr);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_CHARMODEL_H
