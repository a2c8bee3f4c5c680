//===- WriteListedStep.cpp - From texts to the text of a step -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/StorageTypes.h"
#include "tools/recipe/Recipe.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/BuiltinTypes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace zero;

static LogicalResult checkNames(const MeshAxes &mesh, std::string &message) {
  for (auto &[name, size] : mesh)
    if (!llvm::isAlpha(name[0]) || !llvm::all_of(name, [](char c) {
          return llvm::isAlnum(c) || c == '_';
        })) {
      message = "--mesh: the name of axis '" + name +
                "' must be a letter, and then letters, digits or '_'";
      return failure();
    }
  return success();
}

/// A sum and a mean over an axis of another kind of parallelism would be wrong
/// gradients. Its name is the only thing that tells.
static LogicalResult checkKinds(const MeshAxes &mesh,
                                ArrayRef<StringRef> others,
                                std::string &message) {
  for (auto &[name, size] : mesh)
    if (!llvm::is_contained(others, name) &&
        llvm::is_contained({"tp", "ep", "pp", "cp", "sp"}, name) && size > 1) {
      message = "--mesh: axis '" + name +
                "' is no data-parallel axis by its name, and a list has "
                "data-parallel axes and pp; write the step as IR as in "
                "examples/topology.mlir, or give the axis another name";
      return failure();
    }
  return success();
}

LogicalResult zero::checkListedMesh(const MeshAxes &mesh,
                                    ArrayRef<StringRef> others,
                                    std::string &message) {
  if (failed(checkNames(mesh, message)))
    return failure();
  return checkKinds(mesh, others, message);
}

/// Checks that each parameter is on a pipeline stage that there is.
static LogicalResult checkStages(const ParameterList &list, int64_t numStages,
                                 std::string &message) {
  for (const ListedParameter &parameter : list.parameters) {
    bool isRight =
        !parameter.stages.empty() && parameter.stages.back() < numStages;
    if (isRight)
      continue;
    message =
        "parameter '" + parameter.name + "' is on " +
        (parameter.stages.empty()
             ? std::string("no pipeline stage")
             : "pipeline stage " + std::to_string(parameter.stages.back())) +
        ", expected one from 0 to " + std::to_string(numStages - 1) +
        ", since the mesh has " + kPipelineAxis.str() + "=" +
        std::to_string(numStages) + "; write \"pipeline_stage\" into the list";
    return failure();
  }
  return success();
}

/// Checks that there are units, and that their parameters can travel in the
/// gather dtype of |recipe|.
static LogicalResult checkGatherDtype(const Recipe &recipe,
                                      const ParameterList &list,
                                      std::string &message) {
  if (recipe.gatherDtype.empty())
    return success();
  MLIRContext context;
  Type travels = parseType(recipe.gatherDtype, &context);
  bool hasUnit = false;
  for (const ListedParameter &parameter : list.parameters) {
    if (parameter.unit.empty())
      continue;
    hasUnit = true;
    if (holdsEveryNumber(parseType(parameter.dtype, &context), travels))
      continue;
    message = "parameter '" + parameter.name + "' of unit '" + parameter.unit +
              "' is of " + parameter.dtype +
              ", which does not hold every number of gather_dtype=" +
              recipe.gatherDtype + "; leave out gather_dtype, or the unit";
    return failure();
  }
  if (hasUnit)
    return success();
  message = "--recipe: gather_dtype is the type in which parameters of units "
            "travel, and no parameter is of one; write \"unit\" into the list, "
            "or leave gather_dtype out";
  return failure();
}

LogicalResult zero::writeListedStep(const Recipe &recipe,
                                    const ParameterList &list,
                                    const MeshAxes &mesh, StringRef name,
                                    std::string &text, ExitCode &code,
                                    std::string &message) {
  code = ExitCode::usage;
  if (failed(checkListedMesh(
          mesh, {recipe.tensorAxis, recipe.expertAxis, kPipelineAxis},
          message)))
    return failure();
  code = ExitCode::failed;
  if (failed(checkGatherDtype(recipe, list, message)))
    return failure();
  auto axis = llvm::find_if(
      mesh, [](const auto &axis) { return axis.first == kPipelineAxis; });
  if (axis == mesh.end() || axis->second == 1)
    return writeStep(recipe, list, mesh, name, text, message);
  if (failed(checkStages(list, axis->second, message)))
    return failure();
  Recipe divided = recipe;
  divided.pipelineAxis = kPipelineAxis.str();
  return writeStep(divided, list, mesh, name, text, message);
}

std::unique_ptr<llvm::MemoryBuffer>
zero::writeListedStep(const Recipe &recipe, StringRef parameters,
                      StringRef file, const MeshAxes &mesh, StringRef name,
                      ExitCode &code, std::string &message) {
  code = ExitCode::failed;
  ParameterList list;
  std::string text;
  if (failed(readParameterList(parameters, file, list, message)) ||
      failed(writeListedStep(recipe, list, mesh, name, text, code, message)))
    return nullptr;
  return llvm::MemoryBuffer::getMemBufferCopy(text,
                                              "<the step that was written>");
}
