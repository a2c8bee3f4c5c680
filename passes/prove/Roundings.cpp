//===- Roundings.cpp - Where the sources of a number were rounded ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Roundings.h"

#include "llvm/Support/ErrorHandling.h"

using namespace zero::prove;

std::string Source::describe() const {
  switch (kind) {
  case SourceKind::state:
    return "the old '" + name + "'";
  case SourceKind::gradient:
    return "the gradient";
  case SourceKind::sum:
    return "a sum over elements";
  case SourceKind::lossScale:
    return "the loss scale";
  case SourceKind::input:
    return name;
  case SourceKind::counter:
    return "counter '" + name + "'";
  case SourceKind::tokens:
    return "the number of tokens";
  case SourceKind::count:
    return "the number of backward passes";
  case SourceKind::constant:
    return "a constant";
  }
  llvm_unreachable("unknown kind of source");
}

bool SourcePrecision::operator<(const SourcePrecision &other) const {
  if (!(source == other.source))
    return source < other.source;
  return std::tuple(alone.getKey(), combined.getKey(), magnitudes) <
         std::tuple(other.alone.getKey(), other.combined.getKey(),
                    other.magnitudes);
}

struct Roundings::Node {
  RoundingTable *table;
  const RoundingTable::Sources *sources; // the key of the table
  // Results of operations, so that each is computed once.
  mutable llvm::DenseMap<const Node *, const Node *> limited{};
  /// By number, type, and whether the number is alone.
  mutable llvm::DenseMap<std::pair<Expr, std::pair<uint64_t, unsigned>>,
                         const Node *>
      narrowed{};
};

RoundingTable::RoundingTable() = default;
RoundingTable::~RoundingTable() = default;

Roundings RoundingTable::intern(Sources sources) {
  if (sources.empty())
    return {};
  auto [it, isNew] = known.try_emplace(std::move(sources));
  if (isNew)
    it->second =
        std::make_unique<Roundings::Node>(Roundings::Node{this, &it->first});
  return Roundings(it->second.get());
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

bool Roundings::hasOneSource() const {
  return node && node->sources->size() == 1;
}

Roundings Roundings::limitedBy(Roundings other) const {
  if (!node || node == other.node)
    return other;
  if (!other.node)
    return *this;
  auto [it, isNew] = node->limited.try_emplace(other.node);
  if (!isNew)
    return Roundings(it->second);
  RoundingTable::Sources merged;
  auto x = node->sources->begin(), xEnd = node->sources->end();
  auto y = other.node->sources->begin(), yEnd = other.node->sources->end();
  while (x != xEnd || y != yEnd) {
    if (y == yEnd || (x != xEnd && x->source < y->source)) {
      merged.push_back(*x++);
    } else if (x == xEnd || y->source < x->source) {
      merged.push_back(*y++);
    } else {
      merged.push_back({x->source, x->alone.limitedBy(y->alone),
                        x->combined.limitedBy(y->combined),
                        x->magnitudes.joinedWith(y->magnitudes)});
      ++x;
      ++y;
    }
  }
  Roundings result = node->table->intern(std::move(merged));
  node->limited[other.node] = result.node;
  return result;
}

Roundings Roundings::narrowed(Expr number, Precision to, bool isAlone) const {
  if (!node || to.isExact())
    return *this;
  auto [it, isNew] =
      node->narrowed.try_emplace({number, {to.getKey(), isAlone}});
  if (!isNew)
    return Roundings(it->second);
  bool isSum = to.exponent < Precision::f64().exponent && hasSizeOfSum(number);
  Magnitudes ofElements(number, to, /*isOfElements=*/true);
  Magnitudes ofOthers(number, to, /*isOfElements=*/false);
  RoundingTable::Sources narrower = *node->sources;
  for (SourcePrecision &each : narrower) {
    bool isSource = isAlone || (isSum && each.source.kind == SourceKind::sum);
    Precision &precision = isSource ? each.alone : each.combined;
    precision = precision.limitedBy(to);
    each.magnitudes = each.magnitudes.joinedWith(
        each.source.isOfElements() ? ofElements : ofOthers);
  }
  it->second = node->table->intern(std::move(narrower)).node;
  return Roundings(it->second);
}

Roundings Roundings::losing(int bits) const {
  if (!node || bits == 0)
    return *this;
  RoundingTable::Sources sources = *node->sources;
  for (SourcePrecision &each : sources)
    each.magnitudes = each.magnitudes.losing(bits);
  return node->table->intern(std::move(sources));
}

bool Roundings::hasLost() const {
  return node && llvm::any_of(*node->sources, [](const SourcePrecision &each) {
           return each.magnitudes.hasLost();
         });
}

Roundings Roundings::summed(RoundingTable &table) const {
  SourcePrecision sum{{SourceKind::sum}, Precision::f64()};
  RoundingTable::Sources others;
  for (const SourcePrecision &each :
       node ? *node->sources : RoundingTable::Sources()) {
    if (each.source.kind == SourceKind::gradient)
      sum.magnitudes = each.magnitudes;
    else
      others.push_back(each);
  }
  return table.intern(std::move(others))
      .limitedBy(table.intern({std::move(sum)}));
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

Precision Roundings::getNarrowest(SourceKind kind) const {
  Precision narrowest;
  if (node)
    for (const SourcePrecision &each : *node->sources)
      if (each.source.kind == kind)
        narrowest = narrowest.limitedBy(each.alone).limitedBy(each.combined);
  return narrowest;
}

Precision Roundings::getNarrowest() const {
  Precision narrowest;
  if (node)
    for (const SourcePrecision &each : *node->sources)
      narrowest = narrowest.limitedBy(each.alone).limitedBy(each.combined);
  return narrowest;
}

void Roundings::addNames(SourceKind kind, std::set<std::string> &names) const {
  if (node)
    for (const SourcePrecision &each : *node->sources)
      if (each.source.kind == kind)
        names.insert(each.source.name);
}

std::optional<Narrowing> Roundings::findNarrower(Roundings expected,
                                                 llvm::StringRef role) const {
  // The same precisions, or no number that could be rounded.
  if (node == expected.node || !node || !expected.node)
    return std::nullopt;
  Precision widest{};
  widest.mantissa = widest.exponent = 0;
  for (const SourcePrecision &each : *expected.node->sources)
    widest = widest.widenedTo(each.alone.limitedBy(each.combined));
  std::optional<Narrowing> found;
  auto y = expected.node->sources->begin(), end = expected.node->sources->end();
  for (const SourcePrecision &each : *node->sources) {
    while (y != end && y->source < each.source)
      ++y;
    bool isKnown = y != end && y->source == each.source;
    // What is expected to be computed in one type may be kept in this type.
    Precision combined =
        isKnown && !y->combined.isExact() ? y->combined : widest;
    // A sum of squares overflows in a type that holds its root.
    bool isSum = each.source.kind == SourceKind::sum;
    Precision alone = !isKnown ? combined
                      : isSum  ? y->alone
                               : y->alone.limitedBy(combined);
    if (!each.alone.holds(alone))
      return Narrowing{each.source, each.alone, alone};
    bool isOfRole =
        each.source.kind == SourceKind::state && each.source.name == role;
    if (!each.combined.holds(combined) && (!found || isOfRole))
      found = Narrowing{each.source, each.combined, combined};
  }
  return found;
}

std::optional<Beyond> Roundings::findBeyond(Roundings expected) const {
  if (node == expected.node || !node || !expected.node)
    return std::nullopt;
  auto y = expected.node->sources->begin(), end = expected.node->sources->end();
  for (const SourcePrecision &each : *node->sources) {
    while (y != end && y->source < each.source)
      ++y;
    bool isKnown = y != end && y->source == each.source;
    // See findForeignInput().
    if (!isKnown &&
        (!each.magnitudes.hasLost() || each.source.kind == SourceKind::input))
      continue;
    std::optional<Beyond> beyond = each.magnitudes.findBeyond(
        isKnown ? y->magnitudes : each.magnitudes.withoutLoss(),
        each.source.isOfElements());
    if (!beyond)
      continue;
    beyond->text =
        each.source.describe() + " went through a number " + beyond->text;
    return beyond;
  }
  return std::nullopt;
}

std::string Roundings::findForeignInput(Roundings expected) const {
  std::set<std::string> names, known;
  addNames(SourceKind::input, names);
  expected.addNames(SourceKind::input, known);
  for (const std::string &name : names)
    if (known.count(name) == 0)
      return "is computed from " + Source{SourceKind::input, name}.describe() +
             ", expected otherwise";
  return "";
}
