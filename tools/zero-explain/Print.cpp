//===- Print.cpp - What a step costs, as tables ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-explain/Print.h"

#include "tools/plan/PlanTable.h"

#include "llvm/Support/Format.h"

using namespace zero;
using llvm::StringRef;
namespace json = llvm::json;

void zero::printChoices(llvm::ArrayRef<Choice> choices, int64_t maxBytes,
                        llvm::raw_ostream &os) {
  os << "the most of any rank             memory               sent in a"
        "       sent at   copied in a     copied at\n"
        "stage  offload          device          host  backward pass        "
        "apply  backward pass        apply"
     << (maxBytes ? "   fits" : "") << "\n";
  for (const Choice &choice : choices) {
    os << llvm::format("%5d  %-10s", choice.stage, choice.offload.c_str());
    if (!choice.reason.empty()) {
      os << "  " << choice.reason << "\n";
      continue;
    }
    const Cost &cost = choice.cost;
    for (int64_t bytes : {cost.deviceBytes, cost.hostBytes, cost.sentInBackward,
                          cost.sentAtApply, cost.copiedInBackward, cost.copied})
      os << llvm::format("%14s", formatBytes(bytes).c_str());
    if (maxBytes)
      os << (cost.deviceBytes <= maxBytes ? "    yes" : "     no");
    os << "\n";
  }
}

static void printCollectives(const json::Object &stage, llvm::raw_ostream &os) {
  os << "\ncollectives of a rank            over                 ranks  dtype  "
        "count          bytes     bytes sent\n";
  const auto *collectives = stage.getObject("collectives_per_rank");
  for (StringRef when : {"first_backward", "each_later_backward", "apply",
                         "unshard_all", "unshard_again"}) {
    const json::Array *list = collectives->getArray(when);
    for (const json::Value &value : list ? *list : json::Array()) {
      const json::Object &one = *value.getAsObject();
      std::string axes;
      for (const json::Value &axis : *one.getArray("over"))
        axes += (axes.empty() ? "" : ",") + axis.getAsString()->str();
      os << llvm::format("  %-20s %-19s %-16s %6lld  %-5s %6lld %14s %14s\n",
                         when.data(), one.getString("op")->str().c_str(),
                         axes.c_str(), (long long)*one.getInteger("ranks"),
                         one.getString("dtype")->str().c_str(),
                         (long long)*one.getInteger("count"),
                         formatBytes(*one.getInteger("bytes")).c_str(),
                         formatBytes(*one.getInteger("bytes_sent")).c_str());
    }
  }
}

static void printTimes(const Times &times, const Machine &machine,
                       llvm::raw_ostream &os) {
  os << "\non " << machine.name << "\n"
     << "  an estimate for a step of one backward pass: rings one after the "
        "other, no overlap,\n  without forward and backward\n";
  auto print = [&](const char *what, double seconds) {
    os << llvm::format("  %-34s %10.3f ms\n", what, 1e3 * seconds);
  };
  print("send in the backward pass", times.sendInBackward);
  print("kernels of apply on the device", times.deviceKernels);
  if (times.hostKernels > 0)
    print("kernels of apply on the host", times.hostKernels);
  if (times.copy > 0)
    print("copies between device and host", times.copy);
  print("send at apply", times.sendAtApply);
  print("total", times.getTotal());
}

void zero::printDetails(const json::Object &stage, const Machine *machine,
                        llvm::raw_ostream &os) {
  printCollectives(stage, os);
  const json::Object &kernels =
      *stage.getObject("kernels_per_rank")->getObject("apply");
  os << "\nkernels of apply: " << *kernels.getInteger("launches")
     << " launches, which read and write "
     << formatBytes(*kernels.getInteger("device_bytes")) << " on the device, "
     << formatBytes(*kernels.getInteger("host_bytes")) << " on the host\n";
  if (machine)
    printTimes(getTimes(stage, *machine), *machine, os);
}
