//===- StepLibrary.cpp - A compiled step, opened --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepLibrary.h"

#include "codegen/kernels/Lower.h"
#include "tools/driver/Driver.h"
#include "zero_rt/step.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>

using namespace mlir;
using namespace zero;
using namespace zero::test;

bool zero::test::canRun() { return !resolveCpuName("native").empty(); }

std::string StepLibrary::open(const LowerOptions &options,
                              llvm::function_ref<void(ModuleOp)> edit) {
  auto file = llvm::MemoryBuffer::getFile(ZERO_QUICKSTART);
  if (!file)
    return "cannot read " ZERO_QUICKSTART;
  std::string text = (*file)->getBuffer().str();
  std::string missing;
  auto append = [&](const std::string &known, bool wanted,
                    const std::string &more) {
    size_t at = text.find(known);
    if (at == std::string::npos)
      missing = known;
    else if (wanted)
      text.insert(at + known.size(), more);
  };
  append("@fc1.weight : 64x48xbf16", true, " uses 2");
  std::string arguments, names, values, types;
  for (int i = 0; i < numEchoes; ++i) {
    std::string name = "echo" + std::to_string(i);
    arguments += ", %" + name + ": !zero.value<f64>";
    names += ", " + name;
    values += ", %" + name;
    types += ", !zero.value<f64>";
  }
  append("(%lr: !zero.value<f64>", true, arguments);
  append("zero.return [norm", true, names);
  append("] %norm", true, values);
  append("] %norm" + values + " : !zero.value<f64>", true, types);
  std::string declared;
  int ranks = 4; // or as many as have activations
  for (auto &[name, from, to] : activations)
    ranks = std::max({ranks == 4 ? 0 : ranks, from + 1, to + 1});
  for (auto &[name, from, to] : activations)
    declared += "\nzero.activation @" + name +
                " : tensor<?x6xf32> over dp from " + std::to_string(from) +
                " to " + std::to_string(to);
  append("\"dp\" = 4", isReplicated, ", \"tp\" = 2");
  append("\"dp\" = 4" + std::string(isReplicated ? ", \"tp\" = 2]>" : "]>"),
         !activations.empty(), declared);
  text.replace(text.find("\"dp\" = 4"), 8, "\"dp\" = " + std::to_string(ranks));
  append("@fc2.bias : 10xbf16 optional", hasUnits,
         "\nzero.unit @fc1 [@fc1.weight, @fc1.bias]"
         "\nzero.unit @fc2 [@fc2.weight, @fc2.bias]");
  append("prescaled(accumulation : -1)", isReplicated, " replicated [tp]");
  for (size_t word = text.find("bf16"); isF32 && word != std::string::npos;
       word = text.find("bf16"))
    text.replace(word, 4, "f32");
  append("zero.reduce %g#0, %g#1, %g#2, %g#3", !wire.empty(),
         " reduce_dtype " + wire);
  if (!missing.empty())
    return "the example no longer has " + missing;

  DialectRegistry registry;
  registerDriverDialects(registry);
  registerCodegenDialects(registry);
  context = std::make_unique<MLIRContext>(registry);
  module = parseSourceString<ModuleOp>(text, context.get());
  if (!module || failed(lower(*module, options)))
    return "the step cannot be lowered";
  edit(*module);
  if (failed(verify(*module)))
    return "the edited step does not verify";
  SmallString<128> path;
  if (llvm::sys::fs::createTemporaryFile("trace", "so", path))
    return "cannot create a temporary file";
  // Once it is open, the file may go.
  llvm::FileRemover remover(path);
  std::string message = writeOnce(path);
  if (!message.empty())
    return message;
  return zero_rt_open(path.c_str(), &library) ? zero_rt_message() : "";
}

std::string StepLibrary::writeOnce(StringRef path) {
  // By what is compiled, and how.
  static std::map<std::string, std::string> libraries;
  std::string key = isForCuda ? "cuda\n" : "\n";
  llvm::raw_string_ostream(key) << *module;
  auto known = libraries.find(key);
  if (known != libraries.end()) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << known->second;
    return error ? error.message() : "";
  }
  CompileOptions options;
  if (isForCuda)
    options.cuda.emplace();
  FailureOr<CompiledStep> compiled = compileStep(*module, options);
  if (failed(compiled))
    return "the step does not compile";
  std::string message;
  if (failed(writeLibrary(*compiled, path, message)))
    return message;
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return "cannot read the library";
  libraries[key] = (*file)->getBuffer().str();
  return "";
}
