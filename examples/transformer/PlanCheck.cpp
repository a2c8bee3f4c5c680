//===- PlanCheck.cpp - The plan's numbers against the runtime's -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/PlanCheck.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <vector>

namespace transformer {

/// The number behind |keys|, each looked for behind the one before. Enough for
/// a file with fixed nesting, and not a JSON parser. -1 if there is none.
static int64_t numberAt(const std::string &json,
                        const std::vector<std::string> &keys) {
  size_t at = 0;
  for (const std::string &key : keys) {
    at = json.find("\"" + key + "\":", at);
    if (at == std::string::npos)
      return -1;
    at += key.size() + 3;
  }
  return std::strtoll(json.c_str() + at, nullptr, 10);
}

static bool compare(const char *what, int64_t planned, int64_t counted) {
  std::printf("  %-28s %14lld %14lld%s\n", what, (long long)planned,
              (long long)counted, planned == counted ? "" : "  differs");
  return planned == counted;
}

bool comparePlan(const Options &options, int64_t steps,
                 const zero_rt_counters &counters) {
  std::string path = options.library;
  path.resize(path.rfind('/') + 1); // npos + 1 is 0
  path += "train.plan.json";
  std::ifstream file(path);
  std::string json{std::istreambuf_iterator<char>(file), {}};
  if (json.empty()) {
    std::printf("\nno plan at '%s' to compare with\n", path.c_str());
    return true;
  }

  auto traffic = [&](const char *key) {
    auto in = [&](const char *phase) {
      return numberAt(json, {"traffic_per_rank", phase, key});
    };
    // Only a step at stage 3 has units. They are gathered forward and backward.
    int64_t units =
        2 * options.backwards * std::max<int64_t>(0, in("unshard_all"));
    return steps *
           (in("first_backward") + units +
            (options.backwards - 1) * in("each_later_backward") + in("apply"));
  };
  // The counters are peaks, each role's own. The first of several backward
  // passes ends like a single one: its reduced gradient counts as a gradient
  // until another backward pass makes it the accumulator.
  auto bytes = [&](const char *space, const char *role) {
    auto in = [&](const char *phase) {
      return numberAt(json, {"bytes_per_rank", phase, space, role});
    };
    int64_t one = in("one_backward");
    return options.backwards == 1 ? one
                                  : std::max(one, in("several_backwards"));
  };
  std::printf(
      "\nrank 0: peaks, and all steps         planned        counted\n");
  bool same = true;
  const char *spaces[] = {"device", "host"};
  const char *roles[] = {"parameter", "gradient", "accumulator", "state"};
  for (int space = 0; space < 2; ++space)
    for (int role = 0; role < 4; ++role) {
      int64_t planned = bytes(spaces[space], roles[role]);
      int64_t counted = counters.bytes_peak[space][role];
      if (planned == 0 && counted == 0)
        continue;
      std::string what = std::string(roles[role]) + " bytes, " + spaces[space];
      same &= compare(what.c_str(), planned, counted);
    }
  same &= compare("reduce-scatters", traffic("reduce_scatters"),
                  counters.reduce_scatters);
  same &= compare("all-reduces", traffic("all_reduces"), counters.all_reduces);
  same &= compare("all-gathers", traffic("all_gathers"), counters.all_gathers);
  same &= compare("all-reduces of scalars", traffic("scalar_all_reduces"),
                  counters.scalar_all_reduces);
  same &= compare("bytes sent", traffic("bytes_sent"), counters.bytes_sent);
  same &= compare("bytes to and from the host",
                  traffic("bytes_copied_between_spaces"),
                  counters.bytes_copied_between_spaces);
  return same;
}

} // namespace transformer
