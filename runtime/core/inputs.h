//===- inputs.h - Inputs of apply -------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Inputs that updates depend on are checked: each is finite, or also positive,
// and all ranks pass the same. No message is sent for this. A rank adds numbers
// to its count of missing gradients, and their sum over the ranks is 0 if all
// inputs are right.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_INPUTS_H
#define ZERO_RT_CORE_INPUTS_H

#include "core/refusal_reports.h"

#include <vector>

namespace zero_rt {

struct Step;

/// The inputs of this rank that fail their checks.
std::vector<BadInput> findBadInputs(const Step &step);

/// A digest of the inputs that all ranks must pass alike.
uint64_t digestInputs(const Step &step);

/// What this rank adds for its inputs. The sum over the ranks is 0 if all
/// have the same, and almost never if they do not: the addends are multiples of
/// digests. It may be negative. Its magnitude is less than 2^40, so that sums
/// with counts are exact.
int64_t countDifferentInputs(const Step &step);

/// The inputs that all ranks must pass alike.
std::vector<int32_t> listCommonInputs(const Step &step);

} // namespace zero_rt

#endif // ZERO_RT_CORE_INPUTS_H
