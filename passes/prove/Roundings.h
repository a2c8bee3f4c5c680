//===- Roundings.h - Where the sources of a number were rounded -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A number of a step is made of sources: the gradient, old state, inputs, and
// so on. Each source has its own precision, so a narrow source hides no
// rounding of another one.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_ROUNDINGS_H
#define ZERO_PASSES_PROVE_ROUNDINGS_H

#include "passes/prove/Magnitudes.h"

#include "llvm/ADT/DenseMap.h"

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace zero::prove {

/// The kinds of sources, in the order in which messages prefer them.
enum class SourceKind {
  state, ///< an element from the step before
  gradient,
  sum, ///< a sum over elements, such as the square of a norm
  lossScale,
  input,    ///< a scalar that the caller passes to apply
  counter,  ///< a scalar from the step before
  tokens,   ///< the number of tokens
  count,    ///< a number of backward passes or of gradients
  constant, ///< a number that not every type holds
};

struct Source {
  SourceKind kind = SourceKind::constant;
  std::string name = {}; // of state, an input or a counter

  bool operator<(const Source &other) const {
    return std::tie(kind, name) < std::tie(other.kind, other.name);
  }
  bool operator==(const Source &other) const {
    return kind == other.kind && name == other.name;
  }
  /// Whether it is as large as elements, or as a sum over them.
  bool isOfElements() const { return kind <= SourceKind::sum; }
  /// "the old 'm'".
  std::string describe() const;
};

/// The narrowest types on the way of one source.
struct SourcePrecision {
  Source source;
  /// Of the source itself, or of a sum of its addends.
  Precision alone = {};
  /// Of every other number that was computed from it.
  Precision combined = {};
  /// Of all numbers on the way.
  Magnitudes magnitudes = {};

  bool operator==(const SourcePrecision &other) const {
    return source == other.source && alone == other.alone &&
           combined == other.combined && magnitudes == other.magnitudes;
  }
  bool operator<(const SourcePrecision &other) const;
};

/// A source that went through a narrower type than expected.
struct Narrowing {
  Source source;
  Precision actual;
  Precision expected;
};

class RoundingTable;

/// The precision of each source of a number. Equal ones are one object of their
/// table.
class Roundings {
public:
  /// Of a number without sources.
  Roundings() = default;

  bool isEmpty() const { return !node; }
  bool hasOneSource() const;
  /// Each source of |this| and |other|, as narrow as both have it.
  Roundings limitedBy(Roundings other) const;
  /// Of |number| with these sources, converted to |to|. |isAlone|: the number
  /// is its source, or a sum of addends of the source.
  Roundings narrowed(Expr number, Precision to, bool isAlone) const;
  /// Of a number with these sources that lost |bits| digits more.
  Roundings losing(int bits) const;
  bool hasLost() const;
  /// Of the sum over elements of a number with these roundings. Sums are a
  /// source of their own, in the place of gradients.
  Roundings summed(RoundingTable &table) const;

  /// The narrowest type on the way of sources of |kind|, or of all sources.
  Precision getNarrowest(SourceKind kind) const;
  Precision getNarrowest() const;
  /// A source that is narrower than in |expected|: one that was narrow alone,
  /// the old |role|, or the first one. A source that |expected| does not have
  /// may be as narrow as the widest one there.
  std::optional<Narrowing> findNarrower(Roundings expected,
                                        llvm::StringRef role = "") const;
  /// A source of which a multiple or a power is beyond those of |expected|, and
  /// how.
  std::optional<Beyond> findBeyond(Roundings expected) const;

  /// "is computed from input 1 ...", for an input that |expected| does not
  /// have; empty: none. It may be nan, also where it makes no difference over
  /// the reals.
  std::string findForeignInput(Roundings expected) const;

  /// Adds the names of sources of |kind|.
  void addNames(SourceKind kind, std::set<std::string> &names) const;

  const void *getKey() const { return node; }
  bool operator==(Roundings other) const { return node == other.node; }
  bool operator!=(Roundings other) const { return node != other.node; }

private:
  friend class RoundingTable;
  struct Node;
  explicit Roundings(const Node *node) : node(node) {}

  const Node *node = nullptr;
};

/// Makes roundings and owns them.
class RoundingTable {
public:
  RoundingTable();
  ~RoundingTable();

  /// Of |source|, which was not rounded yet.
  Roundings get(Source source) { return intern({{std::move(source)}}); }

private:
  friend class Roundings;
  using Sources = std::vector<SourcePrecision>; // sorted

  Roundings intern(Sources sources);

  std::map<Sources, std::unique_ptr<Roundings::Node>> known;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_ROUNDINGS_H
