//===- LossCurve.cpp - The loss over the steps, as lines of text ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/LossCurve.h"

#include <algorithm>
#include <cstdio>

namespace transformer {

std::string lossCurve(const std::vector<double> &losses, size_t first) {
  const size_t lines = std::min<size_t>(10, losses.size());
  double top =
      losses.empty() ? 1.0 : *std::max_element(losses.begin(), losses.end());
  std::string text;
  for (size_t line = 0; line < lines; ++line) {
    size_t begin = losses.size() * line / lines;
    size_t end = losses.size() * (line + 1) / lines;
    double mean = 0;
    for (size_t i = begin; i < end; ++i)
      mean += losses[i] / double(end - begin);
    char label[64];
    std::snprintf(label, sizeof(label), "  steps %5zu-%-5zu %.3f ",
                  first + begin + 1, first + end, mean);
    // A loss that is not finite has no length.
    double share = mean / top * 50.0;
    text += label;
    text += std::string(share >= 0 && share <= 50 ? size_t(share) : 0, '#');
    text += '\n';
  }
  return text;
}

} // namespace transformer
