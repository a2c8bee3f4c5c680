//===- Programs.h - What is measured, compiled as users compile -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_BENCH_PROGRAMS_H
#define ZERO_TOOLS_ZERO_BENCH_PROGRAMS_H

#include "codegen/library/Compile.h"
#include "dialect/zrt/ZrtDialect.h"
#include "tools/driver/Driver.h"
#include "zero_rt/library.h"
#include "zero_rt/step.h"

#include <functional>
#include <memory>

namespace zero::bench {

/// A context with all that a step needs.
std::unique_ptr<mlir::MLIRContext> createContext();

/// |count| sizes of parameters, empty and odd ones among them.
std::vector<int64_t> getSizes(int64_t count);

/// A clipped AdamW step over parameters of |sizes| elements, bf16 with an f32
/// master weights, whose gradients arrive and are kept in |gradient| type.
std::string getStepText(llvm::ArrayRef<int64_t> sizes,
                        llvm::StringRef gradient);

/// |text| lowered for one rank at |stage|; null on an error.
mlir::OwningOpRef<mlir::ModuleOp> lowerStep(mlir::MLIRContext &context,
                                            const std::string &text, int stage);

/// Kernels in a shared library that is loaded as long as this lives.
class KernelLibrary {
public:
  KernelLibrary() = default;
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;
  ~KernelLibrary();
  /// Loads the kernels of |program|, the one called |name| behind |padding|
  /// copies of others: another place in memory.
  bool load(zrt::ProgramOp program, llvm::StringRef name, int padding,
            std::string &message);
  void *find(const std::string &symbol) const;

private:
  void *handle = nullptr;
};

/// Writes |step| to a temporary file and opens it; null on an error.
const zero_rt_library *openStep(const CompiledStep &step, std::string &message);
/// Writes |step| to a temporary file and validates it as zero-compile does;
/// |milliseconds|: without the writing.
bool validateStep(const CompiledStep &step, double &milliseconds,
                  std::string &message);

/// One thread per rank with a step of |program| each, which |work| is called
/// on. |trace|: a folder for traces of all ranks; null for none.
bool runRanks(mlir::ModuleOp scheduled, int32_t ranks,
              const std::function<bool(int32_t rank, zero_rt_step *step,
                                       std::string &message)> &work,
              std::string &message, const char *trace = nullptr);

} // namespace zero::bench

#endif // ZERO_TOOLS_ZERO_BENCH_PROGRAMS_H
