//===- NcclTraining.cpp - char_model over the fake NCCL -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// char_model-nccl SCHEDULED, with the options of char_model. SCHEDULED is the
// step of the library, as `zero-compile --target=cuda --emit=mlir` prints it.
// The fake driver runs its kernels. With --tcp the ranks pose as processes,
// whose GPUs exchange data over the fake NCCL.
//
//===----------------------------------------------------------------------===//

#include "EmulatedProgram.h"
#include "FakeDriver.h"
#include "FakeNccl.h"
#include "codegen/kernels/Lower.h"
#include "examples/transformer/CharModel.h"
#include "tools/driver/Driver.h"

#include "mlir/Parser/Parser.h"

#include <cstdio>

using namespace mlir;
using namespace zero;
using namespace zero::test;

int main(int argc, char **argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: char_model-nccl SCHEDULED [OPTION...]\n");
    return 2;
  }
  DialectRegistry registry;
  registerDriverDialects(registry);
  registerCodegenDialects(registry);
  MLIRContext context(registry);
  auto scheduled = parseSourceFile<ModuleOp>(argv[1], &context);
  if (!scheduled)
    return 1;
  fake::reset(/*seed=*/1);
  fake::resetNccl();
  fake::setGpus(/*count=*/8, /*major=*/9, /*minor=*/0);
  EmulatedProgram kernels(*scheduled);
  int code = transformer::runTool(argc - 1, argv + 1);
  std::printf("%lld collectives over NCCL\n",
              (long long)fake::countCollectives());
  for (const std::string &error : fake::takeErrors()) {
    std::fprintf(stderr, "fake driver: %s\n", error.c_str());
    code = 1;
  }
  return code;
}
