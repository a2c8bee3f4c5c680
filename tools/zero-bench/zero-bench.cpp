//===- zero-bench.cpp - Speed against references in the same run ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitObject.h"
#include "dialect/zero/CountOf.h"
#include "tools/driver/Tool.h"
#include "tools/zero-bench/Bench.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <thread>

using namespace zero::bench;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-bench options");
static cl::opt<std::string>
    only("only", cl::cat(category), cl::value_desc("GROUP,..."),
         cl::desc("Groups to run: kernels, step, deliver, trace, collectives, "
                  "compile, prove (default: all)"));
static cl::opt<int64_t>
    elements("elements", cl::init(int64_t(64) << 20), cl::cat(category),
             cl::desc("Elements of the arrays of a kernel (default 64M)"));
static cl::opt<int> rounds("rounds", cl::init(15), cl::cat(category),
                           cl::desc("Measurements of each row (default 15)"));
static cl::opt<bool>
    quick("quick", cl::cat(category),
          cl::desc("Small sizes and 3 rounds, as a smoke test: the "
                   "data fits into\ncaches, so the ratios do not "
                   "measure memory"));
static cl::opt<bool> json("json", cl::cat(category),
                          cl::desc("Print the rows as JSON"));

static const std::pair<const char *, Group> kGroups[] = {
    {"kernels", runKernelRows},
    {"step", runStepRows},
    {"deliver", runDeliverRows},
    {"trace", runTraceRows},
    {"collectives", runCollectiveRows},
    {"compile", runCompileRows},
    {"prove", runProveRows}};

static const char *const kHeader =
    "row                             time ms  reference                       "
    "    time ms      value  of               goal\n\n";

static llvm::json::Object toJson(const Row &row) {
  llvm::json::Object object{{"name", row.name},
                            {"unit", row.unit},
                            {"value", row.value},
                            {"met", row.isMet()}};
  if (row.timeMs > 0)
    object["time_ms"] = row.timeMs;
  if (!row.reference.empty()) {
    object["reference"] = row.reference;
    object["reference_ms"] = row.referenceMs;
  }
  if (row.goal != Row::Goal::none)
    object[row.goal == Row::Goal::atMost ? "at_most" : "at_least"] = row.limit;
  return object;
}

static void print(const Row &row) {
  auto &os = llvm::outs();
  auto number = [&](double value, int width) {
    if (value == 0)
      os << std::string(width, ' ');
    else
      os << llvm::format("%*.*f", width, 2, value);
  };
  os << llvm::format("%-28s", row.name.c_str());
  number(row.timeMs, 11);
  os << "  " << llvm::format("%-32s", row.reference.c_str());
  number(row.referenceMs, 11);
  os << llvm::format(row.value < 1e-3 ? "%11.1e" : "%11.3f", row.value) << "  "
     << llvm::format("%-17s", row.unit.c_str());
  if (row.goal != Row::Goal::none)
    os << (row.goal == Row::Goal::atMost ? "<= " : ">= ")
       << llvm::format("%-7g", row.limit) << (row.isMet() ? "yes" : "NO");
  os << "\n";
  os.flush();
}

int main(int argc, char **argv) {
  zero::Tool tool("zero-bench", argc, argv);
  bool isParsed = tool.parse(
      category,
      "zero-bench: speed of generated code, as ratios to references in the "
      "same run\n\n"
      "  zero-bench                       everything, some minutes\n"
      "  zero-bench --only=kernels --json\n\n"
      "Candidate and reference run in turn. A row shows median times and the "
      "median\nratio of neighbours. Each kernel is linked at four places, in "
      "turn. The A/A row\ncompares a kernel with itself at another place. "
      "Kernels and the step run on one\nthread. The exit code does not depend "
      "on the ratios: zero-bench is not a test.\n",
      json);
  if (!isParsed)
    return tool.finish();
  auto wrong = [&](const llvm::Twine &message) {
    return tool.fail(zero::ExitCode::usage, message);
  };
  if (elements < 4096)
    return wrong("--elements must be at least 4096, got " +
                 llvm::Twine(elements));
  if (rounds < 1)
    return wrong("--rounds must be at least 1, got " + llvm::Twine(rounds));
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef(only).split(names, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef name : names)
    if (llvm::none_of(kGroups,
                      [&](auto &group) { return name == group.first; }))
      return wrong("--only must be kernels, step, deliver, trace, collectives, "
                   "compile or prove, got '" +
                   name + "'");
  if (zero::resolveCpuName("native").empty())
    return tool.fail(zero::ExitCode::environment,
                     "this machine cannot run x86-64-v3 code");

  Options options{elements, rounds, int64_t(64) << 20, {1000, 10000, 46000}};
  if (quick)
    options = {int64_t(1) << 20, 3, int64_t(1) << 20, {100, 200, 400}};
  if (!json)
    llvm::outs() << llvm::sys::getHostCPUName() << ", "
                 << zero::countOf(std::thread::hardware_concurrency(), "core")
                 << "; " << zero::countOf(options.elements, "element") << ", "
                 << zero::countOf(options.rounds, "round") << "\n\n"
                 << kHeader;
  llvm::json::Array array;
  for (auto &[name, group] : kGroups) {
    if (!names.empty() && !llvm::is_contained(names, name))
      continue;
    std::vector<Row> rows;
    std::string message;
    if (!group(options, rows, message))
      return tool.fail(zero::ExitCode::environment,
                       llvm::Twine(name) + ": " + message);
    for (const Row &row : rows) {
      if (json)
        array.push_back(toJson(row));
      else
        print(row);
    }
  }
  return tool.finish(llvm::json::Object{
      {"cpu", llvm::sys::getHostCPUName()},
      {"cores", int64_t(std::thread::hardware_concurrency())},
      {"elements", options.elements},
      {"rounds", options.rounds},
      {"rows", std::move(array)}});
}
