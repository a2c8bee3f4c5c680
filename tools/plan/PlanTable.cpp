//===- PlanTable.cpp - The plan of a compiled step as tables --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/plan/PlanTable.h"

#include "dialect/zero/CountOf.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace zero;
using llvm::StringRef;
namespace json = llvm::json;

std::string zero::formatBytes(int64_t bytes) {
  const char *unit = "B";
  double count = static_cast<double>(bytes);
  for (const char *next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (count < 1024)
      break;
    count /= 1024;
    unit = next;
  }
  if (bytes < 1024)
    return llvm::formatv("{0} B", bytes).str();
  return llvm::formatv("{0:f2} {1}", count, unit).str();
}

std::string zero::describeExcess(int64_t needed, int64_t most) {
  std::string text = formatBytes(needed), limit = formatBytes(most);
  if (text == limit) {
    text = std::to_string(needed) + " B";
    limit = std::to_string(most) + " B";
  }
  return "step needs " + text +
         " on the device of a rank, and --max-bytes is " + limit;
}

static void printBytes(const json::Object &plan, llvm::raw_ostream &os) {
  os << "bytes per rank      one backward pass   several backward passes\n";
  const auto *bytes = plan.getObject("bytes_per_rank");
  const auto *totals = plan.getObject("total_bytes_per_rank");
  for (StringRef space : {"device", "host"}) {
    const auto *one = bytes->getObject("one_backward")->getObject(space);
    const auto *more = bytes->getObject("several_backwards")->getObject(space);
    auto printRow = [&](StringRef role, int64_t a, int64_t b) {
      if (a || b || space == "device")
        os << llvm::format("  %-6s %-12s %15lld %25lld", space.data(),
                           role.data(), (long long)a, (long long)b);
      return a || b || space == "device";
    };
    for (StringRef role :
         {"parameter", "gradient", "accumulator", "state", "staging"})
      if (printRow(role, *one->getInteger(role), *more->getInteger(role)))
        os << "\n";
    int64_t total = *totals->getObject("one_backward")->getInteger(space);
    int64_t several =
        *totals->getObject("several_backwards")->getInteger(space);
    if (printRow("total", total, several))
      os << "   " << formatBytes(std::max(total, several)) << "\n";
  }
  os << "\nlargest buffers per rank\n";
  for (const json::Value &value : *plan.getArray("largest_buffers")) {
    const json::Object &buffer = *value.getAsObject();
    int64_t size = *buffer.getInteger("bytes");
    os << llvm::format("  %-6s %-12s %15lld %12s   ",
                       buffer.getString("space")->data(),
                       buffer.getString("role")->data(), (long long)size,
                       formatBytes(size).c_str())
       << *buffer.getString("name") << "\n";
  }
}

/// Prints bytes and collectives of |plan|, or of one stage of it.
static void printStageTable(const json::Object &plan, llvm::raw_ostream &os) {
  printBytes(plan, os);
  os << "\ntraffic per rank   all_reduce  scalars  reduce_scatter  all_gather"
        "      bytes sent    bytes copied\n";
  const auto *traffic = plan.getObject("traffic_per_rank");
  for (StringRef when : {"first_backward", "each_later_backward", "apply",
                         "unshard_all", "unshard_again"}) {
    const auto *row = traffic->getObject(when);
    if (!row)
      continue; // at stages without units
    os << llvm::format(
        "  %-20s %6lld %8lld %15lld %11lld %15lld "
        "%15lld\n",
        when.data(), (long long)*row->getInteger("all_reduces"),
        (long long)*row->getInteger("scalar_all_reduces"),
        (long long)*row->getInteger("reduce_scatters"),
        (long long)*row->getInteger("all_gathers"),
        (long long)*row->getInteger("bytes_sent"),
        (long long)*row->getInteger("bytes_copied_between_spaces"));
  }
}

void zero::printPlanTable(StringRef text, llvm::raw_ostream &os) {
  llvm::Expected<json::Value> plan = json::parse(text);
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return;
  }
  const json::Object &root = *plan->getAsObject();
  os << "step " << *root.getString("step") << ", "
     << countOf(*root.getInteger("ranks"), "rank") << ", ";
  if (*root.getBoolean("one_backward"))
    os << "one backward pass a step, ";
  if (size_t frozen = root.getArray("frozen")->size())
    os << countOf(frozen, "frozen parameter") << ", ";
  os << countOf(root.getArray("parameters")->size(), "parameter") << " in ";
  const json::Array *stages = root.getArray("stages");
  if (!stages) {
    os << countOf(root.getArray("buckets")->size(), "bucket") << "\n\n";
    return printStageTable(root, os);
  }
  os << countOf(stages->size(), "stage") << "\n";
  for (const json::Value &value : *stages) {
    const json::Object &stage = *value.getAsObject();
    os << "\nstage";
    for (const json::Value &on : *stage.getArray("on"))
      os << " " << *on.getAsObject()->getString("axis") << "="
         << *on.getAsObject()->getInteger("coordinate");
    os << ", " << countOf(stage.getArray("buckets")->size(), "bucket") << "\n";
    printStageTable(stage, os);
  }
}
