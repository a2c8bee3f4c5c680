//===- MemoryUses.h - What calls of the runtime touch -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZRT_MEMORYUSES_H
#define ZERO_DIALECT_ZRT_MEMORYUSES_H

#include "dialect/zrt/ZrtDialect.h"

namespace zrt {

/// A buffer with memory of its own, slots, the copy of the slots that is in the
/// memory of the host, or the arriving gradient.
struct MemoryUse {
  mlir::StringAttr memory;
  bool writes = false;
  /// Whether the call runs on only some of the pipeline stages that have the
  /// memory.
  bool isOptional = false;
};

/// Parameters of a unit: what each rank keeps of a bucket, trained or frozen,
/// and where they are whole while the unit is unsharded.
struct UnitPart {
  mlir::FlatSymbolRefAttr bucket;
  mlir::FlatSymbolRefAttr parameters;
  mlir::FlatSymbolRefAttr unsharded;
  bool isFrozen = false;
};

/// The symbols of a program, looked up once.
class ProgramSymbols {
public:
  explicit ProgramSymbols(ProgramOp program);

  template <typename T> T lookup(mlir::FlatSymbolRefAttr symbol) const {
    return table.lookup<T>(symbol.getAttr());
  }
  /// The name of the memory of a buffer or of slots.
  mlir::StringAttr getMemory(mlir::FlatSymbolRefAttr symbol) const;
  BucketTableOp getTable(mlir::FlatSymbolRefAttr bucket) const {
    return tables.lookup(bucket);
  }
  /// The parameters of |unit| that are sharded.
  llvm::ArrayRef<UnitPart> getPartsOf(UnitTableOp unit) const {
    auto it = partsOf.find(unit.getUnitAttr());
    return it == partsOf.end() ? llvm::ArrayRef<UnitPart>() : it->second;
  }
  /// Whether |buffer| is where a unit is unsharded.
  bool isUnsharded(mlir::FlatSymbolRefAttr buffer) const {
    return unsharded.contains(buffer);
  }
  /// What |call| touches; see RuntimeCall::getMemoryUses.
  llvm::SmallVector<MemoryUse> getUses(RuntimeCall call,
                                       mlir::FlatSymbolRefAttr arriving) const;
  /// Adds the memory of a buffer or of slots to |uses|; nothing for null.
  void addUse(mlir::FlatSymbolRefAttr symbol, bool writes,
              llvm::SmallVectorImpl<MemoryUse> &uses) const;
  /// Adds reads of all slots.
  void addAllSlots(llvm::SmallVectorImpl<MemoryUse> &uses) const;
  /// The memory in which kernels on the host read scalars. `copy_scalars`
  /// writes it.
  mlir::StringAttr getHostScalars() const { return hostScalars; }
  /// The tensor of the caller that arrives. `pack` reads it.
  mlir::StringAttr getArrivingGradient() const { return arrivingGradient; }

private:
  mlir::SymbolTable table;
  mutable mlir::SymbolTableCollection places;
  llvm::DenseMap<mlir::Attribute, BucketTableOp> tables;
  llvm::DenseMap<mlir::Attribute, llvm::SmallVector<UnitPart, 1>>
      partsOf; // by symbol of a unit
  llvm::DenseSet<mlir::Attribute> unsharded;
  llvm::SmallVector<mlir::StringAttr> slots;
  mlir::StringAttr hostScalars;
  mlir::StringAttr arrivingGradient;
};

/// The name of a memory in a message, such as "@b0.gradient" or "the arriving
/// gradient".
std::string describeMemory(mlir::StringAttr memory);

} // namespace zrt

#endif // ZERO_DIALECT_ZRT_MEMORYUSES_H
