//===- WriteListedStep.cpp - From texts to the text of a step -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Recipe.h"

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
static LogicalResult checkKinds(const MeshAxes &mesh, StringRef tensorAxis,
                                std::string &message) {
  for (auto &[name, size] : mesh)
    if (name != tensorAxis &&
        llvm::is_contained({"tp", "ep", "pp", "cp", "sp"}, name) && size > 1) {
      message = "--mesh: axis '" + name +
                "' is no data-parallel axis by its name, and a list has "
                "data-parallel axes; write the step as IR as in "
                "examples/topology.mlir, or give the axis another name";
      return failure();
    }
  return success();
}

LogicalResult zero::checkListedMesh(const MeshAxes &mesh, StringRef tensorAxis,
                                    std::string &message) {
  if (failed(checkNames(mesh, message)))
    return failure();
  return checkKinds(mesh, tensorAxis, message);
}

LogicalResult zero::writeListedStep(const Recipe &recipe,
                                    const ParameterList &list,
                                    const MeshAxes &mesh, StringRef name,
                                    std::string &text, ExitCode &code,
                                    std::string &message) {
  code = ExitCode::usage;
  if (failed(checkListedMesh(mesh, recipe.tensorAxis, message)))
    return failure();
  code = ExitCode::failed;
  return writeStep(recipe, list, mesh, name, text, message);
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
