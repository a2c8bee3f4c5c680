//===- KernelLibrary.cpp - Compiles the kernels of a test -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"

#include "codegen/cpu/LinkLibrary.h"
#include "codegen/kernels/Lower.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"

#include <dlfcn.h>
#include <mutex>

using namespace mlir;
using namespace zero::test;

std::vector<Target> zero::test::getTargets() {
  std::vector<Target> targets;
  std::string host = resolveCpuName("native");
  if (host.empty())
    return targets;
  for (int64_t width : {1, 8, 32})
    targets.push_back({"x86-64-v3", width});
  if (host == "x86-64-v4")
    for (int64_t width : {8, 16})
      targets.push_back({"x86-64-v4", width});
  targets.push_back({"native", 8});
  return targets;
}

Source::Source() {
  DialectRegistry registry;
  registry.insert<zero::ZeroDialect, zrt::ZrtDialect>();
  registerCodegenDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

OwningOpRef<ModuleOp> Source::parse(const std::string &symbols) {
  return parseSourceString<ModuleOp>(
      "zero.mesh @cluster <[\"dp\" = 1]>\n"
      "zrt.program @train on @cluster inputs [] results [] [] {\n" +
          symbols + "\n}\n",
      &context);
}

Directory::Directory() {
  SmallString<128> unique;
  if (!llvm::sys::fs::createUniqueDirectory("zero-cpu-test", unique))
    path = unique.str().str();
}

Directory::~Directory() {
  if (!path.empty())
    llvm::sys::fs::remove_directories(path);
}

void *zero::test::loadCode(ModuleOp code, const Directory &directory,
                           const zero::CpuTargetOptions &target) {
  // Many programs have the same kernels.
  static std::mutex mutex;
  static std::map<std::string, void *> loaded;
  std::string text;
  llvm::raw_string_ostream(text) << target.cpu << " " << target.optimize << "\n"
                                 << code;
  std::lock_guard<std::mutex> lock(mutex);
  void *&handle = loaded[text];
  if (handle)
    return handle;
  SmallString<0> object;
  llvm::raw_svector_ostream os(object);
  EXPECT_TRUE(succeeded(emitCpuObject(code, target, os)));
  std::string library, message;
  EXPECT_TRUE(succeeded(linkLibrary(object, {}, library, message))) << message;
  std::error_code error;
  llvm::raw_fd_ostream(directory.file("code.so"), error) << library;
  EXPECT_FALSE(error) << error.message();
  handle = dlopen(directory.file("code.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  return handle;
}

KernelLibrary::KernelLibrary(const std::string &symbols, const Target &target) {
  compile(symbols, target);
}

void KernelLibrary::compile(const std::string &symbols, const Target &target) {
  Source source;
  OwningOpRef<ModuleOp> program = source.parse(symbols);
  if (!program) {
    ADD_FAILURE() << "the test's program does not parse";
    return;
  }
  OwningOpRef<ModuleOp> code =
      ModuleOp::create(UnknownLoc::get(&source.context));
  CpuKernelOptions options;
  options.vectorElements = target.vectorElements;
  program->walk([&](zrt::KernelOp kernel) {
    EXPECT_TRUE(
        succeeded(emitCpuKernel(kernel, *code, kernel.getSymName(), options)));
  });
  std::map<std::string, int64_t> firstSlots;
  int64_t numSlots = 0;
  program->walk([&](zrt::SlotsOp slots) {
    firstSlots[slots.getSymName().str()] = numSlots;
    numSlots += slots.size();
  });
  program->walk([&](zrt::ScalarsOp scalars) {
    EXPECT_TRUE(succeeded(emitScalars(
        scalars, *code, scalars.getSymName(), [&](FlatSymbolRefAttr symbol) {
          return firstSlots.at(symbol.getValue().str());
        })));
  });

  handle = loadCode(*code, directory, {target.cpu});
}

void *KernelLibrary::find(const char *name) const {
  void *symbol = handle ? dlsym(handle, name) : nullptr;
  EXPECT_NE(symbol, nullptr) << "no symbol " << name;
  return symbol;
}
