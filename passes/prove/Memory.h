//===- Memory.h - What the buffers of a program hold ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are never enumerated. Over the axes that divide the rows of a bucket
// each element has one owner, the rank whose slice it is in; what a buffer
// holds is, for each element, a number on its owner and one on all other ranks.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_MEMORY_H
#define ZERO_PASSES_PROVE_MEMORY_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// A bucket, and what its members are.
struct BucketInfo {
  BucketOp op;
  bool hasElements = false; // else there are only pads
  bool isUsedTwice = false; // a member arrives in several pieces
  mlir::Type storage;       // of parameters
};
using Buckets = llvm::DenseMap<mlir::StringAttr, BucketInfo>;
Buckets readBuckets(mlir::ModuleOp module);
/// Tells the reader of |diagnostic|, which is about a buffer, whose elements
/// are in it.
void noteMembers(mlir::InFlightDiagnostic &diagnostic,
                 const BucketInfo &bucket);

/// The elements of a bucket up to |end|, from where the piece before ends. They
/// are the same function of themselves, and so are the pads between them.
struct Piece {
  int64_t end = 0;
  Number element;
  Number pad;
  /// The element and pad where no gradient arrived in the last backward pass,
  /// and what the element must be then. Null once that is known to hold.
  Expr absent = nullptr;
  Expr absentPad = nullptr;
  Expr expected = nullptr;

  bool isSame(const Piece &other) const {
    return element == other.element && pad == other.pad &&
           absent == other.absent && absentPad == other.absentPad &&
           expected == other.expected;
  }
  bool operator==(const Piece &other) const {
    return end == other.end && isSame(other);
  }
};
using Pieces = llvm::SmallVector<Piece, 1>;

/// One piece of |length| elements, or none.
Pieces makePieces(int64_t length, Number element, Number pad);
/// Appends |piece|, as part of the last one where they are the same.
void append(Pieces &pieces, Piece piece);

struct Contents {
  zrt::BufferOp op;
  bool hasOther = false; // several ranks have each element
  /// The axes that owners are told apart over: those of the slices, or of who
  /// wrote |own| last.
  AxisSet owners = 0;
  bool allocated = false;
  zrt::Role role = zrt::Role::parameter;
  mlir::StringAttr bucket; // whose elements; null: nobody's
  Pieces own;
  Pieces other;                      // only if hasOther
  mlir::Operation *writer = nullptr; // for diagnostics

  /// Whether owners hold what the others do, or all are owners.
  bool isAlike() const { return hasOther && own == other; }
  /// Whether |own| is what owners over |set| hold.
  bool isOwnedOver(AxisSet set) const;
  void fill(Number element, Number pad);
  /// Nothing that anybody wrote.
  void forget(Algebra &algebra, const llvm::Twine &what);
  /// Whether there is nothing to forget.
  bool isForgotten() const;
  bool holdsSame(const Contents &other) const;
  /// Where both hold the same but for what it went through: then it went
  /// through both. Otherwise false, and nothing is done.
  bool join(const Contents &other);
};

/// Everything a program remembers between two calls.
struct Memory {
  llvm::MapVector<mlir::StringAttr, Contents> buffers;
  llvm::DenseMap<std::pair<mlir::StringAttr, int64_t>, Number> slots;

  Contents &get(mlir::StringAttr buffer) {
    return buffers.find(buffer)->second;
  }
  Contents &get(mlir::FlatSymbolRefAttr buffer) {
    return get(buffer.getAttr());
  }
  /// Applies |function| to every number.
  void map(llvm::function_ref<Expr(Expr)> function);
  bool hasSameRoles(const Memory &other) const;
};

/// A backward pass is closed; the first of its step if |isFirst|.
void closeBackward(Algebra &algebra, Memory &memory, bool isFirst);
void closeStep(Algebra &algebra, Memory &memory);

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_MEMORY_H
