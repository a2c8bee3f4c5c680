//===- Lower.cpp - From a step of any phase to a proved one ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"
#include "tools/driver/Driver.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace zero;

AgainstFlag::AgainstFlag(llvm::cl::OptionCategory &category)
    : llvm::cl::opt<std::string>(
          "against", llvm::cl::cat(category), llvm::cl::value_desc("step.mlir"),
          llvm::cl::desc("The logical step, as written, that the step is "
                         "compared with\n(default: a logical step is compared "
                         "with itself)")) {}

/// "dp=2:tp=4".
static std::string describeMesh(ModuleOp module) {
  SmallVector<std::string> axes;
  for (auto mesh : module.getOps<MeshOp>())
    for (auto axis : mesh.getAxes().getAsRange<MeshAxisAttr>())
      axes.push_back(axis.getName().str() + "=" +
                     std::to_string(axis.getSize()));
  return llvm::join(axes, ":");
}

static LogicalResult setMesh(ModuleOp logical, StringRef mesh) {
  LowerOptions onMesh;
  onMesh.mesh = mesh.str();
  onMesh.until = std::string("logical");
  return lower(logical, onMesh);
}

LogicalResult zero::checkReference(ModuleOp module, StringRef file,
                                   ModuleOp reference, StringRef referenceFile,
                                   const LowerSettings &settings,
                                   ExitCode &code, std::string &message) {
  code = ExitCode::usage;
  if (failed(settings.checkMesh(reference, referenceFile, message)))
    return failure();
  code = ExitCode::failed;
  if (failed(checkLogical(reference, "given to --against", referenceFile,
                          message)))
    return failure();
  StringRef name = getStepName(module), expected = getStepName(reference);
  if (name != expected) {
    message = ("step of " + file + " is @" + name + ", expected @" + expected +
               ", the step of --against=" + referenceFile)
                  .str();
    return failure();
  }
  if (failed(setMesh(reference, separateByColons(settings.mesh.text))))
    return failure();
  // A logical step takes the sizes of --mesh, too.
  if (isLogical(module))
    return success();
  std::string sizes = describeMesh(module), others = describeMesh(reference);
  if (sizes == others)
    return success();
  message = ("mesh of " + file + " is " + sizes + ", expected " + others +
             ", the mesh of --against=" + referenceFile +
             "; lower the step for this mesh, or give that of " +
             referenceFile + " other sizes with --mesh")
                .str();
  return failure();
}

LogicalResult zero::lower(ModuleOp module, const LowerOptions &options) {
  PassManager pm(module.getContext());
  if (isLogical(module))
    buildLowerPipeline(pm, options);
  else if (!module.getOps<StepOp>().empty())
    buildLowerPlacedPipeline(pm, options.until.getValue());
  else if (llvm::none_of(
               module.getOps<zrt::ProgramOp>(),
               [](zrt::ProgramOp program) { return program.isScheduled(); }))
    buildSchedulePipeline(pm);
  return pm.run(module);
}

std::unique_ptr<ProvedStep> zero::lowerProved(ModuleOp module,
                                              const LowerOptions &options,
                                              ModuleOp reference) {
  // Ranks are part of what is proved.
  if (isLogical(module) && failed(setMesh(module, options.mesh.getValue())))
    return nullptr;
  auto step = std::make_unique<ProvedStep>(reference ? reference : module);
  if (!step->isProved())
    return nullptr;
  if (reference && !step->isSameAs(module)) {
    module.emitError() << "is not the step of --against: a pass changed it, or "
                          "it was written otherwise";
    return nullptr;
  }
  if (failed(lower(module, options)))
    return nullptr;
  return step;
}

LogicalResult zero::proveLowered(ProvedStep &step, ModuleOp lowered) {
  if (step.isSameAs(lowered))
    return success();
  return lowered.emitError()
         << "the lowered step differs from the written step: a pass has a bug; "
            "zero-prove names the pass";
}
