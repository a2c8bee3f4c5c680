//===- Script.cpp - What a caller of a step calls -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Script.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace zero;
using namespace zero::test;

Script
zero::test::makeScript(const std::vector<std::vector<std::string>> &backwards,
                       zrt::Event end, const std::set<size_t> &hinted) {
  Script script;
  for (auto [b, arrivals] : llvm::enumerate(backwards)) {
    if (!script.empty())
      script.push_back({zrt::Event::accumulate, ""});
    script.push_back(
        {hinted.count(b) ? zrt::Event::begin_last : zrt::Event::begin, ""});
    for (const std::string &parameter : arrivals)
      script.push_back({zrt::Event::arrive, parameter});
  }
  script.push_back({end, ""});
  return script;
}

/// The calls of a pass that uses |unit|, whose gradients are in |arrivals|.
static Script useUnit(const std::string &unit, const Script &arrivals) {
  Script used = {{zrt::Event::unshard, unit}};
  llvm::copy_if(arrivals, std::back_inserter(used), [&](const Action &arrival) {
    return llvm::StringRef(arrival.name).starts_with(unit);
  });
  used.push_back({zrt::Event::reshard, unit});
  return used;
}

Script zero::test::addUnits(const Script &script) {
  Script result, arrivals;
  auto use = [&](const char *unit) {
    llvm::append_range(result, useUnit(unit, arrivals));
  };
  for (const Action &action : script) {
    if (action.event == zrt::Event::arrive) {
      arrivals.push_back(action);
      continue;
    }
    if (!arrivals.empty()) { // the backward pass is over
      use("fc2");
      use("fc1");
      arrivals.clear();
    }
    if (action.event == zrt::Event::begin ||
        action.event == zrt::Event::begin_last) { // the forward pass is over
      use("fc1");
      use("fc2");
    }
    result.push_back(action);
  }
  return result;
}

Script zero::test::operator+(Script first, const Script &second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}
