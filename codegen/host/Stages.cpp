//===- Stages.cpp - One program for each pipeline stage -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/Stages.h"

#include "dialect/zrt/Stages.h"
#include "passes/stage/Passes.h"

using namespace mlir;
using namespace zero;

/// More pipeline stages than any pipeline has. Each of them is a program.
static constexpr int64_t kMostStages = 1024;

FailureOr<std::vector<StageProgram>> zero::splitStages(zrt::ProgramOp program,
                                                       const Tables &whole) {
  std::vector<StageProgram> stages;
  SmallVector<StringAttr> axes = zrt::getStageAxes(program);
  if (axes.empty()) {
    stages.push_back({{}, {}, program, whole});
    return stages;
  }
  auto module = program->getParentOfType<ModuleOp>();
  auto mesh = module.lookupSymbol<MeshOp>(program.getMeshAttr());
  int64_t count = mesh.getNumRanks(axes);
  if (count > kMostStages)
    return program.emitError()
           << "has " << count << " pipeline stages, at most " << kMostStages;
  for (int64_t i = 0; i < count; ++i) {
    StageProgram &stage = stages.emplace_back();
    int64_t rest = i;
    for (StringAttr axis : llvm::reverse(axes)) {
      int64_t size = *mesh.getAxisSize(axis);
      stage.coordinates.insert(stage.coordinates.begin(), {axis, rest % size});
      rest /= size;
    }
    stage.module = module.clone();
    stage.program = *stage.module->getOps<zrt::ProgramOp>().begin();
    selectStage(stage.program, stage.coordinates);
    FailureOr<Tables> tables = buildTables(stage.program, &whole);
    if (failed(tables))
      return failure();
    stage.tables = std::move(*tables);
  }
  return stages;
}
