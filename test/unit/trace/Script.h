//===- Script.h - What a caller of a step calls ------------------*- C++
//-*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_SCRIPT_H
#define ZERO_TEST_UNIT_TRACE_SCRIPT_H

#include "dialect/zrt/ZrtDialect.h"

#include <set>
#include <string>
#include <vector>

namespace zero::test {

/// One call of the caller's; |name|: the parameter that arrives, or the unit.
struct Action {
  zrt::Event event;
  std::string name;
};
using Script = std::vector<Action>;

/// Backward passes in which the gradients of |arrivals| come, in that order;
/// the last one ends with |end|. Those in |hinted| are begun as the last.
Script makeScript(const std::vector<std::vector<std::string>> &backwards,
                  zrt::Event end, const std::set<size_t> &hinted = {});

/// |script| with a forward pass before each backward pass, in which the units
/// of quickstart's layers are used one after the other.
Script addUnits(const Script &script);

Script operator+(Script first, const Script &second);

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_SCRIPT_H
