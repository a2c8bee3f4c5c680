//===- CompileText.cpp - A step compiled from texts to texts --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/CompileText.h"

#include "tools/compiler/Compilation.h"
#include "tools/compiler/LinkStep.h"
#include "tools/recipe/Recipe.h"

#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace zero;

/// Checks that |request| describes one step, in UTF-8.
static LogicalResult checkRequest(const CompileRequest &request,
                                  std::string &message) {
  bool isListed = request.parameters || request.recipe;
  if (request.step && isListed)
    message = "step describes the step, and so do parameters and recipe; leave "
              "out one of them";
  else if (!request.step && !isListed)
    message = "step is null, and so are parameters and recipe; pass a step, or "
              "parameters and a recipe";
  else if (isListed && !request.recipe)
    message = "recipe is null; parameters need one, such as adamw,wd=0.1";
  else if (isListed && !request.parameters)
    message = "parameters is null; a recipe needs a list of parameters";
  if (!message.empty())
    return failure();
  const std::pair<StringRef, const std::optional<StringRef> *> texts[] = {
      {"step", &request.step},
      {"parameters", &request.parameters},
      {"recipe", &request.recipe},
      {"options", &request.options}};
  for (auto [name, text] : texts) {
    size_t at = 0;
    if (!*text || llvm::json::isUTF8(**text, &at))
      continue;
    message = (name + " is not UTF-8 from byte " + Twine(at) + " on").str();
    return failure();
  }
  return success();
}

/// The text of the step of |request|.
static std::unique_ptr<llvm::MemoryBuffer>
getStep(const CompileRequest &request, const CompileSettings &settings,
        ExitCode &code, std::string &message) {
  if (request.step)
    return llvm::MemoryBuffer::getMemBufferCopy(*request.step, "<step>");
  code = ExitCode::usage;
  FailureOr<MeshAxes> mesh = settings.getMesh(message);
  Recipe recipe;
  if (failed(mesh) || failed(readRecipe(*request.recipe, recipe, message)))
    return nullptr;
  return writeListedStep(recipe, *request.parameters, "<parameters>", *mesh,
                         settings.getRecipeName(), code, message);
}

LogicalResult zero::compileText(const CompileRequest &request,
                                CompileOutput &output, Errors &errors) {
  ExitCode code = ExitCode::usage;
  std::string message;
  auto fail = [&] {
    errors.add(code, message);
    return failure();
  };
  CompileSettings settings;
  LowerOptions lower;
  CompileOptions compile;
  if (failed(checkRequest(request, message)) ||
      (request.options &&
       failed(readSettings(*request.options, settings, message))) ||
      failed(settings.get(lower, compile, message)))
    return fail();
  std::unique_ptr<llvm::MemoryBuffer> text =
      getStep(request, settings, code, message);
  if (!text)
    return fail();
  output.step = text->getBuffer().str();
  Compilation compilation(settings, errors);
  if (failed(compilation.load(std::move(text), nullptr)) ||
      failed(compilation.lower(lower)))
    return failure();
  FailureOr<CompiledStep> step = compilation.compile(std::move(compile));
  if (failed(step))
    return failure();
  if (failed(
          linkStepInMemory(*step, output.library, output.plan, code, message)))
    return fail();
  output.name = step->name;
  output.header = step->header;
  return success();
}
