//===- WriteFile.h - Writes a file whole or not at all ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_LIBRARY_WRITEFILE_H
#define ZERO_CODEGEN_LIBRARY_WRITEFILE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"

#include <string>

namespace zero {

/// Writes |text| to |path|. On an error there is no file at |path|, and
/// |message| names the path.
llvm::LogicalResult writeFile(llvm::StringRef path, llvm::StringRef text,
                              std::string &message);

} // namespace zero

#endif // ZERO_CODEGEN_LIBRARY_WRITEFILE_H
