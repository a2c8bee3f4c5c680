//===- zero-explain.cpp - What a step costs, before it runs ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "tools/driver/Progress.h"
#include "tools/driver/Tool.h"
#include "tools/import/StepSource.h"
#include "tools/plan/PlanBytes.h"
#include "tools/plan/PlanTable.h"
#include "tools/zero-explain/Print.h"
#include "tools/zero-explain/Scale.h"
#include "tools/zero-explain/TimelineReport.h"

#include "codegen/host/EmitLibrary.h"
#include "codegen/library/WriteFile.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using zero::Choice;
using zero::ExitCode;
namespace cl = llvm::cl;
namespace json = llvm::json;

static cl::OptionCategory category("zero-explain options");

static cl::opt<std::string>
    machineFlag("machine", cl::value_desc("machine.json"), cl::cat(category),
                cl::desc("Bandwidths of a machine, for times; "
                         "examples/machines has two"));
static cl::opt<std::string> scaleFlag(
    "scale", cl::value_desc("axis"), cl::cat(category),
    cl::desc("Axis of the mesh that gets other sizes, for 8 to 16384 ranks: "
             "memory,\nand times on --machine"));
static cl::opt<double> backwardFlag(
    "backward-ms", cl::value_desc("X"), cl::cat(category),
    cl::desc("Milliseconds of a backward pass on --machine, which hides what "
             "other\nstreams do; a forward pass takes half of it (default 0)"));
static cl::opt<std::string>
    htmlFlag("html", cl::value_desc("page.html"), cl::cat(category),
             cl::desc("Also write a page with the streams and the memory of a "
                      "step over time,\non --machine"));
static zero::OptionText maxBytes{"max-bytes", ""};
static zero::TextFlag
    maxBytesFlag(maxBytes, category, "80GiB",
                 "Memory of a device. The exit code is 1 if the step of "
                 "--stage and\n--offload needs more");
static cl::opt<bool> jsonFlag("json", cl::cat(category), cl::ValueDisallowed,
                              cl::desc("Print the result, or the errors, as "
                                       "one JSON object"));

namespace {
/// What there is to explain.
struct Question {
  zero::LowerOptions options; // of the choice that is told in full
  int64_t maxBytes = 0;       // 0: any
  std::optional<zero::Machine> machine;
  std::vector<zero::ScaledStep> scaled; // with --scale

  const zero::Machine *getMachine() const {
    return machine ? &*machine : nullptr;
  }
};
} // namespace

static LogicalResult readQuestion(const zero::LowerSettings &settings,
                                  Question &question, ExitCode &code,
                                  std::string &message) {
  code = ExitCode::usage;
  if (settings.until.isGiven) {
    message = "--until has no meaning here: only a scheduled step has a plan; "
              "leave out --until";
    return failure();
  }
  if (failed(settings.get(question.options, message)))
    return failure();
  if (failed(zero::readMaxBytes(maxBytes, question.maxBytes, message)))
    return failure();
  for (auto [name, isGiven] :
       {std::pair("--scale", scaleFlag.getNumOccurrences() > 0),
        std::pair("--backward-ms", backwardFlag.getNumOccurrences() > 0),
        std::pair("--html", !htmlFlag.empty())})
    if (isGiven && machineFlag.empty()) {
      message = std::string(name) +
                " estimates times on a machine; give --machine, such as "
                "examples/machines/h200-8x.json";
      return failure();
    }
  if (!(backwardFlag >= 0) || backwardFlag > 1e9) {
    message = llvm::formatv("--backward-ms is a number of milliseconds up to "
                            "1e9, got {0}",
                            double(backwardFlag));
    return failure();
  }
  if (machineFlag.empty())
    return success();
  code = ExitCode::environment;
  auto file = zero::openInput("zero-explain", machineFlag, message);
  if (!file)
    return failure();
  code = ExitCode::failed;
  if (failed(zero::readMachine(file->getBuffer(),
                               zero::describeInput(machineFlag),
                               question.machine.emplace(), message)))
    return failure();
  if (!maxBytes.isGiven)
    question.maxBytes = question.machine->deviceBytes;
  return success();
}

namespace {
/// The step with which stage 3 is explained. Without a step, |reason| says why
/// it cannot be.
struct StepOfStage3 {
  ModuleOp module;
  std::string reason;
};
} // namespace

static bool isChosen(const zero::LowerOptions &options,
                     const Question &question) {
  return options.stage == question.options.stage &&
         options.offload.getValue() == question.options.offload.getValue();
}

/// The costs of all stages, with the state on the device and on the host. What
/// is chosen is among them, even if the step cannot be lowered so, and has its
/// whole plan.
static std::vector<Choice> explainAll(ModuleOp module,
                                      const StepOfStage3 &sharded,
                                      const Question &question) {
  std::vector<Choice> choices;
  zero::LowerOptions options;
  options.copyOptionValuesFrom(question.options);
  zero::Progress progress("zero-explain");
  int64_t done = 0;
  for (const char *offload : {"none", "optimizer", "parameters"})
    for (int stage : {0, 1, 2, 3}) {
      options.stage = stage;
      options.offload = std::string(offload);
      progress.update("stage " + llvm::Twine(stage) + ", offload " + offload,
                      done++, 3 * 4);
      bool isWhole = isChosen(options, question);
      zero::Details details{question.getMachine(), backwardFlag / 1e3};
      bool hasUnits = stage == 3 && sharded.module;
      bool canBe =
          hasUnits || (stage < 3 && llvm::StringRef(offload) != "parameters");
      if (stage == 3 && !hasUnits && !sharded.reason.empty())
        choices.push_back({stage, offload, sharded.reason, {}, {}, {}});
      else if (canBe || isWhole)
        choices.push_back(zero::explain(hasUnits ? sharded.module : module,
                                        options, isWhole ? &details : nullptr));
    }
  return choices;
}

/// What to change where |chosen| needs more memory than there is.
static std::string describeExcess(const Choice &chosen,
                                  llvm::ArrayRef<Choice> choices,
                                  int64_t maxBytes, bool hasUnits) {
  std::string text = zero::describeExcess(chosen.cost.deviceBytes, maxBytes);
  const Choice *best = nullptr;
  for (const Choice &choice : choices)
    if (choice.reason.empty() && choice.cost.deviceBytes <= maxBytes &&
        (!best || choice.cost.hostBytes < best->cost.hostBytes))
      best = &choice;
  if (!best)
    return text + "; it fits at no stage: use more ranks, or other axes of the "
                  "mesh";
  // The import makes the units, so the configuration must say it.
  return text + "; it fits with --" +
         (best->stage == 3 && !hasUnits ? "set=zero_optimization." : "") +
         "stage=" + std::to_string(best->stage) + " --offload=" + best->offload;
}

static json::Object toJson(const Choice &choice) {
  json::Object object{{"stage", choice.stage}, {"offload", choice.offload}};
  if (choice.reason.empty())
    object["cost"] = choice.cost.toJson();
  else
    object["reason"] = choice.reason;
  return object;
}

/// The answer as JSON; with |isWhole| all that the page shows.
static json::Object describe(const Question &question,
                             llvm::ArrayRef<Choice> choices,
                             const Choice &chosen, bool isWhole) {
  json::Array list;
  list.reserve(choices.size());
  for (const Choice &choice : choices)
    list.push_back(toJson(choice));
  json::Object result{{"choices", std::move(list)},
                      {"chosen", toJson(chosen)},
                      {"plan", json::Object(chosen.plan)}};
  if (const zero::Machine *machine = question.getMachine()) {
    json::Array times, timelines;
    for (const json::Object *stage : zero::getStages(chosen.plan))
      times.push_back(zero::getTimes(*stage, *machine).toJson());
    timelines.reserve(chosen.timelines.size());
    for (const zero::Timeline &timeline : chosen.timelines)
      timelines.push_back(zero::describeTimeline(timeline, isWhole));
    result["seconds"] =
        json::Object{{"machine", machine->name}, {"stages", std::move(times)}};
    result["schedule"] = json::Object{
        {"assumptions", zero::describeAssumptions(backwardFlag / 1e3)},
        {"stages", std::move(timelines)}};
  }
  if (!question.scaled.empty()) {
    json::Array steps;
    for (const zero::ScaledStep &step : question.scaled)
      steps.push_back(step.toJson());
    result["scale"] =
        json::Object{{"axis", scaleFlag}, {"steps", std::move(steps)}};
  }
  return result;
}

/// Prints the answer, as words or as JSON, and writes the page.
static int finish(zero::Tool &tool, const Question &question,
                  llvm::ArrayRef<Choice> choices, const Choice &chosen) {
  std::string message;
  if (!htmlFlag.empty() &&
      failed(zero::writeFile(
          htmlFlag,
          zero::makePage(describe(question, choices, chosen, /*isWhole=*/true)),
          message)))
    return tool.fail(ExitCode::environment, message);
  if (jsonFlag)
    return tool.finish(describe(question, choices, chosen, /*isWhole=*/false));
  const zero::Machine *machine = question.getMachine();
  auto &os = llvm::outs();
  zero::printChoices(choices, question.maxBytes, os);
  os << "\n--stage=" << chosen.stage << " --offload=" << chosen.offload << "\n";
  std::string plan;
  llvm::raw_string_ostream(plan) << json::Value(json::Object(chosen.plan));
  zero::printPlanTable(plan, os);
  for (auto [i, stage] : llvm::enumerate(zero::getStages(chosen.plan))) {
    zero::printDetails(*stage, machine, os);
    if (machine)
      zero::printTimeline(chosen.timelines[i], backwardFlag / 1e3, os);
  }
  if (!question.scaled.empty())
    zero::printScale(question.scaled, scaleFlag, *machine, os);
  return tool.finish();
}

int main(int argc, char **argv) {
  zero::Tool tool("zero-explain", argc, argv);
  zero::LowerSettings settings;
  zero::LowerFlags flags(settings, category);
  zero::StepFlag stepFlag(category);
  zero::StepSource source("zero-explain", category);
  if (!tool.parse(
          category,
          "zero-explain: what a training step costs, before it runs\n\n"
          "  zero-explain step.mlir --mesh=dp=64 --max-bytes=80GiB\n"
          "  zero-explain step.mlir --mesh=dp=8 --stage=2 "
          "--machine=examples/machines/h200-8x.json\n"
          "  zero-explain step.mlir --stage=2 --scale=dp "
          "--machine=examples/machines/h200-8x.json\n"
          "  zero-explain --parameters=model.json --recipe=adamw,max_norm=1 "
          "--mesh=dp=4\n"
          "  zero-explain --import-deepspeed=ds_config.json "
          "--model=config.json "
          "--mesh=dp=64\n\n"
          "prints memory and traffic of a rank at all ZeRO stages side by "
          "side, and those of\n--stage and --offload in full: memory by role, "
          "collectives by op, group and type,\nand times on a machine, also on "
          "more ranks. Nothing is compiled.\n",
          jsonFlag))
    return tool.finish();
  Question question;
  ExitCode code;
  std::string message;
  if (failed(source.import(settings, "train", tool.errors)))
    return tool.finish();
  if (failed(readQuestion(settings, question, code, message)))
    return tool.fail(code, message);
  std::unique_ptr<llvm::MemoryBuffer> text =
      source.open(settings, "train", code, message);
  if (!text)
    return tool.fail(code, message);
  std::string file = text->getBufferIdentifier().str();
  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  zero::LoadedStep step(context, std::move(text), stepFlag, "explained",
                        tool.errors);
  if (!step.getModule())
    return tool.finish();
  if (failed(zero::checkLogical(step.getModule(), "explained", file, message)))
    return tool.fail(ExitCode::failed, message);
  if (failed(settings.checkMesh(step.getModule(), file, message)))
    return tool.fail(ExitCode::usage, message);
  StepOfStage3 sharded;
  std::optional<zero::LoadedStep> withUnits;
  if (!step.getModule().getOps<zero::UnitOp>().empty())
    sharded.module = step.getModule();
  else if (auto units = source.importUnits(settings, "train", sharded.reason))
    sharded.module = withUnits
                         .emplace(context, std::move(units), stepFlag,
                                  "explained", tool.errors)
                         .getModule();
  // One module may be both.
  for (ModuleOp module : {step.getModule(), sharded.module})
    if (module)
      if (std::string reason = zero::putOnMesh(module, question.options);
          !reason.empty())
        return tool.fail(ExitCode::failed, reason);
  std::vector<Choice> choices = explainAll(step.getModule(), sharded, question);
  const Choice &chosen = *llvm::find_if(choices, [&](const Choice &choice) {
    return choice.stage == question.options.stage &&
           choice.offload == question.options.offload.getValue();
  });
  if (!chosen.reason.empty())
    return tool.fail(ExitCode::failed, chosen.reason);
  if (scaleFlag.getNumOccurrences()) {
    FailureOr<std::vector<zero::ScaledStep>> scaled =
        zero::scale(chosen.stage == 3 ? sharded.module : step.getModule(),
                    question.options, scaleFlag, *question.machine, message);
    if (failed(scaled))
      return tool.fail(ExitCode::usage, message);
    question.scaled = std::move(*scaled);
  }
  if (maxBytes.isGiven && chosen.cost.deviceBytes > question.maxBytes)
    tool.errors.add(ExitCode::failed,
                    describeExcess(chosen, choices, question.maxBytes,
                                   /*hasUnits=*/!withUnits));
  return finish(tool, question, choices, chosen);
}
