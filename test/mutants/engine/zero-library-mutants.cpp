//===- zero-library-mutants.cpp - Is a changed library noticed? -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mutations.h"

#include "codegen/kernels/Lower.h"
#include "codegen/library/Compile.h"
#include "codegen/validate/Validate.h"
#include "dialect/zrt/ZrtDialect.h"
#include "tools/driver/Driver.h"

#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"

#include <map>
#include <random>

using namespace mlir;
using namespace zero;
using namespace zero::test;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-library-mutants options");
static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("<logical step.mlir>"),
                                  cl::cat(category));
static cl::opt<unsigned> sample("sample", cl::init(0), cl::cat(category),
                                cl::desc("How many mutants to draw; 0: all"));
static cl::opt<unsigned> seed("seed", cl::init(1), cl::cat(category),
                              cl::desc("Of the sample"));
static cl::opt<std::string> kind("kind", cl::cat(category),
                                 cl::desc("Draw mutants of kinds that contain "
                                          "this text only"));

namespace {
enum class Fate {
  invalid,   ///< does not verify
  caught,    ///< is not the library, and the validator says so
  same,      ///< has the same code
  explained, ///< has other code that does the same: see kExplained
  missed,    ///< has other code, and passes for the library
};

/// What does the same with other code: the kind of mutation, and why.
struct Explanation {
  StringLiteral kind;
  StringLiteral reason;
};
constexpr Explanation kExplained[] = {
    {"zrt.launch segments", "both tables have the same segments"},
    {"arith.addf: operands swapped", "a sum commutes"},
    {"math.fma: operands swapped", "so does a product"},
    {"arith.cmpf: operands swapped", "so does a test for equality"},
    {": rounded to f32", "is rounded to it next"},
    {": rounded to bf16", "comes from it"},
    {": rounded to f16", "comes from it"},
    {"arith.cmpf predicate", "of x - x, which is 0 or nan"},
    {"arith.cmpf: operand from elsewhere",
     "decides only where the next test does"},
    {"arith.select: operand from elsewhere", "as above"},
    {"arith.subf: addf instead", "of 0"},
};
} // namespace

/// The programs of all pipeline stages of |module|.
static FailureOr<std::vector<StageProgram>> getStages(ModuleOp module) {
  auto programs = module.getOps<zrt::ProgramOp>();
  if (programs.empty())
    return failure();
  zrt::ProgramOp program = *programs.begin();
  FailureOr<Tables> tables = buildTables(program);
  if (failed(tables))
    return failure();
  return splitStages(program, *tables);
}

/// The object code of |module|, without the hash of the IR.
static std::string getCode(ModuleOp module) {
  FailureOr<CompiledStep> step = compileStep(module, {});
  if (failed(step))
    return "";
  StringRef hash(reinterpret_cast<const char *>(&step->tables.planHash),
                 sizeof(step->tables.planHash));
  for (size_t at; (at = step->code.find(hash)) != std::string::npos;)
    step->code.erase(at, hash.size());
  return std::move(step->code);
}

/// Compares the library |path| with a mutant of |scheduled|.
static Fate judge(ModuleOp scheduled, const Mutation &mutation, StringRef path,
                  const ValidateOptions &options) {
  OwningOpRef<ModuleOp> mutant = scheduled.clone();
  mutation.apply(getOps(*mutant));
  ScopedDiagnosticHandler quiet(scheduled.getContext(),
                                [](Diagnostic &) { return success(); });
  if (failed(verify(*mutant)))
    return Fate::invalid;
  FailureOr<std::vector<StageProgram>> stages = getStages(*mutant);
  if (failed(stages))
    return Fate::invalid;
  Validation validation;
  std::string message;
  if (failed(validateLibrary(path, *stages, options, validation, message)))
    return Fate::caught;
  if (getCode(*mutant) == getCode(scheduled))
    return Fate::same;
  bool isExplained = llvm::any_of(kExplained, [&](const Explanation &e) {
    return StringRef(mutation.kind).contains(e.kind);
  });
  return isExplained ? Fate::explained : Fate::missed;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  LowerSettings settings;
  LowerFlags flags(settings, category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "zero-library-mutants: compiles a step, and compares the library with "
      "damaged\nprograms, none of which it is\n");
  LowerOptions options;
  std::string message;
  auto fail = [&] {
    llvm::errs() << message << "\n";
    return 2;
  };
  if (failed(settings.get(options, message)))
    return fail();
  DialectRegistry registry;
  registerDriverDialects(registry);
  registerCodegenDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  Errors errors("zero-library-mutants");
  LoadedStep loaded(context, input, /*name=*/"", "mutated", errors);
  ModuleOp module = loaded.getModule();
  if (!module || failed(lower(module, options)))
    return 2;
  FailureOr<CompiledStep> step = compileStep(module, {});
  if (failed(step))
    return 2;
  SmallString<128> path;
  if (llvm::sys::fs::createTemporaryFile("mutants", "so", path))
    return 2;
  llvm::FileRemover remover(path);
  ValidateOptions validate;
  validate.cpu = step->cpu;
  Validation validation;
  if (failed(writeLibrary(*step, path, message)) ||
      failed(
          validateLibrary(path, step->stages, validate, validation, message)))
    return fail();
  if (!validation.tables) {
    llvm::outs() << "{}\n"; // nothing can be judged on this machine
    return 0;
  }

  std::vector<Mutation> mutations;
  addScheduleMutations(module, mutations);
  addOpMutations(module, mutations);
  addNumberMutations(module, mutations);
  addRoundingMutations(module, mutations);
  addAttributeMutations(module, mutations);
  llvm::erase_if(mutations, [](const Mutation &mutation) {
    return !StringRef(mutation.kind).contains(kind);
  });
  std::mt19937 random(seed);
  std::shuffle(mutations.begin(), mutations.end(), random);
  if (sample > 0 && sample < mutations.size())
    mutations.resize(sample);
  llvm::outs().SetUnbuffered();
  std::map<std::string, std::array<unsigned, 5>> counts;
  Ops ops = getOps(module);
  for (const Mutation &mutation : mutations) {
    Fate fate = judge(module, mutation, path, validate);
    ++counts[mutation.kind][int(fate)];
    if (fate == Fate::missed)
      llvm::outs() << "missed " << mutation.kind << " of " << *ops[mutation.op]
                   << "\n";
  }
  llvm::json::Object kinds;
  for (auto &[name, count] : counts)
    kinds[name] = llvm::json::Array(count);
  llvm::outs() << llvm::json::Value(std::move(kinds)) << "\n";
  return 0;
}
