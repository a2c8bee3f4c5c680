//===- Explain.cpp - What a step costs, before it runs --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-explain/Explain.h"

#include "codegen/host/EmitLibrary.h"
#include "tools/plan/PlanBytes.h"

#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace zero;
namespace json = llvm::json;

json::Object Cost::toJson() const {
  return json::Object{{"device_bytes", deviceBytes},
                      {"host_bytes", hostBytes},
                      {"bytes_sent_in_backward", sentInBackward},
                      {"bytes_sent_at_apply", sentAtApply},
                      {"bytes_copied_in_backward", copiedInBackward},
                      {"bytes_copied_at_apply", copied},
                      {"device_traffic_at_apply", deviceTraffic},
                      {"host_traffic_at_apply", hostTraffic}};
}

static Cost readCost(const json::Object &plan) {
  Cost cost;
  cost.deviceBytes = getMostBytes(plan, "device");
  cost.hostBytes = getMostBytes(plan, "host");
  auto raise = [](int64_t &most, int64_t value) {
    most = std::max(most, value);
  };
  for (const json::Object *stage : getStages(plan)) {
    // Units are gathered in the forward pass, and again in the backward pass.
    int64_t sent = 0, copied = 0;
    for (StringRef when : {"first_backward", "unshard_all", "unshard_again"}) {
      if (!stage->getObject("traffic_per_rank")->getObject(when))
        continue; // at stages without units
      sent += getNumber(*stage, "traffic_per_rank", when, "bytes_sent");
      copied += getNumber(*stage, "traffic_per_rank", when,
                          "bytes_copied_between_spaces");
    }
    raise(cost.sentInBackward, sent);
    raise(cost.copiedInBackward, copied);
    raise(cost.sentAtApply,
          getNumber(*stage, "traffic_per_rank", "apply", "bytes_sent"));
    raise(cost.copied, getNumber(*stage, "traffic_per_rank", "apply",
                                 "bytes_copied_between_spaces"));
    raise(cost.deviceTraffic,
          getNumber(*stage, "kernels_per_rank", "apply", "device_bytes"));
    raise(cost.hostTraffic,
          getNumber(*stage, "kernels_per_rank", "apply", "host_bytes"));
  }
  return cost;
}

/// A copy of |value| that refers to no text elsewhere.
static json::Value own(const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString())
    return text->str();
  if (const json::Array *array = value.getAsArray()) {
    json::Array copy;
    copy.reserve(array->size());
    for (const json::Value &element : *array)
      copy.push_back(own(element));
    return copy;
  }
  const json::Object *object = value.getAsObject();
  if (!object)
    return value;
  json::Object copy;
  for (const auto &[key, member] : *object)
    copy[StringRef(key).str()] = own(member);
  return copy;
}

/// Gives |choice| the plan of |module|, which is scheduled, and with |details|
/// all of it and timelines.
static LogicalResult makePlan(ModuleOp module, const Details *details,
                              Choice &choice) {
  auto program = *module.getOps<zrt::ProgramOp>().begin();
  FailureOr<Tables> tables = buildTables(program);
  if (failed(tables))
    return failure();
  if (details)
    tables->planHash = hashPlan(module);
  FailureOr<std::vector<StageProgram>> stages = splitStages(program, *tables);
  if (failed(stages))
    return failure();
  // What describes a plan refers to the texts of |tables|.
  if (!details) {
    choice.plan = std::move(*own(describePrograms(*stages)).getAsObject());
    return success();
  }
  json::Object whole =
      describePlan(*stages, *tables, /*cpu=*/"", ProofNote(), {});
  // It describes no library. (LLVM 19 still prints a key after erase().)
  for (const auto &[key, value] : whole)
    if (!llvm::is_contained({"cpu", "proved", "preconditions", "validated"},
                            StringRef(key)))
      choice.plan[key] = own(value);
  if (details->machine)
    for (const StageProgram &stage : *stages)
      choice.timelines.push_back(
          simulateStep(stage, *details->machine, details->backward));
  return success();
}

namespace {
/// Puts the first error into |reason|.
class FirstError : public ScopedDiagnosticHandler {
public:
  FirstError(MLIRContext *context, std::string &reason)
      : ScopedDiagnosticHandler(context, [&reason](Diagnostic &error) {
          if (error.getSeverity() == DiagnosticSeverity::Error &&
              reason.empty())
            reason = error.str();
          return success();
        }) {}
};
} // namespace

std::string zero::putOnMesh(ModuleOp module, const LowerOptions &options) {
  LowerOptions onlyMesh;
  onlyMesh.mesh = options.mesh.getValue();
  onlyMesh.until = std::string("logical");
  std::string reason;
  FirstError handler(module.getContext(), reason);
  (void)lower(module, onlyMesh);
  return reason;
}

Choice zero::explain(ModuleOp module, const LowerOptions &options,
                     const Details *details) {
  Choice choice;
  choice.stage = options.stage;
  choice.offload = options.offload;
  FirstError handler(module.getContext(), choice.reason);
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager pm(module.getContext());
  // What passes make of the step is not compiled, and verifying it would take
  // longer than making it.
  pm.enableVerifier(false);
  buildLowerPipeline(pm, options);
  if (failed(pm.run(*copy)))
    return choice;
  if (failed(makePlan(*copy, details, choice)))
    return choice;
  choice.cost = readCost(choice.plan);
  return choice;
}
