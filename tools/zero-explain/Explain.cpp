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
    int64_t sent =
        getNumber(*stage, "traffic_per_rank", "first_backward", "bytes_sent");
    // Each unit is gathered in the forward pass and in the backward pass.
    if (stage->getObject("traffic_per_rank")->getObject("unshard_all")) {
      sent += 2 * getNumber(*stage, "traffic_per_rank", "unshard_all",
                            "bytes_sent");
      raise(cost.copiedInBackward,
            2 * getNumber(*stage, "traffic_per_rank", "unshard_all",
                          "bytes_copied_between_spaces"));
    }
    raise(cost.sentInBackward, sent);
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

/// The plan of |module|, which is scheduled.
static FailureOr<json::Object> makePlan(ModuleOp module) {
  auto program = *module.getOps<zrt::ProgramOp>().begin();
  FailureOr<Tables> tables = buildTables(program);
  if (failed(tables))
    return failure();
  FailureOr<std::vector<StageProgram>> stages = splitStages(program, *tables);
  if (failed(stages))
    return failure();
  std::string text = emitPlan(*stages, *tables, /*cpu=*/"", ProofNote(), {});
  json::Value whole = cantFail(json::parse(text));
  // It describes no library. (LLVM 19 still prints a key after erase().)
  json::Object plan;
  for (auto &[key, value] : *whole.getAsObject())
    if (!llvm::is_contained({"cpu", "proved", "preconditions", "validated"},
                            StringRef(key)))
      plan[key] = std::move(value);
  return plan;
}

Choice zero::explain(ModuleOp module, const LowerOptions &options) {
  Choice choice;
  choice.stage = options.stage;
  choice.offload = options.offload;
  // The first error is the reason.
  ScopedDiagnosticHandler handler(module.getContext(), [&](Diagnostic &error) {
    if (error.getSeverity() == DiagnosticSeverity::Error &&
        choice.reason.empty())
      choice.reason = error.str();
    return success();
  });
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager pm(module.getContext());
  buildLowerPipeline(pm, options);
  if (failed(pm.run(*copy)))
    return choice;
  FailureOr<json::Object> plan = makePlan(*copy);
  if (failed(plan))
    return choice;
  choice.plan = std::move(*plan);
  choice.cost = readCost(choice.plan);
  return choice;
}
