//===- Placement.cpp - Kinds of placement and scale monomials -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Placement.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace zero;

llvm::StringRef zero::stringifyPlacementKind(PlacementKind kind) {
  switch (kind) {
  case PlacementKind::Replicated:
    return "replicated";
  case PlacementKind::Sharded:
    return "sharded";
  case PlacementKind::Partial:
    return "partial";
  case PlacementKind::PartialMax:
    return "partial_max";
  case PlacementKind::PartialMin:
    return "partial_min";
  case PlacementKind::PartialOr:
    return "partial_or";
  case PlacementKind::Varying:
    return "varying";
  }
  llvm_unreachable("unknown placement kind");
}

bool zero::areExtentsInRange(ArrayRef<int64_t> shape) {
  int64_t elements = 1;
  return llvm::all_of(shape, [&](int64_t extent) {
    return extent >= 0 &&
           !llvm::MulOverflow(elements, std::max<int64_t>(extent, 1),
                              elements) &&
           elements <= kMaxElements;
  });
}

Scale zero::multiply(ArrayRef<ScaleFactor> a, ArrayRef<ScaleFactor> b) {
  Scale result(a.begin(), a.end());
  for (const ScaleFactor &factor : b) {
    auto *it = llvm::find_if(result, [&](const ScaleFactor &f) {
      return f.symbol == factor.symbol;
    });
    if (it == result.end())
      result.push_back(factor);
    else
      it->exponent += factor.exponent;
  }
  llvm::erase_if(result, [](const ScaleFactor &f) { return f.exponent == 0; });
  llvm::sort(result, [](const ScaleFactor &l, const ScaleFactor &r) {
    return l.symbol.getValue() < r.symbol.getValue();
  });
  return result;
}

Scale zero::power(ArrayRef<ScaleFactor> a, int64_t n) {
  Scale result;
  if (n != 0)
    for (const ScaleFactor &f : a)
      result.push_back({f.symbol, f.exponent * n});
  return result;
}

FailureOr<Scale> zero::root(ArrayRef<ScaleFactor> a) {
  Scale result;
  for (const ScaleFactor &f : a) {
    if (f.exponent % 2 != 0)
      return failure();
    result.push_back({f.symbol, f.exponent / 2});
  }
  return result;
}

std::string zero::toString(ArrayRef<ScaleFactor> scale) {
  if (scale.empty())
    return "1";
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(scale, os, [&](const ScaleFactor &f) {
    os << f.symbol.getValue() << " : " << f.exponent;
  });
  return text;
}
