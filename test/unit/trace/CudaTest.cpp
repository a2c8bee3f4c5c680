//===- CudaTest.cpp - The CUDA code of a library, as a runtime finds it ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepLibrary.h"

#include "zero_rt/cuda_code.h"
#include "zero_rt/step.h"

#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace zero;
using namespace zero::test;

/// The code of |library| for a GPU; null: none.
static const zero_rt_cuda_code *findCode(const zero_rt_library &library) {
  zero_rt_executable executable = {};
  executable.struct_size = sizeof(executable);
  if (zero_rt_library_executable(&library, 0, &executable))
    return nullptr;
  EXPECT_STREQ(executable.target, "cuda");
  EXPECT_STREQ(executable.format, ZERO_RT_CUDA_FORMAT);
  EXPECT_EQ(executable.bytes, int64_t(sizeof(zero_rt_cuda_code_2)));
  return static_cast<const zero_rt_cuda_code *>(executable.data);
}

TEST(Cuda, ALibraryHasACudaKernelForEachOfItsOwn) {
  if (!canRun())
    GTEST_SKIP() << "this machine cannot run x86-64-v3";
  StepLibrary library;
  library.isForCuda = true;
  LowerOptions options;
  options.mesh = "dp=2";
  options.stage = 1;
  ASSERT_EQ(library.open(options), "");
  const zero_rt_library &compiled = library.getLibrary();
  const zero_rt_cuda_code *code = findCode(compiled);
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->num_cubins, 0);
  std::string ptx = code->ptx;

  std::set<std::string> seen;
  auto expectEntry = [&](const zero_rt_cuda_function &function,
                         int64_t piecesPerBlock, const std::string &name) {
    EXPECT_EQ(function.name, name);
    EXPECT_EQ(function.pieces_per_block, piecesPerBlock) << function.name;
    EXPECT_NE(ptx.find(".entry " + name + "("), std::string::npos) << name;
    EXPECT_TRUE(seen.insert(name).second) << name;
  };
  auto program = *library.getModule().getOps<zrt::ProgramOp>().begin();
  int64_t i = 0;
  for (auto kernel : program.getOps<zrt::KernelOp>()) {
    // A sum has a warp for each piece.
    int64_t perBlock = kernel.getSums() ? ZERO_RT_CUDA_THREADS / 32 : 1;
    expectEntry(code->kernels[i++], perBlock, getCudaName(kernel.getSymName()));
  }
  EXPECT_EQ(i, compiled.num_kernels);
  i = 0;
  for (auto scalars : program.getOps<zrt::ScalarsOp>())
    expectEntry(code->scalar_programs[i++], 0,
                getCudaName(scalars.getSymName()));
  EXPECT_EQ(i, compiled.num_scalar_programs);
  expectEntry(code->give_slots, 0, "zero$give_slots");
}

TEST(Cuda, ALibraryForACpuHasNone) {
  if (!canRun())
    GTEST_SKIP() << "this machine cannot run x86-64-v3";
  StepLibrary library;
  LowerOptions options;
  options.mesh = "dp=2";
  ASSERT_EQ(library.open(options), "");
  EXPECT_EQ(findCode(library.getLibrary()), nullptr);
  EXPECT_EQ(library.getLibrary().num_executables, 0);
}

// Symbols may have any name; no two have the same in PTX.
TEST(Cuda, NamesAreSpelledAsPtxAllows) {
  EXPECT_EQ(getCudaName("update.b0_x"), "zero_update$_b0_x");
  EXPECT_EQ(getCudaName("a b"), "zero_a$20b");
  EXPECT_EQ(getCudaName("$"), "zero_$24");
  EXPECT_NE(getCudaName("._"), getCudaName("_."));
}
