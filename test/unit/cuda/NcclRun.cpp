//===- NcclRun.cpp - zero-run over the fake NCCL --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// zero-run-nccl step.mlir --ranks=4, with the options of zero-run. Each rank
// has a GPU of the fake driver, and poses as a process: the GPUs exchange data
// over the fake NCCL, and the hosts exchange messages over TCP.
//
//===----------------------------------------------------------------------===//

#include "EmulatedProgram.h"
#include "FakeDriver.h"
#include "FakeNccl.h"
#include "tools/zero-run/Main.h"

#include <cstdio>
#include <numeric>

using namespace zero;
using namespace zero::test;

int main(int argc, char **argv) {
  std::unique_ptr<EmulatedProgram> kernels;
  auto setUp = [&](mlir::ModuleOp scheduled, CompiledOptions &options) {
    // A rank for each GPU, which are as many as zero-run has ranks.
    constexpr int maxRanks = 64;
    fake::reset(/*seed=*/1);
    fake::resetNccl();
    fake::setGpus(maxRanks, /*major=*/9, /*minor=*/0);
    kernels = std::make_unique<EmulatedProgram>(scheduled);
    options.gpus.resize(maxRanks);
    std::iota(options.gpus.begin(), options.gpus.end(), 0);
    options.group = GroupKind::tcp;
    options.checks = false;
  };
  int code = runTool(argc, argv, /*processes=*/nullptr, setUp);
  for (const std::string &error : fake::takeErrors()) {
    std::fprintf(stderr, "fake driver: %s\n", error.c_str());
    code = 1;
  }
  return code;
}
