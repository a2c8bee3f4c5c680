//===- Compile.cpp - From a scheduled module to a shared library ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/library/Compile.h"

#include "codegen/cpu/EmitKernel.h"
#include "codegen/cpu/LinkLibrary.h"
#include "codegen/host/EmitLibrary.h"
#include "codegen/kernels/EmitScalars.h"
#include "codegen/library/WriteFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace zero;

/// The only program of |module|.
static FailureOr<zrt::ProgramOp> getProgram(ModuleOp module) {
  auto programs = llvm::to_vector(module.getOps<zrt::ProgramOp>());
  if (programs.size() != 1)
    return module.emitError()
           << "a library is compiled from one step, this module has "
           << programs.size();
  return programs.front();
}

FailureOr<CompiledStep> zero::compileStep(ModuleOp scheduled,
                                          const CompileOptions &options) {
  FailureOr<zrt::ProgramOp> program = getProgram(scheduled);
  if (failed(program))
    return failure();
  CompiledStep step;
  step.name = options.name.empty() ? program->getSymName().str() : options.name;
  if (std::string message; failed(checkLibraryName(step.name, message)))
    return program->emitError() << message;
  FailureOr<Tables> tables = buildTables(*program);
  if (failed(tables))
    return failure();
  tables->planHash = hashPlan(scheduled);

  OwningOpRef<ModuleOp> target =
      ModuleOp::create(scheduled.getLoc(), scheduled.getName());
  for (auto kernel : program->getOps<zrt::KernelOp>())
    if (failed(emitCpuKernel(kernel, *target, kernel.getSymName())))
      return failure();
  auto getFirstSlot = [&](FlatSymbolRefAttr slots) {
    return tables->getSlot(slots);
  };
  for (auto scalars : program->getOps<zrt::ScalarsOp>())
    if (failed(
            emitScalars(scalars, *target, scalars.getSymName(), getFirstSlot)))
      return failure();
  if (options.cuda) {
    FailureOr<CudaCode> code = emitCuda(*program, getFirstSlot, *options.cuda);
    if (failed(code))
      return failure();
    step.cuda = std::move(*code);
  }
  FailureOr<std::vector<StageProgram>> stages = splitStages(*program, *tables);
  if (failed(stages))
    return failure();
  emitLibrary(
      *stages,
      {cpuFeatureList(options.target.cpu), step.cuda ? &*step.cuda : nullptr},
      *target);

  SmallVector<char> code;
  llvm::raw_svector_ostream os(code);
  if (failed(emitCpuObject(*target, options.target, os)))
    return failure();
  step.code.assign(code.begin(), code.end());
  step.header = emitHeader(*tables, step.name);
  step.stages = std::move(*stages);
  step.tables = std::move(*tables);
  step.cpu = resolveCpuName(options.target.cpu);
  return step;
}

std::string CompiledStep::getPlan(const ProofNote &proof,
                                  llvm::json::Object validated) const {
  return emitPlan(stages, tables, cpu, proof, std::move(validated),
                  cuda ? &*cuda : nullptr);
}

/// Appends the hash that zero_rt_open checks.
static void appendContentHash(std::string &library) {
  zero_rt_file_end end = {};
  llvm::copy(StringRef(ZERO_RT_FILE_MAGIC), end.magic);
  end.abi_version = ZERO_RT_ABI_VERSION;
  end.bytes = library.size();
  end.hash = llvm::xxh3_64bits(library);
  library.append(reinterpret_cast<const char *>(&end), sizeof(end));
}

LogicalResult zero::writeLibrary(const CompiledStep &step, StringRef path,
                                 std::string &message) {
  std::string library;
  if (failed(
          linkLibrary(step.code, {ZERO_RT_LIBRARY_SYMBOL}, library, message)))
    return failure();
  appendContentHash(library);
  return writeFile(path, library, message);
}
