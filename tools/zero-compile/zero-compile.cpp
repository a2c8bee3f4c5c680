//===- zero-compile.cpp - Compiles a step ahead of time -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Lower.h"
#include "codegen/library/Compile.h"
#include "passes/pipeline/Pipelines.h"
#include "tools/driver/Driver.h"
#include "tools/zero-compile/Outputs.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

#include <chrono>

using namespace mlir;
namespace cl = llvm::cl;

static cl::OptionCategory category("zero-compile options");

static cl::opt<std::string> input(cl::Positional, cl::desc("<step.mlir>"),
                                  cl::init("-"), cl::cat(category));
static cl::opt<std::string>
    output("o", cl::value_desc("folder"), cl::init("."), cl::cat(category),
           cl::desc("Folder of libNAME.so, NAME.h and NAME.plan.json"));
static cl::opt<std::string>
    name("name", cl::cat(category),
         cl::desc("What the C functions begin with; default: the step's name"));
enum class Emit { mlir, llvmIR, ptx, object, library };
static cl::opt<Emit>
    emit("emit", cl::init(Emit::library), cl::cat(category),
         cl::desc("What to write; text goes to stdout"),
         cl::values(clEnumValN(Emit::mlir, "mlir", "IR after --until"),
                    clEnumValN(Emit::llvmIR, "llvm", "LLVM IR"),
                    clEnumValN(Emit::ptx, "ptx", "PTX; needs --target=cuda"),
                    clEnumValN(Emit::object, "obj", "NAME.o, header and plan"),
                    clEnumValN(Emit::library, "lib",
                               "libNAME.so, header and plan (default)")));
static cl::opt<std::string>
    cpu("cpu", cl::init("x86-64-v3"), cl::cat(category),
        cl::desc("x86-64-v3 (default), x86-64-v4 or native; checked when the "
                 "library is loaded"));
static cl::opt<std::string> target(
    "target", cl::init("cpu"), cl::cat(category),
    cl::value_desc("cpu|cuda[:sm_90,...]"),
    cl::desc(
        "What kernels are compiled for (default cpu). cuda: also PTX, which "
        "the driver compiles for any GPU from sm_80 on; with names, machine "
        "code for these as well, which needs ptxas"));
static cl::opt<bool> printPlan("print-plan", cl::cat(category),
                               cl::desc("Print the plan as a table"));
static cl::opt<bool>
    noProve("no-prove", cl::cat(category),
            cl::desc("Do not prove that the library does what the step "
                     "declares"));
static cl::opt<bool> json("json", cl::cat(category),
                          cl::desc("Print what was done as JSON"));

/// Prints bytes and collectives of |plan|, or of one stage of it.
static void printStageTable(const llvm::json::Object &plan) {
  auto &os = llvm::outs();
  os << "bytes per rank          one backward   several backwards\n";
  const auto *bytes = plan.getObject("bytes_per_rank");
  for (StringRef space : {"device", "host"}) {
    const auto *one = bytes->getObject("one_backward")->getObject(space);
    const auto *more = bytes->getObject("several_backwards")->getObject(space);
    for (StringRef role :
         {"parameter", "gradient", "accumulator", "state", "staging"}) {
      int64_t a = *one->getInteger(role), b = *more->getInteger(role);
      if (a || b || space == "device")
        os << llvm::format("  %-6s %-12s %15lld %19lld\n", space.data(),
                           role.data(), (long long)a, (long long)b);
    }
  }
  os << "\ntraffic per rank   all_reduce  scalars  reduce_scatter  all_gather"
        "      bytes sent    bytes copied\n";
  const auto *traffic = plan.getObject("traffic_per_rank");
  for (StringRef when : {"first_backward", "each_later_backward", "apply"}) {
    const auto *row = traffic->getObject(when);
    os << llvm::format(
        "  %-20s %6lld %8lld %15lld %11lld %15lld "
        "%15lld\n",
        when.data(), (long long)*row->getInteger("all_reduces"),
        (long long)*row->getInteger("scalar_all_reduces"),
        (long long)*row->getInteger("reduce_scatters"),
        (long long)*row->getInteger("all_gathers"),
        (long long)*row->getInteger("bytes_sent"),
        (long long)*row->getInteger("bytes_copied_between_spaces"));
  }
}

/// Prints the tables of |text|, which this tool has just made.
static void printPlanTable(StringRef text) {
  llvm::Expected<llvm::json::Value> plan = llvm::json::parse(text);
  if (!plan) {
    llvm::consumeError(plan.takeError());
    return;
  }
  const llvm::json::Object &root = *plan->getAsObject();
  auto &os = llvm::outs();
  os << "step " << *root.getString("step") << ", " << *root.getInteger("ranks")
     << " ranks, ";
  if (size_t frozen = root.getArray("frozen")->size())
    os << frozen << " frozen parameters, ";
  os << root.getArray("parameters")->size() << " parameters in ";
  const llvm::json::Array *stages = root.getArray("stages");
  if (!stages) {
    os << root.getArray("buckets")->size() << " buckets\n\n";
    return printStageTable(root);
  }
  os << stages->size() << " stages\n";
  for (const llvm::json::Value &value : *stages) {
    const llvm::json::Object &stage = *value.getAsObject();
    os << "\nstage";
    for (const llvm::json::Value &on : *stage.getArray("on"))
      os << " " << *on.getAsObject()->getString("axis") << "="
         << *on.getAsObject()->getInteger("coordinate");
    os << ", " << stage.getArray("buckets")->size() << " buckets\n";
    printStageTable(stage);
  }
}

static int fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "zero-compile") << message << "\n";
  return 1;
}

/// Writes the files of |step| below |output|; their paths go to |files|.
static LogicalResult writeFiles(const zero::CompiledStep &step,
                                SmallVectorImpl<std::string> &files,
                                std::string &message) {
  if (std::error_code error = llvm::sys::fs::create_directories(output)) {
    message = "cannot create folder '" + output + "': " + error.message();
    return failure();
  }
  if (!llvm::sys::fs::is_directory(output)) {
    message = "'" + output + "' is no folder";
    return failure();
  }
  zero::Outputs outputs;
  auto add = [&](const llvm::Twine &name, auto write) {
    SmallString<128> path(output);
    llvm::sys::path::append(path, name);
    files.push_back(path.str().str());
    return outputs.add(path, write, message);
  };
  auto addText = [&](const llvm::Twine &name, StringRef text) {
    return add(name, [&message, text](StringRef path) {
      return zero::writeFile(path, text, message);
    });
  };
  LogicalResult code =
      emit == Emit::library
          ? add("lib" + step.name + ".so",
                [&](StringRef path) {
                  return zero::writeLibrary(step, path, message);
                })
          : addText(step.name + ".o", step.code);
  return success(succeeded(code) &&
                 succeeded(addText(step.name + ".h", step.header)) &&
                 succeeded(addText(step.name + ".plan.json", step.plan)) &&
                 succeeded(outputs.commit(message)));
}

/// What --target says of CUDA; none for a CPU.
static LogicalResult getCudaTarget(std::optional<zero::CudaTargetOptions> &cuda,
                                   std::string &message) {
  auto [kind, archs] = llvm::StringRef(target).split(':');
  if (kind == "cpu" && target == "cpu")
    return success();
  if (kind != "cuda") {
    message = "--target must be cpu or cuda[:sm_90,...], got '" + target + "'";
    return failure();
  }
  cuda.emplace();
  if (target == "cuda")
    return success();
  SmallVector<llvm::StringRef> list;
  archs.split(list, ',');
  for (llvm::StringRef arch : list) {
    if (failed(zero::checkCudaArch(arch, message))) {
      message = "--target: " + message;
      return failure();
    }
    if (llvm::is_contained(cuda->archs, arch)) {
      message = ("--target names " + arch + " twice").str();
      return failure();
    }
    cuda->archs.push_back(arch.str());
  }
  return success();
}

/// What goes to stdout can be lost, too: on a full disk, or in a closed pipe.
static int finishStdout() {
  llvm::outs().flush();
  std::error_code error = llvm::outs().error();
  if (!error)
    return 0;
  llvm::outs().clear_error();
  return fail("cannot write to stdout: " + error.message());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  zero::LowerFlags flags(category);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(
      argc, argv,
      "zero-compile: compiles the update of a training step to a shared "
      "library\n\n"
      "  zero-compile step.mlir -o out --mesh=dp=4 --stage=2\n\n"
      "writes out/libNAME.so, out/NAME.h and out/NAME.plan.json, where NAME is "
      "the name of\nthe zero.step.\n");

  auto start = std::chrono::steady_clock::now();
  std::string message;
  if (failed(zero::checkCpuName(cpu, message)))
    return fail(message);
  zero::LowerOptions options;
  if (failed(flags.get(options, message)))
    return fail(message);
  std::optional<zero::CudaTargetOptions> cuda;
  if (failed(getCudaTarget(cuda, message)))
    return fail(message);
  if (emit == Emit::ptx && !cuda)
    return fail("--emit=ptx needs --target=cuda");
  if (emit == Emit::ptx)
    cuda->archs.clear(); // of the same PTX
  if (emit != Emit::mlir && options.until != "scheduled")
    return fail("--until=" + llvm::StringRef(options.until) +
                " needs --emit=mlir: only a scheduled step has code");

  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  zero::registerCodegenDialects(registry);
  MLIRContext context(registry);
  zero::LoadedStep loaded(context, input);
  ModuleOp module = loaded.getModule();
  if (!module)
    return 1;
  zero::ProofNote proof;
  if (noProve) {
    if (failed(zero::lower(module, options)))
      return 1;
  } else {
    FailureOr<zero::Shown> shown = zero::lowerAndProve(module, options);
    if (failed(shown))
      return 1;
    proof = {true, zero::getPromises(*shown)};
  }
  if (emit == Emit::mlir) {
    module.print(llvm::outs());
    llvm::outs() << "\n";
    return finishStdout();
  }

  zero::CompileOptions compileOptions;
  compileOptions.name = name;
  compileOptions.target.cpu = cpu;
  compileOptions.cuda = std::move(cuda);
  compileOptions.proof = std::move(proof);
  if (emit == Emit::llvmIR)
    compileOptions.target.output = zero::CpuOutput::llvmIR;
  FailureOr<zero::CompiledStep> step =
      zero::compileStep(module, compileOptions);
  if (failed(step))
    return 1;
  if (emit == Emit::llvmIR || emit == Emit::ptx) {
    llvm::outs() << (emit == Emit::ptx ? step->ptx : step->code);
    return finishStdout();
  }
  SmallVector<std::string> files;
  if (failed(writeFiles(*step, files, message)))
    return fail(message);

  double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  if (json) {
    llvm::json::Object done{{"name", step->name},
                            {"files", llvm::json::Array(files)},
                            {"seconds", seconds}};
    if (printPlan)
      if (auto plan = llvm::json::parse(step->plan))
        done["plan"] = std::move(*plan);
    llvm::outs() << llvm::json::Value(std::move(done)) << "\n";
    return finishStdout();
  }
  for (const std::string &file : files)
    llvm::outs() << file << "\n";
  if (printPlan) {
    llvm::outs() << "\n";
    printPlanTable(step->plan);
  }
  return finishStdout();
}
