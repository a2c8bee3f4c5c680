//===- Child.h - A function in a process of its own -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_CHILD_H
#define ZERO_CODEGEN_VALIDATE_CHILD_H

#include "mlir/Support/LLVM.h"

#include <chrono>
#include <string>

namespace zero {

/// Runs |function| in a child process, a copy of this one, and passes on the
/// text that it returns. The child has no thread but its own. On an error
/// |text| says whether the child crashed, or did not end within |limit|.
mlir::LogicalResult runInChild(llvm::function_ref<std::string()> function,
                               std::chrono::milliseconds limit,
                               std::string &text);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_CHILD_H
