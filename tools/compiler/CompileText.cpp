//===- CompileText.cpp - A step compiled from texts to texts --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/CompileText.h"

#include "tools/compiler/Cache.h"
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
  if (failed(mesh) || failed(readRecipe(*request.recipe, /*open=*/nullptr,
                                        recipe, code, message)))
    return nullptr;
  return writeListedStep(recipe, *request.parameters, "<parameters>", *mesh,
                         settings.getRecipeName(), code, message);
}

/// Compiles without a cache.
static LogicalResult compileAnew(const CompileSettings &settings,
                                 std::unique_ptr<llvm::MemoryBuffer> text,
                                 std::unique_ptr<llvm::MemoryBuffer> reference,
                                 const LowerOptions &lower,
                                 const CompileOptions &compile,
                                 CompileOutput &output, Errors &errors) {
  Compilation compilation(settings, errors);
  if (failed(compilation.load(std::move(text), std::move(reference))) ||
      failed(compilation.lower(lower)))
    return failure();
  FailureOr<CompiledStep> step = compilation.compile(compile);
  if (failed(step))
    return failure();
  ExitCode code;
  std::string message;
  llvm::json::Object validated;
  if (failed(
          linkStepInMemory(*step, output.library, validated, code, message))) {
    errors.add(code, message);
    return failure();
  }
  FailureOr<ProofNote> proof = compilation.finishProof();
  if (failed(proof))
    return failure();
  output.plan = step->getPlan(*proof, std::move(validated));
  output.name = step->name;
  output.header = step->header;
  return success();
}

/// How long a process waits for another one that compiles the same step.
static constexpr std::chrono::seconds kLockLimit(60);

LogicalResult
zero::compileStepText(const CompileSettings &settings,
                      std::unique_ptr<llvm::MemoryBuffer> step,
                      std::unique_ptr<llvm::MemoryBuffer> reference,
                      CompileOutput &output, Errors &errors) {
  std::string message;
  auto fail = [&](ExitCode code) {
    errors.add(code, message);
    return failure();
  };
  LowerOptions lower;
  CompileOptions compile;
  if (failed(settings.get(lower, compile, message)))
    return fail(ExitCode::usage);
  output.step = step->getBuffer().str();
  std::optional<CacheEntry> entry;
  if (!settings.cache.text.empty()) {
    entry.emplace(settings, output.step,
                  reference ? reference->getBuffer() : "");
    auto finish = [&] {
      return succeeded(settings.checkMemory(output.plan, message))
                 ? success()
                 : fail(ExitCode::failed);
    };
    if (entry->read(output))
      return finish();
    if (failed(entry->lock(kLockLimit, message)))
      return fail(ExitCode::environment);
    if (entry->read(output))
      return finish();
  }
  if (failed(compileAnew(settings, std::move(step), std::move(reference), lower,
                         compile, output, errors)))
    return failure();
  return !entry || succeeded(entry->write(output, message))
             ? success()
             : fail(ExitCode::environment);
}

LogicalResult zero::compileText(const CompileRequest &request,
                                CompileOutput &output, Errors &errors) {
  ExitCode code = ExitCode::usage;
  std::string message;
  CompileSettings settings;
  std::unique_ptr<llvm::MemoryBuffer> step;
  if (succeeded(checkRequest(request, message)) &&
      (!request.options ||
       succeeded(readSettings(*request.options, settings, message))))
    step = getStep(request, settings, code, message);
  if (step)
    return compileStepText(settings, std::move(step), nullptr, output, errors);
  errors.add(code, message);
  return failure();
}
