//===- zero-mutants.cpp - Does the proof notice what is wrong? ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Judge.h"
#include "Mutations.h"

#include "codegen/host/EmitLibrary.h"
#include "codegen/host/Tables.h"
#include "dialect/zrt/ZrtDialect.h"
#include "passes/prove/Prove.h"
#include "tools/driver/Driver.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/PrettyStackTrace.h"

#include <map>
#include <random>
#include <unistd.h>

using namespace mlir;
using namespace zero;
using namespace zero::test;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-mutants options");
static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("<logical step.mlir>"),
                                  cl::cat(category));
static cl::opt<unsigned> sample("sample", cl::init(0), cl::cat(category),
                                cl::desc("How many mutants to draw; 0: all"));
static cl::opt<unsigned> seed("seed", cl::init(1), cl::cat(category),
                              cl::desc("Of the sample and of gradients"));
static cl::opt<std::string> kind("kind", cl::cat(category),
                                 cl::desc("Draw mutants of kinds that contain "
                                          "this text only"));
static cl::list<unsigned>
    only("only", cl::CommaSeparated, cl::value_desc("N,..."), cl::cat(category),
         cl::desc("Try mutants N, ... alone, and print them"));

namespace {

/// What became of a mutant.
enum class Fate {
  invalid,    ///< does not verify
  caught,     ///< changes the step, and the proof says so
  harmless,   ///< changes nothing, and the proof accepts it
  costly,     ///< changes bytes or traffic alone, whatever the proof says
  explained,  ///< the runs cannot show what the proof rejects: see kExplained
  suspicious, ///< the runs show no change, and the proof rejects it
  missed,     ///< changes the step, and the proof accepts it
};

/// What is wrong, and the interpreter cannot see: part of the kind, part of the
/// proof's message, and why.
struct Explanation {
  StringLiteral kind;
  StringLiteral message;
  StringLiteral reason;
};
constexpr Explanation kExplained[] = {
    {"", " counts as ",
     "roles move no byte; they decide what is accounted where"},
    {"zrt.scalar_state slots", " before this step writes it",
     "the interpreter keeps slots that no checkpoint saves"},
    {"zrt.scalar_state changes_on_skip", "changes where a step is not applied",
     "nothing runs by it; it says what readers may rely on"},
    {"zrt.transition", "fills gradients where no backward pass is open",
     "where none is optional it fills those of steps that are refused"},
    {"zrt.fill_missing", " did not arrive, it reads ",
     "where none is optional a step without one is refused, whatever it reads"},
    {"zrt.transition handlers", " did not arrive, it reads ", "as above"},
    {"zrt.accumulator", "",
     "nothing runs by it; it says what a checkpoint within a step saves"},
    {"zrt.program batches", "", "the same"},
    {"zrt.buffer type", ": a checkpoint between two backward passes would not ",
     "the type of an accumulator says what ranks have of it; the same"},
    {"zrt.program inputs", ", which the caller passes to apply",
     "what the caller passes there is written before it is read"},
    {"zrt.transition handlers: entry twice",
     "what earlier backward passes left is lost",
     "@reopen: what one rank alone has it keeps"},
    {"zrt.transition", "ranks meet where a backward pass begins",
     "the interpreter refuses unequal backward passes before they begin"},
    {"zrt.transition event", " in state '",
     "where begin_last is not listed it is a begin, and nobody calls what is "
     "listed instead"},
    {"zrt.transition event", " leads to state '", "as above"},
    {"zero.optimizer hyper_names", " is hyperparameter '",
     "the interpreter counts inputs; callers find them by name"},
    {"arith.select: operand from elsewhere",
     "changes where no gradient of the group arrived",
     "a power of a beta is not 0, so a group is skipped as with 1"},
    {"zero.group", "",
     "nothing runs by it; it says which groups a program may leave as they "
     "are"},
    {"zero.bucket type: another element type", " taken in ",
     "the bucket claims one type, and sums in another as the step does; no "
     "call "
     "reads the claim"},
    {"zrt.keep_on_root: twice", "", "what one rank alone has it keeps"},
    {": another stream", " and another collective on stream ",
     "in the interpreter collectives of two streams never wait for each other"},
    {"", " the outcome is 0 or 3: ",
     "in a step of one backward pass no rank makes another number of them"},
    {"zrt.transition", "the order of arrivals",
     "the interpreter knows one order"},
    {"zrt.transition handlers", " holds select(", "as above"},
    {"zrt.transition", "commits a step that is not being applied",
     "what apply commits is what counts"},
    {"zrt.pack", "packs an arriving gradient",
     "to store it twice is to store it"},
    {"zrt.transition handlers", "packs an arriving gradient",
     "to store it twice is to store it"},
    {"zrt.load_slot slots",
     "whether the step is applied depends on the result of 'math.sqrt'",
     "a norm is finite where its sum is; the proof knows the sums alone"},
    {"zrt.load_slot slots", "whether the step is applied depends on loss_scale",
     "as above: a norm that is divided by it"},
    {"zrt.load_slot index",
     "whether the step is applied depends on the result of 'arith.mulf'",
     "on one rank, the square of a count of missing gradients is compared with "
     "itself; it may be rounded where a count of backward passes is not"},
    {"zrt.load_slot slots", "whether the step is applied depends on input",
     "a square of it that is compared with itself: no script has a nan there"},
    {"zrt.load_slot slots", "the outcome depends on slot 0 of @outcome",
     "the same, and no outcome is nan"},
    {"rounded to bf16", "gradients that are finite overflow there",
     "no script has gradients between the largest of bf16 and that of f32"},
    {": rounded to bf16", "which only converts parameters, once",
     "what travels in bf16 it does not change"},
    {": rounded to f16", "which only converts parameters, once",
     "frozen parameters are whole numbers below 128"},
    {"zrt.store_slot: 0 where the step is", " times 2^-",
     "AdamW's eps is 0 where the step is not applied; the proof asks how small "
     "a number may be before it knows the outcome"},
    {"math.copysign: rounded", "", "a sign is exact in any type"},
    {"arith.select: rounded", "'m' in new ", "of a sign, as above: Lion's"},
    {"arith.mulf: rounded", "'m' in new ", "the sign of it alone is used"},
    {"math.fma: rounded", "the old 'm' in new ", "as above: Lion's"},
    {"or a sum beyond", "", "of f16 no sum of squares is so large"},
    {"arith.mulf: rounded to f32", "gradients that are finite overflow there",
     "squares of what is kept in f16 do not: the proof looks at no range"},
    {"arith.mulf: rounded to f32", " taken in f32", "nor do they round there"},
    {"zrt.kernel argument: rounded", "a further use of a parameter",
     "each element is in one piece of its gradient, and 0 in the others"},
    {": rounded", "a constant in new master went through",
     "an epsilon is lost beside a root"},
    {"zrt.transition handlers: entry twice",
     "what earlier backward passes left is lost",
     "what one rank alone has it keeps"},
    {"zero.mesh axes", "dp^", "an axis of one rank divides by nothing"},
    {"zero.mesh axes", "runs on",
     "ranks are numbered otherwise, over axes that are treated alike"},
    {"arith.", "1.79769313e+308",
     "no script brings the loss scale to its limits"},
    {"arith.",
     "where ranks made different numbers of backward passes, the outcome is ",
     "where some ranks wait for each other, the interpreter refuses them "
     "before they apply"},
    {"arith.",
     "the step is applied where ranks made different numbers of backward "
     "passes",
     "as above"},
    {"arith.", "copysign(",
     "a sign hides most changes of what it is the sign of"},
    {"math.", "copysign(", "as above"},
    {"zrt.store_slot: operand", "select(cmpf oeq(0, ", "as above: Lion's"},
    {"arith.mulf: operand from elsewhere", "inverse(1 + ",
     "0 times a quotient is 0 unless that divides by 0"},
    {"zero.prepare", "depends on the outcome",
     "it is 0 where a step is applied"},
    {"zero.update_bucket: operand", "old '",
     "counters of two groups are equal until a checkpoint is loaded"},
    {"zrt.store_slot: operand", "old '", "as above"},
    {"zrt.load_slot slots", "old '", "as above"},
    {"over itself", "", "what is 0 in no run may be 0 to the proof"},
    {"times and over an argument", "", "as above"},
    {"plus 0 times itself", "", "as above: a root of a sum of squares"},
    {"zrt.launch sum", " that some pipeline stages only write",
     "stages that share a slot add up like stages with slots of their own"},
};

struct Judgement {
  Fate fate = Fate::invalid;
  std::string message;
  double distance = 0;
};

/// A sum in another order is off by less, where numbers are f32.
constexpr double kCoarse = 1e-6;

/// One step, lowered, and all that is needed to judge what is made of it.
class Bench {
public:
  Bench(ModuleOp logical, ModuleOp lowered)
      : logical(logical), lowered(lowered), subject(getSubject(logical)) {
    before.push_back(
        run(lowered, subject, Script::many, Arithmetic::F64, seed));
    typed = run(lowered, subject, Script::many, Arithmetic::Typed, seed);
    precision = getDistance(before[0], typed);
    few = run(lowered, subject, Script::few, Arithmetic::F64, seed);
    errors = getErrors(
        few, run(lowered, subject, Script::few, Arithmetic::Typed, seed));
    for (Arithmetic arithmetic : {Arithmetic::F64, Arithmetic::Typed})
      large.push_back(run(lowered, subject, Script::large, arithmetic, seed));
    lowered.walk([&](zrt::EventOp) { isScheduled = true; });
  }
  bool isSound();
  Judgement judge(const Mutation &mutation);

private:
  double getChange(ModuleOp mutant, bool eachBit, unsigned draw);
  double getChangeInOrders(ModuleOp mutant);

  ModuleOp logical;
  ModuleOp lowered;
  Subject subject;
  std::vector<Behaviour> before; // by draw
  std::vector<Behaviour> large;  // by arithmetic
  Behaviour few;
  Behaviour typed; // before[0] in its types
  double precision = 0;
  std::vector<double> errors; // of few steps in their types, by series
  std::unique_ptr<ProvedStep> reference;
  unsigned uses = 0;
  bool isScheduled = false;
  std::vector<Behaviour> walks; // in program order
};

} // namespace

/// Bytes and traffic, as the plan has them; nothing before there is a plan.
static std::string getCost(ModuleOp module) {
  auto programs = module.getOps<zrt::ProgramOp>();
  if (programs.empty())
    return "";
  FailureOr<Tables> tables = buildTables(*programs.begin());
  if (failed(tables))
    return "";
  tables->planHash = 0; // of everything
  FailureOr<std::vector<StageProgram>> stages =
      splitStages(*programs.begin(), *tables);
  return succeeded(stages) ? emitPlan(*stages, *tables, "", {}, {}) : "";
}

bool Bench::isSound() {
  reference = std::make_unique<ProvedStep>(logical);
  return !before[0].failed && reference->isProved() &&
         reference->isSameAs(lowered) && getChangeInOrders(lowered) == 0 &&
         llvm::none_of(walks, [](auto &walk) { return walk.failed; });
}

/// Gradients that arrive early and late, as tensors and in views, for a caller
/// that reads parameters and for one that does not.
double Bench::getChangeInOrders(ModuleOp mutant) {
  for (unsigned i = 0; isScheduled && i < 8; ++i) {
    if (walks.size() <= i)
      walks.push_back(runWalk(lowered, subject, seed + i, /*order=*/0));
    uint64_t order = i + 1;
    if (double change =
            getDistance(walks[i], runWalk(mutant, subject, seed + i, order)))
      return change;
  }
  return 0;
}

double Bench::getChange(ModuleOp mutant, bool eachBit, unsigned draw) {
  while (before.size() <= draw)
    before.push_back(run(lowered, subject, Script::many, Arithmetic::F64,
                         seed + before.size()));
  const Behaviour &expected = before[draw];
  Behaviour after =
      run(mutant, subject, Script::many, Arithmetic::F64, seed + draw);
  double change = getDistance(expected, after);
  if (change > 1e-9 || after.failed)
    return change;
  if (draw > 0)
    return 0;
  // Bounds that only large numbers are beyond.
  for (Arithmetic arithmetic : {Arithmetic::F64, Arithmetic::Typed}) {
    bool isTyped = arithmetic == Arithmetic::Typed;
    change = getDistance(large[isTyped],
                         run(mutant, subject, Script::large, arithmetic, seed));
    if (change > (isTyped ? 4 * precision : 1e-9))
      return change;
  }
  // Sums in another order are the same step; narrower numbers are not.
  Behaviour now = run(mutant, subject, Script::many, Arithmetic::Typed, seed);
  double distance = getDistance(expected, now);
  if (distance > 4 * precision)
    return distance;
  Behaviour rounded =
      run(mutant, subject, Script::few, Arithmetic::Typed, seed);
  if (rounded.numbers.size() != few.numbers.size())
    return HUGE_VAL;
  for (auto [was, is] : llvm::zip_equal(errors, getErrors(few, rounded)))
    if (is > 4 * was && is > kCoarse)
      return is;
  // Other roundings may hide one. It changes the order of no sum, so that each
  // bit counts.
  return eachBit ? getDistance(typed, now) : 0;
}

Judgement Bench::judge(const Mutation &mutation) {
  Judgement judgement;
  OwningOpRef<ModuleOp> mutant = lowered.clone();
  mutation.apply(getOps(*mutant));
  ScopedDiagnosticHandler handler(
      lowered.getContext(), [&](Diagnostic &diagnostic) {
        if (judgement.message.empty() &&
            diagnostic.getSeverity() == DiagnosticSeverity::Error)
          judgement.message = diagnostic.str();
        return success();
      });
  if (failed(verify(*mutant)))
    return judgement;
  // What is known of numbers is kept: now and then a new start.
  if (uses++ % 256 == 0)
    reference = std::make_unique<ProvedStep>(logical);
  judgement.message.clear();
  bool isAccepted = reference->isSameAs(*mutant);
  // What is declared in a narrow type may be rounded to it more than once.
  bool eachBit =
      !isAccepted && StringRef(mutation.kind).contains(": rounded to ");
  std::string message = judgement.message;
  // One that is rejected gets some more chances to show why.
  if (isScheduled)
    judgement.distance = getChangeInOrders(*mutant);
  else
    for (unsigned draw = 0; draw < (isAccepted ? 1 : 12); ++draw)
      if ((judgement.distance = getChange(*mutant, eachBit, draw)) > 0)
        break;
  // Of the proof, or else of the interpreter.
  if (!isAccepted)
    judgement.message = message;
  bool isChanged = judgement.distance > 1e-9 ||
                   getInterface(*mutant) != getInterface(lowered);
  if (!isChanged && getCost(*mutant) != getCost(lowered)) {
    judgement.fate = Fate::costly;
    return judgement;
  }
  judgement.fate = isAccepted ? (isChanged ? Fate::missed : Fate::harmless)
                              : (isChanged ? Fate::caught : Fate::suspicious);
  if (judgement.fate == Fate::suspicious &&
      llvm::any_of(kExplained, [&](const Explanation &explanation) {
        return StringRef(mutation.kind).contains(explanation.kind) &&
               StringRef(message).contains(explanation.message);
      }))
    judgement.fate = Fate::explained;
  return judgement;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  LowerSettings settings;
  LowerFlags flags(settings, category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "zero-mutants: damages a lowered step in every way its operators know, "
      "and compares\nwhat the proof says with what the interpreter does\n");
  LowerOptions options;
  std::string message;
  if (failed(settings.get(options, message))) {
    llvm::errs() << message << "\n";
    return 2;
  }
  DialectRegistry registry;
  registerDriverDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  Errors errors("zero-mutants");
  LoadedStep loaded(context, input, /*name=*/"", "mutated", errors);
  if (!loaded.getModule())
    return 2;
  LowerOptions onMesh;
  onMesh.mesh = options.mesh.getValue();
  onMesh.until = std::string("logical");
  if (failed(lower(loaded.getModule(), onMesh)))
    return 2;
  OwningOpRef<ModuleOp> lowered = loaded.getModule().clone();
  if (failed(lower(*lowered, options)))
    return 2;
  Bench bench(loaded.getModule(), *lowered);
  if (!bench.isSound()) {
    llvm::errs() << "the step itself is not proved\n";
    return 2;
  }

  std::vector<Mutation> mutations;
  if (options.until == "scheduled") {
    addScheduleMutations(*lowered, mutations);
  } else {
    addOpMutations(*lowered, mutations);
    addNumberMutations(*lowered, mutations);
    addRoundingMutations(*lowered, mutations);
    addOutcomeMutations(*lowered, mutations);
    addAttributeMutations(*lowered, mutations);
  }
  std::vector<unsigned> drawn;
  for (auto [index, mutation] : llvm::enumerate(mutations))
    if (StringRef(mutation.kind).contains(kind))
      drawn.push_back(index);
  for (unsigned index : only)
    if (index >= mutations.size()) {
      llvm::errs() << "--only=" << index << ": there are " << mutations.size()
                   << " mutants\n";
      return 2;
    }
  if (!only.empty()) {
    drawn.assign(only.begin(), only.end());
  } else if (sample > 0 && sample < drawn.size()) {
    std::mt19937 random(seed);
    std::shuffle(drawn.begin(), drawn.end(), random);
    drawn.resize(sample);
  }

  llvm::outs().SetUnbuffered();
  std::map<std::string, std::array<unsigned, 7>> counts;
  Ops ops = getOps(*lowered);
  for (unsigned index : drawn) {
    const Mutation &mutation = mutations[index];
    llvm::PrettyStackTraceFormat trace("mutant %u: %s", index,
                                       mutation.kind.c_str());
    alarm(300);
    Judgement judgement = bench.judge(mutation);
    alarm(0);
    ++counts[mutation.kind][int(judgement.fate)];
    bool isTold =
        judgement.fate == Fate::missed || judgement.fate == Fate::suspicious;
    if (!isTold && only.empty())
      continue;
    static constexpr StringLiteral words[] = {
        "invalid",   "caught",     "harmless", "costly",
        "explained", "suspicious", "missed"};
    llvm::outs() << words[int(judgement.fate)] << " " << index << " "
                 << mutation.kind << " at " << ops[mutation.op]->getLoc()
                 << " [" << judgement.distance << "] "
                 << StringRef(judgement.message).take_front(300) << "\n";
    if (!only.empty()) {
      OwningOpRef<ModuleOp> mutant = lowered->clone();
      mutation.apply(getOps(*mutant));
      mutant->print(llvm::outs());
    }
  }
  llvm::json::Object kinds;
  for (auto &[kind, count] : counts)
    kinds[kind] = llvm::json::Array(count);
  llvm::outs() << llvm::json::Value(std::move(kinds)) << "\n";
  return 0;
}
