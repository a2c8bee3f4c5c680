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

/// A call with its operands, by name where the library has names for them.
/// Recorder and Walker come to it from opposite ends: one from the tables of a
/// compiled library, the other from the IR.
using Trace = std::vector<std::string>;

std::string callText(const std::string &call,
                     const std::vector<std::string> &operands);

/// [begin, end) of a segment, and where its scalars are.
std::string segmentText(int64_t begin, int64_t end, const std::string &slot);

/// Slot |index| of the slots named |name|.
std::string slotText(const std::string &name, int64_t index);

/// "stream 1".
std::string streamText(int64_t stream);

/// Where |recorded| leaves |expected|; empty if it does not.
std::string firstDifference(const Trace &recorded, const Trace &expected);

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_TRACE_H
