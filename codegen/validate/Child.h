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

/// A copy of this process that runs a function beside it. The copy has no
/// thread but its own.
class Child {
public:
  explicit Child(llvm::function_ref<std::string()> function);
  /// Stops the function if nobody waited for it.
  ~Child();
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  /// Waits, once, and passes on the text that the function returns. On an error
  /// |text| says whether the child did not start, crashed, or did not end
  /// within |limit| from now.
  mlir::LogicalResult wait(std::chrono::milliseconds limit, std::string &text);

private:
  int pid = -1;       // not running
  int out = -1;       // what the child writes
  int startError = 0; // an errno
};

/// Runs |function| in a child, and waits for it as Child::wait does.
mlir::LogicalResult runInChild(llvm::function_ref<std::string()> function,
                               std::chrono::milliseconds limit,
                               std::string &text);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_CHILD_H
