//===- Trace.cpp - The calls a step makes, one line each ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Trace.h"

using namespace zero::test;

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
