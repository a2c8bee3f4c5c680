//===- Stages.cpp - The pipeline stages of a program ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zrt/Stages.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zrt;

static zero::MeshOp getMesh(ProgramOp program) {
  return program->getParentOfType<ModuleOp>().lookupSymbol<zero::MeshOp>(
      program.getMeshAttr());
}

SmallVector<StringAttr> zrt::getStageAxes(ProgramOp program) {
  llvm::SetVector<StringAttr> axes;
  for (auto buffer : program.getOps<BufferOp>())
    for (StringAttr axis : buffer.getValueType().getStageAxes())
      axes.insert(axis);
  return getMesh(program).sortAxes(axes.getArrayRef());
}

SmallVector<Stage> zrt::enumerateStages(ProgramOp program) {
  SmallVector<Stage> stages{Stage()};
  for (StringAttr axis : getStageAxes(program)) {
    llvm::SetVector<int64_t> named;
    for (auto buffer : program.getOps<BufferOp>())
      for (int64_t coordinate : buffer.getValueType().getCoordinates(axis))
        named.insert(coordinate);
    for (int64_t i = 0; i < *getMesh(program).getAxisSize(axis); ++i)
      if (!named.contains(i)) {
        named.insert(i);
        break;
      }
    SmallVector<Stage> longer;
    for (const Stage &stage : stages)
      for (int64_t coordinate : named) {
        longer.push_back(stage);
        longer.back().push_back({axis, coordinate});
      }
    stages = std::move(longer);
  }
  return stages;
}
