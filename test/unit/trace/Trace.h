//===- Trace.h - The calls a step makes, one line each ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_TRACE_H
#define ZERO_TEST_UNIT_TRACE_TRACE_H

#include <string>
#include <vector>

namespace zero::test {

/// Calls with their operands, in the words of codegen/validate/CallText.h.
/// Recorder and Walker come to it from opposite ends: one from the tables of a
/// compiled library, the other from the IR.
using Trace = std::vector<std::string>;

/// Where |recorded| leaves |expected|; empty if it does not.
std::string firstDifference(const Trace &recorded, const Trace &expected);

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_TRACE_H
