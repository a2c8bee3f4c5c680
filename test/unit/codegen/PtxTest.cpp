//===- PtxTest.cpp - Every op of a body as PTX ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"
#include "codegen/cuda/EmitCuda.h"
#include "codegen/kernels/Body.h"

using namespace mlir;
using namespace zero;
using namespace zero::test;

/// A kernel over arrays of |type| whose body computes %r of %x, %y and %s.
static std::string makeKernel(const std::string &name, const std::string &type,
                              const std::string &body) {
  std::string kernel = "zrt.kernel @" + name + " [read " + type + ", update " +
                       type + "] scalars 1 {\n^body(%x: " + type +
                       ", %y: " + type + ", %s: f64):\n";
  for (size_t i = 0; i < body.size(); ++i)
    kernel += body[i] == 'T' ? type : std::string(1, body[i]);
  return kernel + "\nzrt.yield %r : " + type + "\n}\n";
}

static std::string makeAll() {
  std::string symbols;
  int count = 0;
  auto add = [&](const char *type, const std::string &body) {
    symbols += makeKernel("k" + std::to_string(count++), type, body);
  };
  for (const char *type : {"f32", "f64"}) {
    for (const char *op : {"arith.addf", "arith.subf", "arith.mulf",
                           "arith.divf", "arith.maximumf", "arith.minimumf",
                           "arith.maxnumf", "arith.minnumf", "math.copysign"})
      add(type, std::string("%r = ") + op + " %x, %y : T");
    for (const char *op :
         {"arith.negf", "math.absf", "math.sqrt", "math.rsqrt", "math.ceil",
          "math.floor", "math.trunc", "math.roundeven"})
      add(type, std::string("%r = ") + op + " %x : T");
    add(type, "%r = math.fma %x, %y, %x : T");
    add(type, "%c = arith.cmpf ult, %x, %y : T\n"
              "%d = arith.cmpf one, %x, %y : T\n"
              "%e = arith.andi %c, %d : i1\n"
              "%r = arith.select %e, %x, %y : T");
  }
  for (const char *type : {"f16", "bf16"}) {
    add(type, "%w = arith.extf %x : T to f32\n"
              "%m = arith.mulf %w, %w : f32\n"
              "%r = arith.truncf %m : f32 to T");
    add(type, "%w = arith.extf %x : T to f64\n"
              "%m = arith.divf %w, %s : f64\n"
              "%r = arith.truncf %m : f64 to T");
  }
  add("f32", "%w = arith.extf %x : f32 to f64\n%m = arith.mulf %w, %s : f64\n"
             "%r = arith.truncf %m : f64 to f32");
  for (const char *type : {"i16", "i32", "i64"}) {
    for (const char *op :
         {"arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori",
          "arith.xori", "arith.maxsi", "arith.minui"})
      add(type, std::string("%r = ") + op + " %x, %y : T");
    for (const char *op : {"math.ctlz", "math.cttz", "math.ctpop", "math.absi"})
      add(type, std::string("%r = ") + op + " %x : T");
  }
  add("f64", "%b = arith.bitcast %x : f64 to i64\n"
             "%t = arith.trunci %b : i64 to i32\n"
             "%r = arith.sitofp %t : i32 to f64");
  return symbols;
}

// Nothing is called, approximate, or flushed, and every sum and product says
// how it rounds, so that ptxas contracts none.
TEST(Ptx, EveryOpIsExact) {
  Source source;
  OwningOpRef<ModuleOp> module = source.parse(makeAll());
  ASSERT_TRUE(module);
  FailureOr<CudaCode> code =
      emitCuda(*module->getOps<zrt::ProgramOp>().begin(),
               [](FlatSymbolRefAttr) { return int64_t(0); }, {});
  ASSERT_TRUE(succeeded(code));
  for (const char *bad :
       {".extern", "call", "approx", ".ftz", ".full", ".local", "ex2", "lg2"})
    EXPECT_EQ(code->ptx.find(bad), std::string::npos) << bad;
  for (const char *op : {"add", "sub", "mul", "div", "sqrt", "fma"})
    for (const char *type : {".f32", ".f64"}) {
      EXPECT_EQ(code->ptx.find(std::string("\t") + op + type),
                std::string::npos)
          << op << type;
      // And they are there at all.
      EXPECT_NE(code->ptx.find(std::string(op) + ".rn" + type),
                std::string::npos)
          << op << type;
    }
}

// Undefined for some numbers: not the same everywhere.
TEST(Ptx, OpsThatAreUndefinedForSomeAreRefused) {
  for (const char *body :
       {"%t = arith.fptosi %x : T to i32\n%r = arith.sitofp %t : i32 to T",
        "%t = arith.fptoui %x : T to i32\n%r = arith.uitofp %t : i32 to T"}) {
    Source source;
    std::string error;
    ScopedDiagnosticHandler handler(
        &source.context,
        [&](Diagnostic &diagnostic) { error = diagnostic.str(); });
    OwningOpRef<ModuleOp> module = source.parse(makeKernel("k", "f32", body));
    ASSERT_TRUE(module);
    EXPECT_TRUE(
        failed(emitCuda(*module->getOps<zrt::ProgramOp>().begin(),
                        [](FlatSymbolRefAttr) { return int64_t(0); }, {})));
    EXPECT_NE(error.find("is not supported in a CUDA kernel"),
              std::string::npos)
        << error;
  }
}
