//===- ObjectTest.cpp - Objects, libraries, scalar programs, errors -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"

#include "codegen/cpu/LinkLibrary.h"
#include "codegen/library/Compile.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"

#include <cmath>
#include <dlfcn.h>

using namespace mlir;
using namespace zero;
using namespace zero::test;

namespace {

std::string getKernel(const std::string &type, const std::string &op) {
  return "zrt.kernel @k [update " + type + "] scalars 0 {\n^body(%x: " + type +
         "):\n" + op + "\nzrt.yield %y : " + type + "\n}\n";
}

/// The first diagnostic that compiling |symbols| gives.
std::string getError(const std::string &symbols) {
  Source source;
  std::string text;
  ScopedDiagnosticHandler handler(&source.context, [&](Diagnostic &diagnostic) {
    if (text.empty())
      text = diagnostic.str();
    return success();
  });
  OwningOpRef<ModuleOp> program = source.parse(symbols);
  if (!program)
    return "does not parse: " + text;
  OwningOpRef<ModuleOp> code =
      ModuleOp::create(UnknownLoc::get(&source.context));
  program->walk([&](zrt::KernelOp kernel) {
    EXPECT_TRUE(failed(emitCpuKernel(kernel, *code, kernel.getSymName())));
  });
  program->walk([&](zrt::ScalarsOp scalars) {
    EXPECT_TRUE(failed(emitScalars(scalars, *code, scalars.getSymName(),
                                   [](FlatSymbolRefAttr) { return 0; })));
  });
  EXPECT_TRUE(code->getBody()->empty());
  return text;
}

/// The names of the dynamic symbols of |path| that are defined, or are not.
std::vector<std::string> getSymbols(const std::string &path, bool undefined) {
  std::vector<std::string> names;
  auto file = llvm::object::ObjectFile::createObjectFile(path);
  if (!file) {
    ADD_FAILURE() << llvm::toString(file.takeError());
    return names;
  }
  auto *elf = llvm::cast<llvm::object::ELFObjectFileBase>(file->getBinary());
  for (llvm::object::SymbolRef symbol : elf->getDynamicSymbolIterators()) {
    uint32_t flags = llvm::cantFail(symbol.getFlags());
    bool isUndefined = flags & llvm::object::SymbolRef::SF_Undefined;
    if (isUndefined == undefined)
      names.push_back(llvm::cantFail(symbol.getName()).str());
  }
  return names;
}

/// The object for |text|, a module of the dialect llvm.
std::string emitModule(const std::string &text) {
  Source source;
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, &source.context);
  EXPECT_TRUE(module);
  SmallString<0> object;
  llvm::raw_svector_ostream os(object);
  EXPECT_TRUE(succeeded(emitCpuObject(*module, {}, os)));
  return object.str().str();
}

/// Links |object|, and writes the library. Returns its path.
std::string linkToFile(const Directory &directory, const std::string &object,
                       ArrayRef<std::string> exported) {
  std::string library, message;
  EXPECT_TRUE(succeeded(linkLibrary(object, exported, library, message)))
      << message;
  std::string path = directory.file("x.so");
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << library;
  EXPECT_FALSE(error) << error.message();
  return path;
}

/// Why |text| cannot be linked.
std::string getLinkError(const std::string &text) {
  std::string library, message;
  EXPECT_TRUE(failed(linkLibrary(emitModule(text), {}, library, message)));
  EXPECT_TRUE(library.empty());
  return message;
}

std::string emitText(const std::string &symbols, CpuTargetOptions options) {
  Source source;
  OwningOpRef<ModuleOp> program = source.parse(symbols);
  OwningOpRef<ModuleOp> code =
      ModuleOp::create(UnknownLoc::get(&source.context));
  program->walk([&](zrt::KernelOp kernel) {
    EXPECT_TRUE(succeeded(emitCpuKernel(kernel, *code, kernel.getSymName())));
  });
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream os(text);
  EXPECT_TRUE(succeeded(emitCpuObject(*code, options, os)));
  return text.str().str();
}

// LLVM itself would print the error and end the process.
TEST(CpuObject, ErrorOfLLVMIsADiagnostic) {
  Source source;
  std::string text;
  ScopedDiagnosticHandler handler(&source.context, [&](Diagnostic &diagnostic) {
    text = diagnostic.str();
    return success();
  });
  // A CPU without registers for what the function returns.
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
      "llvm.func @f(%x: f64) -> f64 attributes {target_features = "
      "#llvm.target_features<[\"-sse\"]>} {\n"
      "  llvm.return %x : f64\n"
      "}\n",
      &source.context);
  ASSERT_TRUE(module);
  llvm::SmallVector<char> object;
  llvm::raw_svector_ostream os(object);
  EXPECT_TRUE(failed(emitCpuObject(*module, {}, os)));
  EXPECT_EQ(text.find("LLVM: "), 0u) << text;
  EXPECT_NE(text.find("SSE"), std::string::npos) << text;
}

} // namespace

TEST(CpuKernelError, NamesTheOpThatWouldBeALibraryCall) {
  EXPECT_EQ(getError(getKernel("f32", "%y = math.exp %x : f32")),
            "'math.exp' op is not supported in a CPU kernel");
  EXPECT_EQ(getError(getKernel("f64", "%y = math.powf %x, %x : f64")),
            "'math.powf' op is not supported in a CPU kernel");
  EXPECT_EQ(getError(getKernel("f32", "%y = arith.remf %x, %x : f32")),
            "'arith.remf' op is not supported in a CPU kernel");
}

TEST(CpuKernelError, RefusesNarrowArithmetic) {
  EXPECT_EQ(
      getError(getKernel("bf16", "%y = arith.addf %x, %x : bf16")),
      "'arith.addf' op in 'bf16' is not supported in a CPU kernel; extend "
      "its operands to f32 first");
  EXPECT_EQ(getError(getKernel("f16", "%y = math.sqrt %x : f16")),
            "'math.sqrt' op in 'f16' is not supported in a CPU kernel; extend "
            "its operands to f32 first");
}

TEST(CpuKernelError, NamesTypesThatItDoesNotKnow) {
  EXPECT_EQ(getError(getKernel("f8E5M2", "%y = arith.negf %x : f8E5M2")),
            "'zrt.kernel' op operand #0 of type 'f8E5M2' is not supported in a "
            "CPU kernel");
  EXPECT_EQ(getError(getKernel("f64", "%z = arith.extf %x : f64 to f128\n"
                                      "%y = arith.truncf %z : f128 to f64")),
            "'arith.extf' op type 'f128' is not supported in a CPU kernel");
  EXPECT_EQ(
      getError(getKernel("f32", "%z = arith.extf %x : f32 to f64\n"
                                "%y = arith.truncf %z upward : f64 to f32")),
      "'arith.truncf' op with a rounding mode is not supported in a CPU "
      "kernel, which rounds to nearest even");
}

TEST(CpuScalarsError, NamesTheOpThatWouldBeALibraryCall) {
  EXPECT_EQ(getError("zrt.slots @s [1.0]\nzrt.scalars @f {\n"
                     "%x = zrt.load_slot @s[0]\n%y = math.exp %x : f64\n"
                     "zrt.store_slot %y, @s[0]\nzrt.yield\n}\n"),
            "'math.exp' op is not supported in a scalar program");
}

TEST(CpuScalars, LoadsComputesAndStoresInOrder) {
  if (getTargets().empty())
    GTEST_SKIP() << "this machine cannot run x86-64-v3";
  KernelLibrary library(R"(
zrt.slots @a [0.0, 0.0]
zrt.slots @b [0.0, 0.0, 0.0]
zrt.scalars @f {
  %x = zrt.load_slot @a[1]
  %y = zrt.load_slot @b[2]
  %c = arith.constant 0.1 : f64
  %p = arith.mulf %x, %c : f64
  %s = arith.addf %p, %y : f64
  %r = math.sqrt %s : f64
  zrt.store_slot %r, @b[0]
  %again = zrt.load_slot @b[0]
  %t = math.fma %again, %c, %y : f64
  zrt.store_slot %t, @a[0]
  %e = arith.negf %t : f64
  zrt.store_slot %e, @b[1]
  zrt.yield
}
)",
                        getTargets().front());
  double slots[5] = {-1, 3.3, -1, -1, 7.7};
  library.scalars("f")(slots);
  double root = std::sqrt(3.3 * 0.1 + 7.7);
  double t = std::fma(root, 0.1, 7.7);
  EXPECT_EQ(slots[0], t);
  EXPECT_EQ(slots[1], 3.3);
  EXPECT_EQ(slots[2], root);
  EXPECT_EQ(slots[3], -t);
  EXPECT_EQ(slots[4], 7.7);
}

TEST(CpuLibrary, HasNoUndefinedSymbol) {
  if (getTargets().empty())
    GTEST_SKIP() << "this machine cannot run x86-64-v3";
  // What LLVM likes to make library calls of: copies, fills, rounding.
  KernelLibrary library(
      "zrt.kernel @copy [read f32, write f32] scalars 0 {\n^body(%x: f32):\n"
      "zrt.yield %x : f32\n}\n"
      "zrt.kernel @fill [write i8] scalars 0 {\n"
      "%x = arith.constant 0 : i8\nzrt.yield %x : i8\n}\n" +
          getKernel("f32", "%a = math.floor %x : f32\n%b = math.ceil %a : f32\n"
                           "%c = math.trunc %b : f32\n"
                           "%d = math.roundeven %c : f32\n"
                           "%e = arith.maximumf %d, %x : f32\n"
                           "%f = arith.minnumf %e, %x : f32\n"
                           "%g = arith.maxnumf %f, %x : f32\n"
                           "%h = math.rsqrt %g : f32\n"
                           "%y = math.fma %h, %x, %x : f32"),
      getTargets().front());
  std::string path = library.getDirectory().file("code.so");
  EXPECT_EQ(getSymbols(path, /*undefined=*/true), std::vector<std::string>());
  EXPECT_EQ(getSymbols(path, /*undefined=*/false).size(), 3u);
}

TEST(CpuLibrary, ExportsWhatItIsTold) {
  Directory directory;
  std::string object = emitModule(R"(
    llvm.func @a() { llvm.return }
    llvm.func @"b.f32"() { llvm.return }
    llvm.func internal @c() { llvm.return }
  )");
  EXPECT_EQ(getSymbols(linkToFile(directory, object, {"b.f32"}),
                       /*undefined=*/false),
            std::vector<std::string>{"b.f32"});
  EXPECT_EQ(getSymbols(linkToFile(directory, object, {}),
                       /*undefined=*/false),
            (std::vector<std::string>{"a", "b.f32"}));
}

// Calls, addresses in data, data that is written to, and memory that is 0.
TEST(CpuLibrary, RunsAfterItIsLoaded) {
  Directory directory;
  std::string path = linkToFile(directory, emitModule(R"(
    llvm.mlir.global internal @count(40 : i32) : i32
    llvm.mlir.global internal @zeros(dense<0> : tensor<5000xi32>) : !llvm.array<5000 x i32>
    llvm.mlir.global internal constant @one(1 : i32) : i32
    llvm.func internal @next() -> i32 attributes {passthrough = ["noinline"]} {
      %p = llvm.mlir.addressof @count : !llvm.ptr
      %q = llvm.mlir.addressof @one : !llvm.ptr
      %z = llvm.mlir.addressof @zeros : !llvm.ptr
      %last = llvm.getelementptr %z[4999] : (!llvm.ptr) -> !llvm.ptr, i32
      %a = llvm.load volatile %p : !llvm.ptr -> i32
      %b = llvm.load volatile %q : !llvm.ptr -> i32
      %c = llvm.load volatile %last : !llvm.ptr -> i32
      %ab = llvm.add %a, %b : i32
      %abc = llvm.add %ab, %c : i32
      llvm.store volatile %abc, %p : i32, !llvm.ptr
      llvm.return %abc : i32
    }
    llvm.func @twice() -> i32 {
      %a = llvm.call @next() : () -> i32
      %b = llvm.call @next() : () -> i32
      llvm.return %b : i32
    }
    llvm.mlir.global constant @table() : !llvm.array<2 x ptr> {
      %0 = llvm.mlir.undef : !llvm.array<2 x ptr>
      %1 = llvm.mlir.addressof @twice : !llvm.ptr
      %2 = llvm.mlir.addressof @count : !llvm.ptr
      %3 = llvm.insertvalue %1, %0[0] : !llvm.array<2 x ptr>
      %4 = llvm.insertvalue %2, %3[1] : !llvm.array<2 x ptr>
      llvm.return %4 : !llvm.array<2 x ptr>
    }
  )"),
                                {"table"});
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(handle) << dlerror();
  auto *table = static_cast<void **>(dlsym(handle, "table"));
  ASSERT_TRUE(table) << dlerror();
  EXPECT_EQ(reinterpret_cast<int32_t (*)()>(table[0])(), 42);
  EXPECT_EQ(*static_cast<int32_t *>(table[1]), 42);
  EXPECT_FALSE(dlsym(handle, "twice"));
  EXPECT_DEATH(table[0] = nullptr, "");
  dlclose(handle);
}

TEST(CpuLibrary, SaysWhereItCannotWrite) {
  Directory directory;
  CompiledStep step;
  step.code = emitModule("llvm.func @a() { llvm.return }");
  std::string message;
  std::string path = directory.file("none/x.so");
  EXPECT_TRUE(failed(writeLibrary(step, path, message)));
  EXPECT_EQ(message, "cannot write '" + path + "': No such file or directory");
}

TEST(CpuLibrary, RefusesWhatNoStepHas) {
  EXPECT_EQ(getLinkError(R"(
    llvm.func @missing()
    llvm.func @a() { llvm.call @missing() : () -> () llvm.return }
  )"),
            "cannot link code: undefined symbol 'missing'");
  EXPECT_EQ(getLinkError("llvm.mlir.global thread_local @t(1 : i32) : i32"),
            "cannot link code: section '.tdata' is of a kind that no step has");
  std::string library, message;
  EXPECT_TRUE(failed(linkLibrary("text", {}, library, message)));
  EXPECT_EQ(message, "cannot link code: invalid buffer: the size (4) is "
                     "smaller than an ELF header (64)");
}

TEST(CpuObject, IsTheSameTwice) {
  std::string kernel = getKernel("f32", "%y = math.sqrt %x : f32");
  EXPECT_EQ(emitText(kernel, {}), emitText(kernel, {}));
}

TEST(CpuObject, IsReadableAsAssemblyAndIR) {
  // A product and a sum stay two instructions.
  std::string kernel = getKernel("f32", "%z = arith.mulf %x, %x : f32\n"
                                        "%y = arith.addf %z, %x : f32");
  std::string assembly = emitText(kernel, {"x86-64-v3", CpuOutput::assembly});
  EXPECT_NE(assembly.find("vmulps"), std::string::npos);
  EXPECT_EQ(assembly.find("vfmadd"), std::string::npos);
  EXPECT_NE(assembly.find("prefetcht0"), std::string::npos);
  std::string ir = emitText(kernel, {"x86-64-v3", CpuOutput::llvmIR});
  EXPECT_NE(ir.find("fmul <8 x float>"), std::string::npos);
}

TEST(CpuObject, RefusesUnknownCpus) {
  std::string message;
  EXPECT_TRUE(failed(checkCpuName("pentium", message)));
  EXPECT_EQ(message, "cpu 'pentium' is unknown; expected x86-64-v3, x86-64-v4 "
                     "or native");
  EXPECT_EQ(cpuFeatureList("pentium"), "");
}

TEST(CpuObject, ListsFeatures) {
  EXPECT_EQ(cpuFeatureList("x86-64-v3"), "avx,avx2,bmi,bmi2,f16c,fma");
  EXPECT_EQ(cpuFeatureList("x86-64-v4"),
            "avx,avx2,bmi,bmi2,f16c,fma,avx512f,avx512bw,avx512cd,avx512dq,"
            "avx512vl");
  EXPECT_EQ(cpuFeatureList("native"), cpuFeatureList(resolveCpuName("native")));
}
