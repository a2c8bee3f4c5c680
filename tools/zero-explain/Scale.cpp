//===- Scale.cpp - The same step on more and more ranks -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-explain/Scale.h"

#include "tools/plan/PlanBytes.h"
#include "tools/plan/PlanTable.h"

#include "llvm/Support/Format.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

constexpr int64_t kFewest = 8, kMost = 16384;

json::Object ScaledStep::toJson() const {
  json::Object object{{"ranks", ranks}};
  if (!reason.empty()) {
    object["reason"] = reason;
    return object;
  }
  object["cost"] = cost.toJson();
  object["seconds"] = times.toJson();
  return object;
}

static MeshAxes readAxes(ModuleOp module) {
  MeshAxes axes;
  auto mesh = *module.getOps<MeshOp>().begin();
  for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
    axes.push_back({axis.getName().str(), axis.getSize()});
  return axes;
}

FailureOr<std::vector<ScaledStep>>
zero::scale(ModuleOp module, const LowerOptions &options, StringRef axis,
            const Machine &machine, std::string &message) {
  MeshAxes axes = readAxes(module);
  auto scaled = llvm::find_if(axes, [&](auto &a) { return a.first == axis; });
  if (scaled == axes.end()) {
    std::string names;
    for (const auto &[name, size] : axes)
      names += (names.empty() ? "" : ", ") + name;
    message = ("--scale names an axis of the mesh, " + Twine(names) +
               ", got '" + axis + "'")
                  .str();
    return failure();
  }
  for (auto op : module.getOps<ParameterOp>())
    for (StringAttr placed : op.getValueType().getStageAxes())
      if (placed.getValue() == axis) {
        message = ("--scale names an axis that divides batches or dimensions; "
                   "the step has parameter '" +
                   op.getSymName() + "' on coordinates of '" + axis +
                   "', which would be others on other meshes; explain a step "
                   "for each of them")
                      .str();
        return failure();
      }
  int64_t others = 1;
  for (const auto &[name, size] : axes)
    if (name != axis)
      others *= size;
  std::vector<ScaledStep> steps;
  for (int64_t size = 1; size * others <= kMost; size *= 2) {
    int64_t ranks = size * others;
    if (ranks < kFewest)
      continue;
    scaled->second = size;
    LowerOptions here;
    here.copyOptionValuesFrom(options);
    std::string mesh;
    for (const auto &[name, number] : axes)
      mesh += (mesh.empty() ? "" : ":") + name + "=" + std::to_string(number);
    here.mesh = mesh;
    ScaledStep &step = steps.emplace_back();
    step.ranks = ranks;
    OwningOpRef<ModuleOp> copy = module.clone();
    step.reason = putOnMesh(*copy, here);
    if (!step.reason.empty())
      continue;
    Choice choice = explain(*copy, here, /*details=*/nullptr);
    step.reason = choice.reason;
    if (!step.reason.empty())
      continue;
    step.cost = choice.cost;
    for (const json::Object *stage : getStages(choice.plan)) {
      Times times = getTimes(*stage, machine);
      if (times.getTotal() > step.times.getTotal())
        step.times = times;
    }
  }
  return steps;
}

void zero::printScale(llvm::ArrayRef<ScaledStep> steps, StringRef axis,
                      const Machine &machine, llvm::raw_ostream &os) {
  os << "\nmore ranks along " << axis << ", on " << machine.name << "\n"
     << "  estimates: a ring takes a latency for each message and its bytes at "
        "the bandwidth of\n"
        "  the link; rings follow each other. What is sent at apply is "
        "exposed. What is sent in\n"
        "  the backward pass is exposed if the backward pass is shorter\n"
     << "  ranks        device   sent in the backward pass            sent at "
        "apply      kernels and copies\n";
  for (const ScaledStep &step : steps) {
    os << llvm::format("%7lld", (long long)step.ranks);
    if (!step.reason.empty()) {
      os << "  " << step.reason << "\n";
      continue;
    }
    const Times &times = step.times;
    os << llvm::format("%14s", formatBytes(step.cost.deviceBytes).c_str())
       << llvm::format("%12s", formatBytes(step.cost.sentInBackward).c_str())
       << llvm::format("%13.3f ms", 1e3 * times.sendInBackward)
       << llvm::format("%12s", formatBytes(step.cost.sentAtApply).c_str())
       << llvm::format("%10.3f ms", 1e3 * times.sendAtApply)
       << llvm::format("%18.3f ms", 1e3 * (times.deviceKernels +
                                           times.hostKernels + times.copy))
       << "\n";
  }
}
