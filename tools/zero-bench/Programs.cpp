//===- Programs.cpp - What is measured, compiled as users compile ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Programs.h"

#include "codegen/cpu/EmitKernel.h"
#include "codegen/cpu/LinkLibrary.h"
#include "codegen/kernels/Lower.h"
#include "codegen/library/WriteFile.h"
#include "codegen/validate/Validate.h"
#include "dialect/zrt/ZrtDialect.h"
#include "tools/zero-bench/Bench.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"

#include <dlfcn.h>
#include <thread>

using namespace mlir;
using namespace zero;
using namespace zero::bench;

static const char *const kAdamW =
#include "AdamW.inc"
    ;

std::unique_ptr<MLIRContext> zero::bench::createContext() {
  DialectRegistry registry;
  registerDriverDialects(registry);
  registerCodegenDialects(registry);
  auto context = std::make_unique<MLIRContext>(registry);
  context->loadAllAvailableDialects();
  context->printOpOnDiagnostic(false);
  return context;
}

std::vector<int64_t> zero::bench::getSizes(int64_t count) {
  std::vector<int64_t> sizes(count);
  const int64_t some[] = {4096, 1, 33, 0, 1000, 7};
  for (int64_t i = 0; i < count; ++i)
    sizes[i] = some[i % 6];
  return sizes;
}

std::string zero::bench::getStepText(ArrayRef<int64_t> sizes,
                                     StringRef gradient) {
  std::string text = "zero.mesh @cluster <[\"dp\" = 1]>\n";
  llvm::raw_string_ostream os(text);
  auto list = [&](llvm::function_ref<void(size_t)> one) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      os << (i ? ", " : "");
      one(i);
    }
  };
  auto arrived = [&](size_t i) {
    os << "!zero.value<" << sizes[i] << "x" << gradient
       << ", partial = [dp, micro], scaled = [dp : 1]>";
  };
  auto kept = [&](size_t i) {
    os << "!zero.value<" << sizes[i] << "x" << gradient
       << ", partial = [dp], scaled = [dp : 1]>";
  };
  auto reduced = [&](size_t i) {
    os << "!zero.value<" << sizes[i] << "x" << gradient << ">";
  };
  auto values = [&](const char *name) {
    list([&](size_t i) { os << name << "#" << i; });
  };
  for (size_t i = 0; i < sizes.size(); ++i)
    os << "zero.parameter @p" << i << " : " << sizes[i] << "xbf16\n";
  os << "zero.group @all [";
  list([&](size_t i) { os << "@p" << i; });
  os << "]\n" << kAdamW << "\n";
  os << "zero.step @train on @cluster normalize(accumulation : -1, dp : -1) "
        "(%lr: !zero.value<f64>) {\n  %g:"
     << sizes.size() << " = zero.micro_batches in " << gradient
     << " {\n    %d:" << sizes.size() << " = zero.backward(";
  list([&](size_t i) { os << "@p" << i; });
  os << ") prescaled(accumulation : -1) : ";
  list(arrived);
  os << "\n    zero.yield ";
  values("%d");
  os << " : ";
  list(arrived);
  os << "\n  }\n  %r:" << sizes.size() << " = zero.reduce ";
  values("%g");
  os << " : ";
  list(kept);
  os << "\n  %norm = zero.norm ";
  values("%r");
  os << " : ";
  list(reduced);
  os << "\n  %c:" << sizes.size() << " = zero.clip ";
  values("%r");
  os << " by %norm max 1.0 : ";
  list(reduced);
  os << " by !zero.value<f64>\n  zero.update @all with @adamw(";
  values("%c");
  os << ") hyper(lr = %lr, wd = 0.1) : (";
  list(reduced);
  os << "), (!zero.value<f64>)\n  zero.return [norm] %norm : "
        "!zero.value<f64>\n}\n";
  return text;
}

OwningOpRef<ModuleOp> zero::bench::lowerStep(MLIRContext &context,
                                             const std::string &text,
                                             int stage) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  LowerOptions options;
  options.stage = stage;
  if (module && failed(lower(*module, options)))
    return nullptr;
  return module;
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

/// Calls |work| with the path of a new file, which goes afterwards.
static bool withFile(StringRef suffix, std::string &message,
                     llvm::function_ref<bool(StringRef)> work) {
  SmallString<128> path;
  if (std::error_code error =
          llvm::sys::fs::createTemporaryFile("zero-bench", suffix, path)) {
    message = "cannot create a temporary file: " + error.message();
    return false;
  }
  llvm::FileRemover remover(path);
  return work(path);
}

KernelLibrary::~KernelLibrary() {
  if (handle)
    dlclose(handle);
}

void *KernelLibrary::find(const std::string &symbol) const {
  return dlsym(handle, symbol.c_str());
}

bool KernelLibrary::load(zrt::ProgramOp program, StringRef name, int padding,
                         std::string &message) {
  OwningOpRef<ModuleOp> code = ModuleOp::create(program.getLoc());
  auto emit = [&](zrt::KernelOp kernel, const Twine &symbol) {
    return succeeded(emitCpuKernel(kernel, *code, symbol.str()));
  };
  SmallVector<std::string> exported;
  for (auto kernel : program.getOps<zrt::KernelOp>()) {
    for (int i = 0; kernel.getSymName() != name && i < padding; ++i)
      if (!emit(kernel, "padding." + kernel.getSymName() + Twine(i)))
        return false;
    if (!emit(kernel, kernel.getSymName()))
      return false;
    exported.push_back(kernel.getSymName().str());
  }
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream os(object);
  if (failed(emitCpuObject(*code, {}, os))) {
    message = "a kernel does not compile";
    return false;
  }
  std::string library;
  return succeeded(linkLibrary(object, exported, library, message)) &&
         withFile("so", message, [&](StringRef path) {
           if (failed(writeFile(path, library, message)))
             return false;
           handle = dlopen(path.str().c_str(), RTLD_NOW | RTLD_LOCAL);
           if (!handle)
             message = std::string("cannot load kernels: ") + dlerror();
           return handle != nullptr;
         });
}

const zero_rt_library *zero::bench::openStep(const CompiledStep &step,
                                             std::string &message) {
  const zero_rt_library *library = nullptr;
  withFile("so", message, [&](StringRef path) {
    if (failed(writeLibrary(step, path, message)))
      return false;
    if (zero_rt_open(path.str().c_str(), &library) != ZERO_RT_OK)
      message = zero_rt_message();
    return library != nullptr;
  });
  return library;
}

bool zero::bench::validateStep(const CompiledStep &step, double &milliseconds,
                               std::string &message) {
  return withFile("so", message, [&](StringRef path) {
    if (failed(writeLibrary(step, path, message)))
      return false;
    ValidateOptions options;
    options.cpu = step.cpu;
    bool ok = false;
    milliseconds = measure([&] {
      Validation validation;
      ok = succeeded(
          validateLibrary(path, step.stages, options, validation, message));
    });
    return ok;
  });
}

bool zero::bench::runRanks(
    ModuleOp scheduled, int32_t ranks,
    const std::function<bool(int32_t, zero_rt_step *, std::string &)> &work,
    std::string &message, const char *trace) {
  FailureOr<CompiledStep> compiled = compileStep(scheduled, {});
  if (failed(compiled)) {
    message = "a step does not compile";
    return false;
  }
  const zero_rt_library *library = openStep(*compiled, message);
  if (!library)
    return false;
  zero_rt_group *group = nullptr;
  if (zero_rt_local_group_create(ranks, &group)) {
    message = zero_rt_message();
    return false;
  }
  std::vector<std::string> messages(ranks);
  std::vector<char> ok(ranks, 0);
  auto runRank = [&](int32_t rank) {
    zero_rt_runtime *runtime = nullptr;
    zero_rt_step *step = nullptr;
    zero_rt_options options = {};
    options.struct_size = sizeof(options);
    options.trace = trace;
    if (zero_rt_create(group, rank, &options, &runtime) ||
        zero_rt_step_create(runtime, library, nullptr, &step))
      messages[rank] = zero_rt_message();
    else
      ok[rank] = work(rank, step, messages[rank]);
    if (step)
      zero_rt_step_destroy(step);
    if (runtime)
      zero_rt_destroy(runtime);
  };
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back(runRank, rank);
  for (std::thread &thread : threads)
    thread.join();
  zero_rt_group_destroy(group);
  for (int32_t rank = 0; rank < ranks; ++rank)
    if (!ok[rank]) {
      message = "rank " + std::to_string(rank) + ": " + messages[rank];
      return false;
    }
  return true;
}
