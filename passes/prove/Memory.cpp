//===- Memory.cpp - What the buffers of a program hold --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Memory.h"

#include "llvm/ADT/Hashing.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

Buckets prove::readBuckets(ModuleOp module) {
  SymbolTable symbols(module);
  Buckets buckets;
  for (auto op : module.getOps<BucketOp>()) {
    BucketInfo &bucket = buckets[op.getSymNameAttr()];
    bucket.op = op;
    bucket.layout = cast<LaidOut>(op.getOperation());
    for (auto member : op.getMembers().getAsRange<FlatSymbolRefAttr>()) {
      auto parameter = symbols.lookup<ParameterOp>(member.getAttr());
      bucket.hasElements |= parameter.getNumElements() > 0;
      bucket.isUsedTwice |= parameter.getUses() != 1;
      bucket.storage = parameter.getDtype();
    }
  }
  for (auto op : module.getOps<FrozenBucketOp>()) {
    BucketInfo &bucket = buckets[op.getSymNameAttr()];
    bucket.layout = cast<LaidOut>(op.getOperation());
    bucket.storage = op.getValueType().getElementType();
    for (auto member : op.getMembers().getAsRange<FlatSymbolRefAttr>())
      bucket.hasElements |=
          symbols.lookup<ParameterOp>(member.getAttr()).getNumElements() > 0;
  }
  return buckets;
}

void prove::noteMembers(InFlightDiagnostic &diagnostic,
                        const BucketInfo &bucket) {
  LaidOut op = bucket.layout;
  constexpr size_t kMost = 3;
  ArrayRef<Attribute> members = op.getMembers().getValue();
  Diagnostic &note = diagnostic.attachNote(op->getLoc());
  note << "@" << SymbolTable::getSymbolName(op).getValue() << " has ";
  llvm::interleaveComma(members.take_front(kMost), note, [&](Attribute member) {
    note << "'" << cast<FlatSymbolRefAttr>(member).getValue() << "'";
  });
  if (members.size() > kMost)
    note << " and " << members.size() - kMost << " more";
}

Pieces prove::makePieces(int64_t length, Number element, Number pad) {
  if (length == 0)
    return {};
  return {Piece{length, element, pad}};
}

void prove::append(Pieces &pieces, Piece piece) {
  if (!pieces.empty() && pieces.back().isSame(piece))
    pieces.back().end = piece.end;
  else
    pieces.push_back(piece);
}

void Contents::fill(Number element, Number pad) {
  own = makePieces(op.getRowLength(), element, pad);
  if (hasOther)
    other = own;
}

void Contents::forget(Algebra &algebra, const llvm::Twine &what) {
  Number nothing{algebra.undefined(what.str())};
  fill(nothing, nothing);
  bucket = {};
  writer = nullptr;
}

bool Contents::isNothing() const {
  auto areUndefined = [](const Pieces &pieces) {
    return llvm::all_of(pieces, [](const Piece &piece) {
      return piece.element.expr->isNothing() && piece.pad.expr->isNothing();
    });
  };
  return !bucket && areUndefined(own) && areUndefined(other);
}

bool Contents::isOwnedOver(AxisSet set) const {
  return owners == set || isAlike();
}

bool Contents::holdsSame(const Contents &with) const {
  return allocated == with.allocated && role == with.role &&
         bucket == with.bucket && own == with.own && other == with.other &&
         (owners == with.owners || isAlike());
}

bool Memory::holdsSame(const Memory &other) const {
  return llvm::all_of_zip(buffers, other.buffers,
                          [](const auto &a, const auto &b) {
                            return a.first == b.first &&
                                   a.second.holdsSame(b.second);
                          }) &&
         slots.size() == other.slots.size() &&
         llvm::all_of(slots, [&](const auto &entry) {
           auto it = other.slots.find(entry.first);
           return it != other.slots.end() && it->second == entry.second;
         });
}

bool Memory::isSame(const Memory &other) const {
  auto areSame = [](const Pieces &a, const Pieces &b) {
    return llvm::all_of_zip(a, b, [](const Piece &x, const Piece &y) {
      return x.element.isSame(y.element) && x.pad.isSame(y.pad);
    });
  };
  return holdsSame(other) &&
         llvm::all_of_zip(buffers, other.buffers,
                          [&](const auto &a, const auto &b) {
                            return areSame(a.second.own, b.second.own) &&
                                   areSame(a.second.other, b.second.other);
                          }) &&
         llvm::all_of(slots, [&](const auto &entry) {
           return entry.second.isSame(other.slots.lookup(entry.first));
         });
}

bool Contents::join(const Contents &with) {
  auto isSame = [](const Piece &a, const Piece &b) {
    return a.end == b.end && a.element.expr == b.element.expr &&
           a.pad.expr == b.pad.expr && a.absent == b.absent &&
           a.absentPad == b.absentPad && a.expected == b.expected;
  };
  auto areSame = [&](const Pieces &a, const Pieces &b) {
    return a.size() == b.size() && llvm::all_of_zip(a, b, isSame);
  };
  if (allocated != with.allocated || role != with.role ||
      bucket != with.bucket ||
      (owners != with.owners && !(isAlike() && with.isAlike())) ||
      !areSame(own, with.own) || !areSame(other, with.other))
    return false;
  for (auto [mine, others] :
       {std::pair(&own, &with.own), std::pair(&other, &with.other)})
    for (auto [a, b] : llvm::zip_equal(*mine, *others)) {
      a.element.joinPath(b.element);
      a.element.narrowAs(b.element);
      a.pad.narrowAs(b.pad);
    }
  return true;
}

void Memory::map(llvm::function_ref<Expr(Expr)> function) {
  auto apply = [&](Expr &a) {
    if (a)
      a = function(a);
  };
  for (auto &[name, contents] : buffers)
    for (Pieces *pieces : {&contents.own, &contents.other})
      for (Piece &piece : *pieces) {
        if (oneBackward || contents.holdsOneBackward)
          apply(piece.element.arrived);
        for (Expr *a :
             {&piece.element.expr, &piece.element.ran, &piece.pad.expr,
              &piece.pad.ran, &piece.absent, &piece.absentPad, &piece.expected})
          apply(*a);
      }
  for (auto &[slot, number] : slots) {
    apply(number.expr);
    apply(number.computedAgain);
  }
}

bool Memory::hasSameRoles(const Memory &other) const {
  return llvm::all_of(buffers, [&](auto &entry) {
    return entry.second.role == other.buffers.find(entry.first)->second.role;
  });
}
