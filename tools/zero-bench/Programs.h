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

/// A shared library that is loaded as long as this lives.
class Library {
public:
  Library() = default;
  Library(Library &&other) { std::swap(handle, other.handle); }
  Library &operator=(Library &&other) {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Library();
  /// Writes |step| to a temporary file and loads it.
  bool load(const CompiledStep &step, std::string &message);
  /// The kernels of |program|, the one called |name| behind |padding| copies of
  /// others: another place in memory.
  bool loadKernels(zrt::ProgramOp program, llvm::StringRef name, int padding,
                   std::string &message);
  void *find(const std::string &symbol) const;

private:
  bool open(llvm::StringRef path, std::string &message);
  void *handle = nullptr;
};

/// One thread per rank with a step of |program| each, which |work| is called
/// on.
bool runRanks(mlir::ModuleOp scheduled, int32_t ranks,
              const std::function<bool(int32_t rank, zero_rt_step *step,
                                       std::string &message)> &work,
              std::string &message);

inline const zero_rt_calls &callsOf(zero_rt_step *step) {
  return **reinterpret_cast<const zero_rt_calls *const *>(step);
}

} // namespace zero::bench

#endif // ZERO_TOOLS_ZERO_BENCH_PROGRAMS_H
