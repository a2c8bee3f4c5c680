//===- inputs.cpp - Inputs of apply ---------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/inputs.h"

#include "core/numeric.h"
#include "core/step.h"

#include <cmath>

using namespace zero_rt;

std::vector<BadInput> zero_rt::findBadInputs(const Step &step) {
  std::vector<BadInput> bad;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    int64_t check = step.library->inputs[i].check;
    double value = step.inputs[i];
    if ((check != ZERO_RT_INPUT_FREE && !std::isfinite(value)) ||
        (check == ZERO_RT_INPUT_POSITIVE && value <= 0))
      bad.push_back({int32_t(i), 0, value});
  }
  return bad;
}

// Ranks that add numbers of their own over some axes are not compared over the
// others, nor are numbers that are only reported.
std::vector<int32_t> zero_rt::listCommonInputs(const Step &step) {
  std::vector<int32_t> common;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const zero_rt_input_row &row = step.library->inputs[i];
    if (row.over < 0 && row.check != ZERO_RT_INPUT_FREE)
      common.push_back(int32_t(i));
  }
  return common;
}

uint64_t zero_rt::digestInputs(const Step &step) {
  uint64_t digest = 0;
  for (int32_t i : listCommonInputs(step)) {
    // The mixing function of SplitMix64; -0 and 0 are one number.
    digest +=
        bitCast<uint64_t>(step.inputs[size_t(i)] + 0.0) + 0x9E3779B97F4A7C15;
    digest = (digest ^ (digest >> 30)) * 0xBF58476D1CE4E5B9;
    digest = (digest ^ (digest >> 27)) * 0x94D049BB133111EB;
    digest ^= digest >> 31;
  }
  return digest;
}

int64_t zero_rt::countDifferentInputs(const Step &step) {
  constexpr uint64_t most = uint64_t(1) << 40;
  auto ranks = uint64_t(step.runtime->ranks);
  auto addend = int64_t(digestInputs(step) % (most / ranks));
  return step.runtime->rank == 0 ? int64_t(ranks - 1) * addend : -addend;
}
