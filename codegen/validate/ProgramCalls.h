//===- ProgramCalls.h - What the handlers of a program call -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_PROGRAMCALLS_H
#define ZERO_CODEGEN_VALIDATE_PROGRAMCALLS_H

#include "codegen/validate/CallText.h"
#include "dialect/zrt/MemoryUses.h"

namespace zero {

/// Describes the IR of a program in the words of CallText.h. It knows nothing
/// of the tables from which a library is made.
class ProgramCalls {
public:
  /// |stageAxes| are the axes of the pipeline stages, in the order of the mesh.
  ProgramCalls(zrt::ProgramOp program,
               llvm::ArrayRef<mlir::StringAttr> stageAxes);

  /// The operands of |call|, as it describes them.
  Operands getOperands(zrt::RuntimeCall call);
  /// The line of |call|.
  std::string getText(zrt::RuntimeCall call);

  std::string axes(llvm::ArrayRef<mlir::StringAttr> names,
                   ValueType type = nullptr) const;
  std::string axes(mlir::ArrayAttr names, ValueType type = nullptr) const;
  std::string event(mlir::FlatSymbolRefAttr symbol) const;
  /// The events of a list, with spaces behind them.
  std::string events(mlir::ArrayAttr list) const;
  /// How many ops of its kind stand before |symbol|.
  int64_t getPlace(mlir::FlatSymbolRefAttr symbol) const {
    return places.lookup(symbol.getAttr());
  }
  const zrt::ProgramSymbols &getSymbols() const { return symbols; }

private:
  void addSegments(zrt::SegmentsOp segments, Operands &operands) const;
  int64_t getStages(llvm::ArrayRef<mlir::StringAttr> names,
                    ValueType type) const;

  zrt::ProgramOp program;
  MeshOp mesh;
  llvm::SmallVector<mlir::StringAttr> stageAxes;
  zrt::ProgramSymbols symbols;
  mlir::SymbolTableCollection tables;
  llvm::DenseMap<mlir::StringAttr, int64_t> places;
};

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_PROGRAMCALLS_H
