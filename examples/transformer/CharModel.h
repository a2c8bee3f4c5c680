//===- CharModel.h - char_model as a function -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_CHARMODEL_H
#define ZERO_EXAMPLES_TRANSFORMER_CHARMODEL_H

namespace transformer {

/// Runs char_model and returns its exit code.
int runTool(int argc, char **argv);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_CHARMODEL_H
