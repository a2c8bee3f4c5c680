//===- Settings.h - The options of a compile --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_COMPILER_SETTINGS_H
#define ZERO_TOOLS_COMPILER_SETTINGS_H

#include "codegen/library/Compile.h"
#include "tools/driver/Driver.h"

namespace zero {

/// What zero-compile takes as flags, and a client as JSON.
struct CompileSettings : LowerSettings {
  /// Checks the options and puts them into |lower| and |compile|.
  mlir::LogicalResult get(LowerOptions &lower, CompileOptions &compile,
                          std::string &message) const;
  /// Checks that the step of |plan| fits into the memory of a device.
  mlir::LogicalResult checkMemory(llvm::StringRef plan,
                                  std::string &message) const;
  /// The name of the step that a recipe describes.
  llvm::StringRef getRecipeName() const {
    return name.text.empty() ? "train" : llvm::StringRef(name.text);
  }

  OptionText name{"name", ""};
  OptionText step{"step", ""};
  OptionText cpu{"cpu", "x86-64-v3"};
  OptionText target{"target", "cpu"};
  /// Memory of a device, such as 80GiB. A step that needs more is an error.
  OptionText maxBytes{"max-bytes", ""};
  /// A folder of steps that have been compiled before.
  OptionText cache{"cache", ""};
  bool isProved = true;
};

/// Reads the options of a client, an object of JSON with the names of the flags
/// as keys: {"mesh": "dp=4", "stage": 2}. A value is a string or a whole
/// number.
mlir::LogicalResult readSettings(llvm::StringRef text,
                                 CompileSettings &settings,
                                 std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_COMPILER_SETTINGS_H
