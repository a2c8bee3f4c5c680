//===- GlobalBuilder.h - Constants of a library as LLVM globals -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_GLOBALBUILDER_H
#define ZERO_CODEGEN_HOST_GLOBALBUILDER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"

namespace zero {

/// A field of a constant struct: an integer, or the address of |symbol| (null
/// if |symbol| is empty).
struct Constant {
  unsigned width = 0; // 0: an address
  uint64_t value = 0;
  std::string symbol;
};

/// Appends internal constants to a module.
class GlobalBuilder {
public:
  explicit GlobalBuilder(mlir::ModuleOp target)
      : builder(mlir::OpBuilder::atBlockEnd(target.getBody())),
        loc(target.getLoc()) {}

  Constant integer(unsigned width, uint64_t value) {
    return {width, value, {}};
  }
  /// A zero-terminated string, or bytes without a terminator.
  Constant string(llvm::StringRef name, llvm::StringRef text);
  Constant bytes(llvm::StringRef name, llvm::StringRef bytes);
  /// Arrays. The address of an empty array is null.
  Constant words(llvm::StringRef name, llvm::ArrayRef<int64_t> words);
  Constant indices(llvm::StringRef name, llvm::ArrayRef<int32_t> indices);
  Constant pointers(llvm::StringRef name, llvm::ArrayRef<std::string> symbols);
  Constant structure(llvm::StringRef name, llvm::ArrayRef<Constant> fields);

  /// Sets the prefix of the names of later constants. Each program has a prefix
  /// of its own.
  void setPrefix(const llvm::Twine &text) { prefix = text.str(); }
  /// The symbol of the constant |name|.
  std::string getSymbol(llvm::StringRef name) const;

  mlir::OpBuilder &getBuilder() { return builder; }
  mlir::Location getLoc() const { return loc; }

private:
  Constant dense(llvm::StringRef name, mlir::Type element,
                 mlir::DenseElementsAttr values);
  /// A constant of |type| with the values |fields|.
  Constant aggregate(llvm::StringRef name, mlir::Type type,
                     llvm::ArrayRef<Constant> fields);

  mlir::OpBuilder builder;
  mlir::Location loc;
  std::string prefix;
};

} // namespace zero

#endif // ZERO_CODEGEN_HOST_GLOBALBUILDER_H
