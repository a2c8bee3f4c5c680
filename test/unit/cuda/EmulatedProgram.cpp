//===- EmulatedProgram.cpp - Kernels for the fake driver ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedProgram.h"

#include "FakeDriver.h"
#include "codegen/host/Tables.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

/// Slots, pieces and their number.
static constexpr size_t kBehindArrays = 3;
/// Partial sums, arrivals and the sum.
static constexpr size_t kOfSums = 3;

EmulatedProgram::EmulatedProgram(ModuleOp scheduled) {
  zrt::ProgramOp program = *scheduled.getOps<zrt::ProgramOp>().begin();
  FailureOr<Tables> tables = buildTables(program);
  if (failed(tables)) {
    ADD_FAILURE() << "the program has no tables";
    return;
  }
  emulator = std::make_shared<CudaEmulator>(
      program, [&](FlatSymbolRefAttr slots) { return tables->getSlot(slots); });
  const CudaCode &code = emulator->getCode();
  for (auto kernel : program.getOps<zrt::KernelOp>())
    add(code.functions.lookup(kernel.getSymName()).name,
        kernel.getNumArrays() + kBehindArrays +
            (kernel.getSums() ? kOfSums : 0));
  for (auto scalars : program.getOps<zrt::ScalarsOp>())
    add(code.functions.lookup(scalars.getSymName()).name, 1);
  for (const auto &[sum, function] : code.rankSums)
    add(function.name, size_t(sum.ranks) + 1 + kBehindArrays);
}

void EmulatedProgram::add(const std::string &name, size_t numArguments) {
  // The driver keeps the code as long as it may run it.
  fake::addKernel(
      name, numArguments,
      [emulator = emulator, name](unsigned blocks, unsigned threads,
                                  const std::vector<uint64_t> &arguments) {
        emulator->run(name, blocks, int(threads), arguments);
      });
}
