//===- Trace.cpp - The calls a step makes, one line each ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

#include "llvm/ADT/StringExtras.h"

using namespace zero::test;

std::string zero::test::callText(const std::string &call,
                                 const std::vector<std::string> &operands) {
  return call + "(" + llvm::join(operands, ", ") + ")";
}

std::string zero::test::segmentText(int64_t begin, int64_t end,
                                    const std::string &slot) {
  return std::to_string(begin) + ".." + std::to_string(end) + " with " + slot;
}

std::string zero::test::slotText(const std::string &name, int64_t index) {
  return name + "[" + std::to_string(index) + "]";
}

std::string zero::test::streamText(int64_t stream) {
  return "stream " + std::to_string(stream);
}

std::string zero::test::firstDifference(const Trace &recorded,
                                        const Trace &expected) {
  size_t i = 0;
  while (i < recorded.size() && i < expected.size() &&
         recorded[i] == expected[i])
    ++i;
  if (i == recorded.size() && i == expected.size())
    return "";
  auto at = [&](const Trace &trace) {
    return i < trace.size() ? trace[i] : std::string("the end");
  };
  return "call " + std::to_string(i) + " is " + at(recorded) + ", expected " +
         at(expected) + ", after " + (i ? expected[i - 1] : "the beginning");
}
