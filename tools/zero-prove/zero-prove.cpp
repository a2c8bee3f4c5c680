//===- zero-prove.cpp - Does a step do what it declares? ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/ZeroDialect.h"
#include "passes/prove/ProveEachPass.h"
#include "tools/driver/Driver.h"
#include "tools/driver/Progress.h"
#include "tools/driver/Tool.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
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
struct Outcome {
  bool isProved = false;
  std::optional<zero::ProofSummary> summary;
  std::string compared; // with what
};

} // namespace

static void prove(ModuleOp module, ModuleOp other,
                  const zero::LowerOptions &options, Outcome &outcome) {
  zero::Progress progress("zero-prove");
  progress.update("proving the step as written", 0, 0);
  bool isLowered = !other && zero::isLogical(module);
  if (isLowered && !options.mesh.empty()) {
    zero::LowerOptions onMesh;
    onMesh.mesh = options.mesh.getValue();
    onMesh.until = std::string("logical");
    if (failed(zero::lower(module, onMesh)))
      return;
  }
  zero::ProvedStep step(module);
  if (!step.isProved())
    return;
  if (other) {
    progress.update("proving the second step", 0, 0);
    progress.setSummary("the first step is proved");
    outcome.compared = "the same step as " + inputs[0];
    outcome.isProved = step.isSameAs(other);
  } else if (isLowered) {
    PassManager pm(module.getContext());
    zero::ProveEachPass::Result result;
    pm.addInstrumentation(std::make_unique<zero::ProveEachPass>(&step, result));
    zero::buildLowerPipeline(pm, options);
    pm.addInstrumentation(std::make_unique<TellPasses>(progress, pm.size()));
    if (failed(pm.run(module)))
      return;
    outcome.isProved = result.broken.empty();
    outcome.compared = "the same step after each of " +
                       std::to_string(result.passes) + " passes, at stage " +
                       std::to_string(options.stage) + ", offload " +
                       options.offload.getValue();
  } else {
    outcome.isProved = true;
  }
  outcome.summary = step.getSummary();
}

/// Prints |outcome|, as words or as JSON.
static int finish(zero::Tool &tool, const Outcome &outcome, double seconds) {
  auto &os = llvm::outs();
  if (json) {
    llvm::json::Object object{{"proved", outcome.isProved},
                              {"seconds", seconds}};
    if (outcome.summary) {
      const zero::ProofSummary &summary = *outcome.summary;
      object["step"] = summary.step;
      object["ranks"] = summary.ranks;
      object["accumulation"] = "any number";
      object["parameters"] = summary.parameters;
      object["elements"] = summary.elements;
      object["preconditions"] =
          llvm::json::Array(zero::getPreconditions(summary));
      if (!outcome.compared.empty())
        object["compared"] = outcome.compared;
    }
    return tool.finish(std::move(object));
  }
  if (!outcome.isProved || !outcome.summary)
    return tool.finish();
  const zero::ProofSummary &summary = *outcome.summary;
  os << "step " << summary.step << ": proved in "
     << llvm::format("%.3f s", seconds) << "\n\n"
     << "  ranks            " << summary.ranks << "\n"
     << "  backward passes  any number\n"
     << "  parameters       " << summary.parameters << ", " << summary.elements
     << " elements\n";
  if (!outcome.compared.empty())
    os << "  compared         " << outcome.compared << "\n";
  os << "\nif the caller keeps these preconditions:\n";
  for (const std::string &precondition : zero::getPreconditions(summary))
    os << "  - " << precondition << "\n";
  return tool.finish();
}

int main(int argc, char **argv) {
  zero::Tool tool("zero-prove", argc, argv);
  zero::LowerFlags flags(category);
  zero::StepFlag stepFlag(category);
  Outcome outcome;
  auto fail = [&](ExitCode code, const llvm::Twine &message) {
    tool.errors.add(code, message);
    return finish(tool, outcome, 0);
  };
  if (!tool.parse(
          category,
          "zero-prove: proves that a training step does what it declares\n\n"
          "  zero-prove step.mlir --mesh=dp=4 --stage=2   prove a logical "
          "step, and its form after each pass\n"
          "  zero-prove lowered.mlir                      prove a step at any "
          "other phase, alone\n"
          "  zero-prove a.mlir b.mlir                     prove that two steps "
          "are equal\n",
          json))
    return finish(tool, outcome, 0);
  if (inputs.empty() || inputs.size() > 2)
    return fail(ExitCode::usage,
                "the command line has " + llvm::Twine(inputs.size()) +
                    " files, expected one step to prove or two to compare");
  zero::LowerOptions options;
  std::string message;
  if (failed(flags.get(options, message)))
    return fail(ExitCode::usage, message);

  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  MLIRContext context(registry);
  zero::LoadedStep first(context, inputs[0], stepFlag, "proved", tool.errors);
  if (!first.getModule())
    return finish(tool, outcome, 0);
  std::optional<zero::LoadedStep> second;
  if (inputs.size() == 2) {
    second.emplace(context, inputs[1], stepFlag, "proved", tool.errors);
    if (!second->getModule())
      return finish(tool, outcome, 0);
  }
  StringRef given = flags.findGiven();
  if (!given.empty() && (second || !zero::isLogical(first.getModule())))
    return fail(ExitCode::usage,
                "--" + given + " applies to the lowering of a logical step, " +
                    (second ? "and two steps are compared as they are"
                            : "and " + inputs[0] + " has none") +
                    "; leave out --" + given);
  if (failed(flags.checkMesh(first.getModule(), zero::describeInput(inputs[0]),
                             message)))
    return fail(ExitCode::usage, message);
  auto start = std::chrono::steady_clock::now();
  prove(first.getModule(), second ? second->getModule() : ModuleOp(), options,
        outcome);
  return finish(
      tool, outcome,
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count());
}
