//===- Compilation.cpp - From the text of a step to code ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/compiler/Compilation.h"

#include "codegen/kernels/Lower.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace zero;

static DialectRegistry getRegistry() {
  DialectRegistry registry;
  registerDriverDialects(registry);
  registerCodegenDialects(registry);
  return registry;
}

Compilation::Compilation(const CompileSettings &settings, Errors &errors)
    : settings(settings), errors(errors),
      // A step is one op to most passes, and proof and check of the library
      // fork.
      context(getRegistry(), MLIRContext::Threading::DISABLED) {}

LogicalResult Compilation::fail(ExitCode code, const llvm::Twine &message) {
  errors.add(code, message);
  return failure();
}

/// A lowered step needs a reference.
LogicalResult Compilation::check(StringRef file) {
  std::string message;
  if (reference && !settings.isProved)
    return fail(ExitCode::usage,
                "--against names what the proof compares with, and --no-prove "
                "skips the proof; leave out one of them");
  if (isLogical(getModule()))
    return succeeded(settings.checkMesh(getModule(), file, message))
               ? success()
               : fail(ExitCode::usage, message);
  if (failed(settings.checkNone(reference.has_value(), file + " has none",
                                message)))
    return fail(ExitCode::usage, message);
  if (reference || !settings.isProved)
    return success();
  return fail(ExitCode::failed,
              "step @" + getStepName(getModule()) + " of " + file +
                  " is lowered, and is compiled only if it equals the step as "
                  "written; name that with --against=step.mlir");
}

LogicalResult Compilation::load(std::unique_ptr<llvm::MemoryBuffer> text,
                                std::unique_ptr<llvm::MemoryBuffer> written) {
  std::string file = text->getBufferIdentifier().str();
  step.emplace(context, std::move(text), settings.step.text, "compiled",
               errors);
  if (!getModule())
    return failure();
  std::string referenceFile;
  if (written) {
    referenceFile = written->getBufferIdentifier().str();
    reference.emplace(context, std::move(written), settings.step.text,
                      "compared", errors);
    if (!reference->getModule())
      return failure();
  }
  if (failed(check(file)))
    return failure();
  ExitCode code;
  std::string message;
  if (!reference ||
      succeeded(checkReference(getModule(), file, reference->getModule(),
                               referenceFile, settings, code, message)))
    return success();
  return message.empty() ? failure() : fail(code, message);
}

/// The preconditions of a proof, as a child passes them on.
static std::string toText(const ProvedStep &step) {
  return llvm::formatv("{0}",
                       llvm::json::Value(getPreconditions(step.getSummary())));
}

LogicalResult Compilation::lower(const LowerOptions &options) {
  if (!settings.isProved)
    return zero::lower(getModule(), options);
  proved = lowerProved(getModule(), options,
                       reference ? reference->getModule() : ModuleOp());
  if (!proved)
    return failure();
  proving.emplace([&]() -> std::string {
    return proved->isSameButForOrder(getModule()) ? toText(*proved) : "";
  });
  return success();
}

/// A part of the proof, in silence.
static bool hasOrder(ProvedStep &step, ModuleOp lowered) {
  ScopedDiagnosticHandler silence(lowered.getContext(),
                                  [](Diagnostic &) { return success(); });
  return step.hasOrder(lowered);
}

/// A client may have threads, which may have held a lock when the child was
/// made. The child then waits for ever.
static constexpr std::chrono::seconds kProofLimit(60);

/// The child does not look at the order of calls. The errors of a child stay
/// there. So what did not succeed is done again, here and as a whole.
FailureOr<ProofNote> Compilation::finishProof() {
  if (note)
    return *note;
  ProofNote found;
  found.isProved = settings.isProved;
  bool isRead = !proving;
  std::string text;
  if (proving && hasOrder(*proved, getModule()) &&
      succeeded(proving->wait(kProofLimit, text))) {
    llvm::json::Path::Root root;
    if (auto list = llvm::json::parse(text))
      isRead = fromJSON(*list, found.preconditions, root);
    else
      llvm::consumeError(list.takeError());
  }
  proving.reset();
  if (!isRead) {
    if (failed(proveLowered(*proved, getModule())))
      return failure();
    found.preconditions = getPreconditions(proved->getSummary());
  }
  return note.emplace(std::move(found));
}

FailureOr<CompiledStep> Compilation::compile(const CompileOptions &options) {
  // Whoever lowered the step elsewhere may have made anything. Code is made of
  // it only if it is right.
  if (reference && failed(finishProof()))
    return failure();
  FailureOr<CompiledStep> compiled = compileStep(getModule(), options);
  if (failed(compiled))
    return failure();
  if (!settings.maxBytes.isGiven) // the plan of a large model takes a while
    return compiled;
  std::string message;
  if (failed(settings.checkMemory(compiled->getPlan(ProofNote(), {}), message)))
    return fail(ExitCode::failed, message);
  return compiled;
}
