//===- LossCurve.h - The loss over the steps, as lines of text --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_EXAMPLES_TRANSFORMER_LOSSCURVE_H
#define ZERO_EXAMPLES_TRANSFORMER_LOSSCURVE_H

#include <string>
#include <vector>

namespace transformer {

/// A bar for each tenth of the steps, as long as its mean loss. |first| steps
/// were made before.
std::string lossCurve(const std::vector<double> &losses, size_t first = 0);

} // namespace transformer

#endif // ZERO_EXAMPLES_TRANSFORMER_LOSSCURVE_H
