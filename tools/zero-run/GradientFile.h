//===- GradientFile.h - Gradients of a run, from a file ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_GRADIENTFILE_H
#define ZERO_TOOLS_ZERO_RUN_GRADIENTFILE_H

#include "tools/zero-run/Engine.h"
#include "tools/zero-run/Safetensors.h"

#include "llvm/ADT/StringMap.h"

#include <map>

namespace zero {

/// Gradients under the keys STEP/BACKWARD/RANK/PARAMETER, counted from 0. One
/// that has no key does not arrive.
class GradientFile {
public:
  /// Checks each tensor against |parameters| and |ranks|. On an error |message|
  /// names the key and says what to do.
  static mlir::FailureOr<GradientFile>
  open(llvm::StringRef path, llvm::ArrayRef<ParameterInfo> parameters,
       int64_t ranks, std::string &message);

  /// The steps up to the last one that has a gradient.
  int64_t getSteps() const;
  /// The backward passes of each of |steps| steps up to the last one that has a
  /// gradient; at least one.
  std::vector<int64_t> getBackwards(int64_t steps) const;

  /// Whether a run of |steps| steps, with backwards[i % n] backward passes in
  /// step i, takes all gradients there are.
  mlir::LogicalResult checkTaken(int64_t steps,
                                 llvm::ArrayRef<int64_t> backwards,
                                 std::string &message) const;

  /// A gradient, or nothing where it does not arrive.
  std::optional<std::vector<double>> find(int64_t step, int64_t backward,
                                          int64_t rank,
                                          const ParameterInfo &info) const;

private:
  mlir::LogicalResult add(size_t tensor,
                          llvm::ArrayRef<ParameterInfo> parameters,
                          int64_t ranks, std::string &message);

  std::string path;
  SafetensorsFile file;
  llvm::StringMap<size_t> tensors; // by key
  /// By (step, backward pass), a tensor that is there.
  std::map<std::pair<int64_t, int64_t>, size_t> present;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_GRADIENTFILE_H
