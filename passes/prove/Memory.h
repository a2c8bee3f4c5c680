//===- Memory.h - The contents of the buffers of a program ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are never enumerated. Over the axes that divide the rows of a bucket,
// an element has one owner: the rank whose slice has the element. For each
// element a buffer has one number on the owner and one number on all other
// ranks.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_MEMORY_H
#define ZERO_PASSES_PROVE_MEMORY_H

#include "passes/prove/StepSemantics.h"

namespace zero::prove {

/// A bucket, frozen or not, and properties of its members.
struct BucketInfo {
  LaidOut layout;
  BucketOp op;              // null: frozen
  bool hasElements = false; // else there are only pads
  bool isUsedTwice = false; // a member may arrive in several pieces
  mlir::Type storage;       // of parameters
};
using Buckets = llvm::DenseMap<mlir::StringAttr, BucketInfo>;
Buckets readBuckets(mlir::ModuleOp module);
/// Adds a note with the members of the bucket to a |diagnostic| on a buffer.
void noteMembers(mlir::InFlightDiagnostic &diagnostic,
                 const BucketInfo &bucket);

/// The elements of a bucket from the end of the previous piece to |end|. One
/// expression describes all of them, and one describes the pads between them.
struct Piece {
  int64_t end = 0;
  Number element;
  Number pad;
  /// The element and pad if no gradient arrived in the last backward pass, and
  /// the expected element in this case. Null once both are known to be equal.
  Expr absent = nullptr;
  Expr absentPad = nullptr;
  Expr expected = nullptr;

  bool isSame(const Piece &other) const {
    return element == other.element && element.isComputedAs(other.element) &&
           pad == other.pad && absent == other.absent &&
           absentPad == other.absentPad && expected == other.expected;
  }
  bool operator==(const Piece &other) const {
    return end == other.end && isSame(other);
  }
};
using Pieces = llvm::SmallVector<Piece, 1>;

/// One piece of |length| elements, or none.
Pieces makePieces(int64_t length, Number element, Number pad);
/// Appends |piece|, or extends the last piece if both are the same.
void append(Pieces &pieces, Piece piece);

struct Contents {
  zrt::BufferOp op;
  bool hasOther = false; // several ranks have each element
  /// The axes over which owners differ: those of the slices, or those of the
  /// last write of |own|.
  AxisSet owners = 0;
  bool allocated = false;
  /// Whether gradients arrive in it, those of one backward pass at a time.
  bool holdsOneBackward = false;
  zrt::Role role = zrt::Role::parameter;
  mlir::StringAttr bucket; // of the elements; null if there is none
  Pieces own;
  Pieces other;                      // only if hasOther
  mlir::Operation *writer = nullptr; // for diagnostics

  /// Whether owners and other ranks hold the same numbers.
  bool isAlike() const { return hasOther && own == other; }
  /// Whether |own| are the numbers of owners over |set|.
  bool isOwnedOver(AxisSet set) const;
  void fill(Number element, Number pad);
  /// Makes the contents undefined. |what| describes them in messages.
  void forget(Algebra &algebra, const llvm::Twine &what);
  /// Whether the contents are undefined, and of no bucket.
  bool isNothing() const;
  /// Whether nothing is known of them, as forget() leaves them.
  bool isForgotten() const { return isNothing() && !writer; }
  bool holdsSame(const Contents &other) const;
  /// If both hold the same numbers, but possibly in other ways and with other
  /// precisions, takes both ways and the narrower precisions, and returns true.
  /// Else returns false.
  bool join(const Contents &other);
};

/// The memory of a program between two calls.
struct Memory {
  llvm::MapVector<mlir::StringAttr, Contents> buffers;
  llvm::DenseMap<std::pair<mlir::StringAttr, int64_t>, Number> slots;
  /// Of buffers that share memory: those that may hold numbers, or be allocated
  /// on demand, by the buffer whose memory it is. The others are forgotten.
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::StringAttr, 2>>
      inUse;
  /// Whether a step has one backward pass. Then its arriving gradient is the
  /// gradient of the step, under another name. Otherwise it is one of several
  /// addends, and steps of one and of several backward passes round alike.
  bool oneBackward = false;

  Contents &get(mlir::StringAttr buffer) {
    return buffers.find(buffer)->second;
  }
  Contents &get(mlir::FlatSymbolRefAttr buffer) {
    return get(buffer.getAttr());
  }
  /// Applies |function| to every number.
  void map(llvm::function_ref<Expr(Expr)> function);
  bool hasSameRoles(const Memory &other) const;
  /// Whether both hold the same numbers, in buffers and slots.
  bool holdsSame(const Memory &other) const;
  /// Whether the same operations computed them, too.
  bool isSame(const Memory &other) const;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_MEMORY_H
