//===- Safetensors.h - Reads a safetensors file -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_SAFETENSORS_H
#define ZERO_TOOLS_ZERO_RUN_SAFETENSORS_H

#include "mlir/Support/LogicalResult.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <vector>

namespace zero {

/// A tensor of a file; |bytes| lie in the file.
struct StoredTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  llvm::StringRef bytes;
};

/// A file that was read: its tensors in the order of their data, which they
/// cover without overlap and without gaps.
struct SafetensorsFile {
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  std::vector<StoredTensor> tensors;

  /// On an error |message| says why, and names the tensor. Whether the bytes of
  /// a tensor fit its shape is for those to check who know its type.
  static mlir::FailureOr<SafetensorsFile> open(llvm::StringRef path,
                                               std::string &message);
};

/// A failure for which |message| becomes |text|.
mlir::LogicalResult fail(std::string &message, const llvm::Twine &text);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_SAFETENSORS_H
