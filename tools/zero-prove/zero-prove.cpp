//===- zero-prove.cpp - Does a step do what it declares? ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/ZeroDialect.h"
#include "passes/prove/ProveEachPass.h"
#include "tools/driver/Driver.h"
#include "tools/driver/Progress.h"
#include "tools/driver/Tool.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <chrono>

using namespace mlir;
using zero::ExitCode;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-prove options");

static cl::list<std::string> inputs(cl::Positional, cl::desc("<step.mlir>..."),
                                    cl::cat(category));
static cl::opt<bool>
    json("json", cl::cat(category), cl::ValueDisallowed,
         cl::desc("Print the result, or the errors, as one JSON "
                  "object"));

namespace {

/// Tells |progress| after which pass the step is compared.
class TellPasses : public PassInstrumentation {
public:
  TellPasses(zero::Progress &progress, int64_t total)
      : progress(progress), total(total) {}

  void runBeforePass(Pass *pass, Operation *) override {
    progress.update("proving the step after --" + pass->getArgument(), done,
                    total);
    progress.setSummary("the step as written is proved, and the same after " +
                        llvm::Twine(done) + " of " + llvm::Twine(total) +
                        " passes");
    ++done;
  }

private:
  zero::Progress &progress;
  int64_t done = 0;
  int64_t total;
};

/// What was found, for the table and for JSON.
struct Answer {
  bool isConsistent = false;
  std::optional<zero::ProofSummary> summary;
  std::string reference; // the file; empty: it was compared with no step
  bool isOther = false;  // that of another step
  std::string passes;    // after which it was compared, too
};

/// What is to be proved.
struct Steps {
  ModuleOp module;
  ModuleOp reference; // null: a logical step is compared with itself
  bool isLowered;     // by this tool
  bool areEqual;      // the reference is to be as the module, too
};

} // namespace

static void prove(const Steps &steps, const zero::LowerOptions &options,
                  Answer &outcome) {
  ModuleOp module = steps.module;
  zero::Progress progress("zero-prove");
  progress.update("proving the step as written", 0, 0);
  if (steps.isLowered) {
    zero::LowerOptions onMesh;
    onMesh.mesh = options.mesh.getValue();
    onMesh.until = std::string("logical");
    if (failed(zero::lower(module, onMesh)))
      return;
  }
  zero::ProvedStep step(steps.reference ? steps.reference : module);
  if (!step.isProved())
    return;
  if (steps.reference) {
    progress.update("proving the second step", 0, 0);
    progress.setSummary("the first step is proved");
    if (!step.isSameAs(module))
      return;
    // A step may be wider than its reference, and two equal steps may not.
    if (steps.areEqual) {
      progress.update("proving the first step by the second", 0, 0);
      zero::ProvedStep second(module);
      if (!second.isProved() || !second.isSameAs(steps.reference))
        return;
    }
  }
  if (steps.isLowered) {
    PassManager pm(module.getContext());
    zero::ProveEachPass::Result result;
    pm.addInstrumentation(std::make_unique<zero::ProveEachPass>(&step, result));
    zero::buildLowerPipeline(pm, options);
    pm.addInstrumentation(std::make_unique<TellPasses>(progress, pm.size()));
    if (failed(pm.run(module)) || !result.broken.empty())
      return;
    outcome.passes = std::to_string(result.passes) + " passes, at stage " +
                     std::to_string(options.stage) + ", offload " +
                     options.offload.getValue();
  }
  outcome.isConsistent = true;
  outcome.summary = step.getSummary();
}

static int finishJson(zero::Tool &tool, const Answer &outcome, double seconds) {
  bool isCompared = outcome.isConsistent && !outcome.reference.empty();
  llvm::json::Object object{
      {"proved", isCompared}, {"compared", nullptr}, {"seconds", seconds}};
  if (isCompared)
    object["compared"] = outcome.reference;
  if (outcome.summary) {
    const zero::ProofSummary &summary = *outcome.summary;
    object["step"] = summary.step;
    object["ranks"] = summary.ranks;
    object["accumulation"] =
        summary.oneBackward ? llvm::json::Value(1) : "any number";
    object["parameters"] = summary.parameters;
    object["elements"] = summary.elements;
    object["preconditions"] =
        llvm::json::Array(zero::getPreconditions(summary));
  }
  if (!outcome.passes.empty())
    object["passes"] = outcome.passes;
  return tool.finish(std::move(object));
}

/// Prints |outcome|, as words or as JSON.
static int finish(zero::Tool &tool, const Answer &outcome, double seconds) {
  // A step that is compared with none does not do what nobody declared.
  bool isCompared = !outcome.reference.empty();
  auto getCode = [&](int code) {
    return outcome.isConsistent && !isCompared && tool.errors.empty()
               ? static_cast<int>(ExitCode::notCompared)
               : code;
  };
  if (json)
    return getCode(finishJson(tool, outcome, seconds));
  if (!outcome.summary)
    return tool.finish();
  auto &os = llvm::outs();
  const zero::ProofSummary &summary = *outcome.summary;
  os << "step " << summary.step << ": "
     << (isCompared ? "proved in "
                    : "consistent by itself; not compared with a step, in ")
     << llvm::format("%.3f s", seconds) << "\n";
  if (!isCompared)
    os << "pass --against=step.mlir, the step as written, to prove that it is "
          "that step\n";
  os << "\n  ranks            " << summary.ranks << "\n"
     << "  backward passes  " << (summary.oneBackward ? "one" : "any number")
     << "\n"
     << "  parameters       " << summary.parameters << ", "
     << zero::countOf(summary.elements, "element") << "\n";
  if (isCompared) {
    os << "  compared         the same step ";
    if (outcome.isOther)
      os << "as " << outcome.reference;
    if (!outcome.passes.empty())
      os << (outcome.isOther ? ", and " : "") << "after each of "
         << outcome.passes;
    os << "\n";
  }
  os << "\nif the caller keeps these preconditions:\n";
  for (const std::string &precondition : zero::getPreconditions(summary))
    os << "  - " << precondition << "\n";
  return getCode(tool.finish());
}

int main(int argc, char **argv) {
  zero::Tool tool("zero-prove", argc, argv);
  zero::LowerSettings settings;
  zero::LowerFlags flags(settings, category);
  zero::StepFlag stepFlag(category);
  zero::AgainstFlag against(category);
  Answer outcome;
  auto fail = [&](ExitCode code, const llvm::Twine &message) {
    tool.errors.add(code, message);
    return finish(tool, outcome, 0);
  };
  if (!tool.parse(
          category,
          "zero-prove: proves that a training step does what it declares\n\n"
          "  zero-prove step.mlir --mesh=dp=4 --stage=2   prove a logical "
          "step, and its form after each pass\n"
          "  zero-prove lowered.mlir --against=step.mlir  prove that a step at "
          "any phase is the written one\n"
          "  zero-prove lowered.mlir                      the same without a "
          "step: whether it is consistent,\n"
          "                                               exit code 4\n"
          "  zero-prove a.mlir b.mlir                     prove that two steps "
          "of any phase are equal:\n"
          "                                               b is compared with "
          "a, "
          "and a with b\n",
          json))
    return finish(tool, outcome, 0);
  if (inputs.empty() || inputs.size() > 2)
    return fail(ExitCode::usage,
                "the command line has " + llvm::Twine(inputs.size()) +
                    " files, expected one step to prove or two to compare");
  bool isAgainst = against.getNumOccurrences() > 0;
  if (isAgainst && inputs.size() == 2)
    return fail(ExitCode::usage,
                "two steps are compared with each other; leave out --against, "
                "or the second file");
  zero::LowerOptions options;
  std::string message;
  if (failed(settings.get(options, message)))
    return fail(ExitCode::usage, message);

  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  MLIRContext context(registry);
  zero::LoadedStep first(context, inputs[0], stepFlag, "proved", tool.errors);
  if (!first.getModule())
    return finish(tool, outcome, 0);
  std::optional<zero::LoadedStep> second;
  if (isAgainst || inputs.size() == 2) {
    second.emplace(context, isAgainst ? against : inputs[1], stepFlag,
                   isAgainst ? "compared" : "proved", tool.errors);
    if (!second->getModule())
      return finish(tool, outcome, 0);
  }
  std::string file = zero::describeInput(inputs[0]).str();
  Steps steps{first.getModule(), ModuleOp(), /*isLowered=*/false,
              /*areEqual=*/false};
  if (inputs.size() == 2)
    steps = {second->getModule(), first.getModule(), /*isLowered=*/false,
             /*areEqual=*/true};
  else
    steps.isLowered = zero::isLogical(steps.module);
  if (!steps.isLowered &&
      failed(settings.checkNone(isAgainst,
                                inputs.size() == 2
                                    ? "two steps are compared as they are"
                                    : file + " has none",
                                message)))
    return fail(ExitCode::usage, message);
  if (steps.isLowered &&
      failed(settings.checkMesh(steps.module, file, message)))
    return fail(ExitCode::usage, message);
  if (isAgainst) {
    steps.reference = second->getModule();
    ExitCode code;
    if (failed(zero::checkReference(steps.module, file, steps.reference,
                                    zero::describeInput(against), settings,
                                    code, message)))
      return message.empty() ? finish(tool, outcome, 0) : fail(code, message);
  }
  outcome.isOther = steps.reference != nullptr;
  if (isAgainst)
    outcome.reference = zero::describeInput(against);
  else if (steps.reference || steps.isLowered)
    outcome.reference = file;
  auto start = std::chrono::steady_clock::now();
  prove(steps, options, outcome);
  return finish(
      tool, outcome,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count());
}
