//===- EmulatedProgram.cpp - Kernels for the fake driver ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmulatedProgram.h"

#include "FakeDriver.h"
#include "codegen/cuda/EmitScalarKernel.h"
#include "codegen/host/Tables.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

/// Which arguments of a kernel are addresses: arrays, slots and pieces, and not
/// their number; partial sums, arrivals and the sum.
static std::vector<bool> getAddresses(size_t numArrays, bool sums) {
  std::vector<bool> addresses(numArrays + 2, true);
  addresses.push_back(false);
  addresses.insert(addresses.end(), sums ? 3 : 0, true);
  return addresses;
}

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
        getAddresses(kernel.getNumArrays(), kernel.getSums()));
  for (const auto &batch : code.batches)
    addBatch(batch.second.name);
  std::vector<bool> ofScalars(2 + 2 * kMaxGivenSlots);
  ofScalars[0] = true;
  for (auto scalars : program.getOps<zrt::ScalarsOp>())
    add(code.functions.lookup(scalars.getSymName()).name, ofScalars);
  add(code.giveSlots.name, ofScalars);
  for (const auto &[sum, function] : code.rankSums)
    add(function.name, getAddresses(size_t(sum.ranks) + 1, /*sums=*/false));
}

void EmulatedProgram::add(const std::string &name,
                          std::vector<bool> areAddresses) {
  // The driver keeps the code as long as it may run it.
  fake::addKernel(
      name, std::move(areAddresses),
      [emulator = emulator, name](unsigned blocks, unsigned threads,
                                  const std::vector<uint64_t> &arguments) {
        emulator->run(name, blocks, int(threads), arguments);
      });
}

void EmulatedProgram::addBatch(const std::string &name) {
  fake::addKernel(
      name, {true, false},
      [emulator = emulator, name](unsigned blocks, unsigned threads,
                                  const std::vector<uint64_t> &arguments) {
        auto *rows = reinterpret_cast<const zero_rt_cuda_batch_piece *>(
            uintptr_t(arguments[0]));
        std::vector<zero_rt_cuda_batch_piece> near(rows, rows + arguments[1]);
        for (zero_rt_cuda_batch_piece &piece : near)
          for (void *&operand : piece.operands)
            operand = fake::getNear(reinterpret_cast<uintptr_t>(operand), name);
        emulator->run(name, blocks, int(threads),
                      {reinterpret_cast<uintptr_t>(near.data()), near.size()});
      });
}
