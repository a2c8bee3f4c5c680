//===- Progress.cpp - What training prints while it runs ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Progress.h"

#include <unistd.h>

#include <cstdio>

namespace transformer {

Progress::Progress(int64_t steps, int64_t tokensPerStep)
    : steps(steps), tokensPerStep(tokensPerStep),
      terminal(isatty(STDOUT_FILENO)), start(std::chrono::steady_clock::now()) {
}

double Progress::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
      .count();
}

void Progress::begin(int64_t step) {
  first = step;
  if (step)
    std::printf("resumed behind step %lld\n", (long long)step);
}

void Progress::report(int64_t step, double loss, double norm) {
  bool tenth = step * 10 / steps != (step - 1) * 10 / steps;
  if (!terminal && !tenth && step != first + 1)
    return;
  double past = seconds();
  double made = double(step - first);
  double left = past / made * double(steps - step);
  std::printf("%sstep %lld/%lld  loss %.3f  gradient norm %.3f  "
              "%.0f tokens/s  %.0f s left%s",
              terminal ? "\r" : "", (long long)step, (long long)steps, loss,
              norm, made * double(tokensPerStep) / past, left,
              terminal && step != steps ? "   " : "\n");
  std::fflush(stdout);
}

} // namespace transformer
