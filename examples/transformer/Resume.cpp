//===- Resume.cpp - Training goes on from a checkpoint --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/Resume.h"

#include "examples/transformer/Check.h"

#include <algorithm>

namespace transformer {

/// The elements of one entry of the state; counters are f64, and all else of
/// this model is f32.
template <typename Element>
static std::vector<Element> readEntry(zero_rt_step *step, int64_t entry,
                                      int64_t elements, int rank) {
  std::vector<Element> values(static_cast<size_t>(elements));
  check(zero_rt_step_state_read(step, entry, values.data(),
                                elements * int64_t(sizeof(Element))),
        "zero_rt_step_state_read", rank);
  return values;
}

int64_t resume(zero_rt_step *step, const std::string &folder,
               const std::vector<int32_t> &ids, Reference *reference,
               int rank) {
  int64_t number = 0, count = 0;
  check(zero_rt_step_load(step, folder.c_str(), &number), "zero_rt_step_load",
        rank);
  if (!reference)
    return number;
  check(zero_rt_step_state_count(step, &count), "zero_rt_step_state_count",
        rank);
  for (int64_t i = 0; i < count; ++i) {
    zero_rt_state_entry entry = {};
    entry.struct_size = sizeof(entry);
    check(zero_rt_step_state_describe(step, i, &entry),
          "zero_rt_step_state_describe", rank);
    if (entry.parameter >= 0) {
      auto found = std::find(ids.begin(), ids.end(), entry.parameter);
      reference->restore(
          int32_t(found - ids.begin()), entry.role, entry.begin,
          readEntry<float>(step, i, entry.end - entry.begin, rank));
    } else if (entry.dtype == ZERO_RT_F64) {
      reference->restoreCounter(entry.role,
                                readEntry<double>(step, i, 1, rank)[0]);
    }
  }
  reference->setSteps(number);
  return number;
}

} // namespace transformer
