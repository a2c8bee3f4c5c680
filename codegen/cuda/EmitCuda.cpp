//===- EmitCuda.cpp - The CUDA code of a program --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/EmitCuda.h"

#include "codegen/cuda/EmitKernel.h"
#include "codegen/cuda/EmitScalarKernel.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace zero;

std::string zero::getCudaName(StringRef symbol) {
  std::string name = "zero_";
  for (char c : symbol) {
    if (llvm::isAlnum(c) || c == '_')
      name += c;
    else if (c == '.')
      name += "$_";
    else
      name += "$" + llvm::toHex(StringRef(&c, 1), /*LowerCase=*/true);
  }
  return name;
}

LogicalResult zero::checkCudaArch(StringRef arch, std::string &message) {
  StringRef number = arch;
  unsigned value = 0;
  if (!number.consume_front("sm_") || number.starts_with("0") ||
      number.consumeInteger(10, value) ||
      !(number.empty() || number == "a" || number == "f")) {
    message = "'" + arch.str() + "' is no CUDA architecture, such as sm_90";
    return failure();
  }
  if (value < 80) {
    message = "code is for sm_80 and later, not " + arch.str();
    return failure();
  }
  return success();
}

/// Emits batches of the kernels that pack gradients.
static LogicalResult emitBatches(zrt::ProgramOp program, ModuleOp target,
                                 CudaCode &code) {
  SymbolTable symbols(program);
  for (auto bucket : program.getOps<zrt::BucketTableOp>())
    for (FlatSymbolRefAttr name :
         {bucket.getStoreAttr(), bucket.getAddAttr()}) {
      auto [known, isNew] = code.batches.try_emplace(name.getValue());
      if (!isNew)
        continue;
      auto kernel = symbols.lookup<zrt::KernelOp>(name.getAttr());
      known->second = {"zero$batch_" + getCudaName(kernel.getSymName()),
                       /*piecesPerBlock=*/1};
      if (failed(emitCudaBatch(kernel, target, known->second.name)))
        return failure();
    }
  return success();
}

FailureOr<OwningOpRef<ModuleOp>> zero::emitCudaModule(
    zrt::ProgramOp program,
    llvm::function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot,
    CudaCode &code) {
  OwningOpRef<ModuleOp> target = ModuleOp::create(program.getLoc());
  for (auto kernel : program.getOps<zrt::KernelOp>()) {
    CudaFunction function = {getCudaName(kernel.getSymName()),
                             getPiecesPerBlock(kernel)};
    if (failed(emitCudaKernel(kernel, *target, function.name)))
      return failure();
    code.functions[kernel.getSymName()] = function;
  }
  if (failed(emitBatches(program, *target, code)))
    return failure();
  for (auto scalars : program.getOps<zrt::ScalarsOp>()) {
    CudaFunction function = {getCudaName(scalars.getSymName())};
    if (failed(emitScalarKernel(scalars, *target, function.name, getFirstSlot)))
      return failure();
    code.functions[scalars.getSymName()] = function;
  }
  // getCudaName gives no symbol of the program this name.
  code.giveSlots = {"zero$give_slots"};
  if (failed(emitScalarKernel(nullptr, *target, code.giveSlots.name,
                              getFirstSlot)))
    return failure();
  for (const RankSum &rankSum : collectRankSums(program)) {
    OwningOpRef<zrt::KernelOp> kernel = makeRankSum(rankSum, program.getLoc());
    CudaFunction function = {"zero$sum_" + getName(rankSum),
                             getPiecesPerBlock(*kernel)};
    if (failed(emitCudaKernel(*kernel, *target, function.name)))
      return failure();
    code.rankSums.emplace_back(rankSum, function);
  }
  return target;
}

FailureOr<CudaCode>
zero::emitCuda(zrt::ProgramOp program,
               llvm::function_ref<int64_t(FlatSymbolRefAttr)> getFirstSlot,
               const CudaTargetOptions &options) {
  CudaCode code;
  FailureOr<OwningOpRef<ModuleOp>> module =
      emitCudaModule(program, getFirstSlot, code);
  if (failed(module))
    return failure();
  FailureOr<std::string> ptx = emitPtx(**module);
  if (failed(ptx))
    return failure();
  code.ptx = std::move(*ptx);
  if (options.archs.empty())
    return code;
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return program.emitError()
           << "machine code for " << options.archs.front()
           << " needs ptxas, which is neither on the PATH nor in "
              "$CUDA_HOME/bin; --target=cuda has PTX, which the driver "
              "compiles";
  for (const std::string &arch : options.archs) {
    std::string message;
    FailureOr<std::string> cubin = assemble(ptxas, code.ptx, arch, message);
    if (failed(cubin))
      return program.emitError() << message;
    code.cubins.emplace_back(arch, std::move(*cubin));
  }
  return code;
}
