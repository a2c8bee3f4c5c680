//===- Launch.cpp - What a kernel makes of each element -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Calls.h"
#include "passes/prove/Counts.h"
#include "passes/prove/Gradient.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// A kernel with its operands, as one launch has them.
struct Calls::LaunchedKernel {
  zrt::KernelOp op;
  SmallVector<Contents *> operands;
  zrt::SegmentsOp segments;
  /// The scalars of each row.
  std::vector<SmallVector<Number>> rows;
  /// The condition on which the kernel runs, by row; null unless it is
  /// predicated.
  std::vector<Expr> conditions;
  bool hasSums = false; // ranks sum gradients of the bucket
  Precision kept = {};  // the type in which they are summed
};

FailureOr<SmallVector<Number>> Calls::evaluateKernel(LaunchedKernel &kernel,
                                                     ArrayRef<Number> arrays,
                                                     ArrayRef<Number> scalars) {
  SmallVector<Number> arguments;
  for (auto [i, number] : llvm::enumerate(arrays)) {
    if (kernel.op.getArrayAccess(i) == zrt::Access::write)
      continue;
    arguments.push_back(number);
    arguments.back().narrow(Precision(kernel.op.getArrayType(i)));
  }
  llvm::append_range(arguments, scalars);
  // Elements round, and their sums are sources of their own. A number that was
  // rounded is no whole number.
  auto forgetRounding = [](Number &number) {
    if (!isExactCount(number.expr))
      number.rounding = nullptr;
  };
  llvm::for_each(arguments, forgetRounding);
  KernelKey key{kernel.op, {}};
  for (const Number &argument : arguments)
    key.second.push_back(
        {argument.getKey(), argument.way, argument.computed, argument.error});
  auto [it, isNew] = evaluated.try_emplace(std::move(key));
  // A body that cannot be read was reported when it was read first.
  if (!isNew)
    return it->second;
  auto values = evaluateBody(algebra, kernel.op.getBody().front(), arguments);
  if (succeeded(values))
    llvm::for_each(*values, forgetRounding);
  return it->second = values;
}

/// The new elements and pads of the operands that |kernel| writes, and of the
/// addends of its sum, for elements and pads of its operands.
struct Calls::LaunchedElements {
  SmallVector<std::pair<Number, Number>, 4> written;
  std::pair<Number, Number> addend;
};

/// Whether |a| is computed from an element of the step before.
static bool dependsOnState(Expr a) {
  bool depends = false;
  visitBases(a,
             [&](BaseRef base) { depends |= base->kind == BaseKind::state; });
  return depends;
}

std::optional<unsigned> prove::countAdditions(zrt::KernelOp kernel) {
  unsigned additions = 0;
  for (Operation &op : kernel.getBody().front()) {
    additions += isa<arith::AddFOp>(op);
    if (!isa<arith::AddFOp, arith::TruncFOp, arith::ExtFOp, zrt::YieldOp>(op))
      return std::nullopt;
  }
  return additions;
}

/// Whether no term of |a| is a multiple of one of |b|.
static bool areOfOtherSources(Expr a, Expr b) {
  return llvm::none_of(a->getTerms(), [&](const Term &term) {
    return llvm::any_of(b->getTerms(), [&](const Term &other) {
      return term.monomial == other.monomial;
    });
  });
}

/// Whether |a| has gradients of a backward pass that is not closed.
static bool isOfOpenBackward(Expr a) {
  bool isOpen = false;
  visitBases(a, [&](BaseRef base) {
    isOpen |= base->kind == BaseKind::gradient && base->epoch == Epoch::current;
  });
  return isOpen;
}

/// Has |number|, which is still what arrived in one backward pass, stored as
/// |type|, count as a sum of several in the type |kept|. Where these are
/// rounded, it is not, and the bits are those of a sum of one.
static void countAsSum(Number &number, Precision kept, Type type,
                       bool converts) {
  bool isRounded = converts && !Precision(type).holds(kept);
  if (isRounded)
    number.way = Number().getWayTo(type);
  if (isOfOpenBackward(number.expr))
    return;
  number.arrived = nullptr;
  number.narrow(kept);
  if (isRounded)
    number.convert(Precision(type));
}

FailureOr<Calls::LaunchedElements>
Calls::launchOn(LaunchedKernel &kernel, ArrayRef<const Piece *> operands,
                size_t row) {
  unsigned numArrays = kernel.op.getNumArrays();
  ArrayRef<Number> scalars;
  if (!kernel.rows.empty())
    scalars = kernel.rows[row];
  SmallVector<Number> elements, pads;
  for (const Piece *piece : operands) {
    elements.push_back(piece->element);
    pads.push_back(piece->pad);
  }
  auto ofElement = evaluateKernel(kernel, elements, scalars);
  if (failed(ofElement))
    return failure();
  auto ofPad = evaluateKernel(kernel, pads, scalars);
  LaunchedElements made;
  unsigned result = 0;
  for (unsigned a = 0; a < numArrays; ++a) {
    if (kernel.op.getArrayAccess(a) == zrt::Access::read)
      continue;
    Precision type(kernel.op.getArrayType(a));
    auto choose = [&](Number made, ArrayRef<Number> operands) {
      const Number &old = operands[a];
      // A kernel that only converts has one operand to convert.
      bool converts =
          numArrays == 2 && llvm::any_of(elements, [&](const Number &from) {
            return made.expr == from.expr;
          });
      if (!converts)
        made.beforeConversion.reset();
      made.expr =
          joinLast(algebra, made.expr, inApply ? Epoch::all : Epoch::earlier);
      if (made.isAsItArrived() && !memory->oneBackward)
        countAsSum(made, kernel.kept, kernel.op.getArrayType(a), converts);
      made.narrow(type);
      SmallVector<Number> read;
      for (auto [i, operand] : llvm::enumerate(operands))
        if (kernel.op.getArrayAccess(i) != zrt::Access::write)
          read.push_back(operand);
      // Backward passes are added, on some paths more of them. Their errors
      // have no bound, and before ranks sum them, or before apply, the order of
      // additions is no way.
      if (kernel.op.getNumScalars() == 0 && countAdditions(kernel.op) == 1u &&
          read.size() == 2 && areOfOtherSources(read[0].expr, read[1].expr)) {
        made.error = std::max(read[0].error, read[1].error);
        if ((made.expr->getOwn() != 0 || (!inApply && !kernel.hasSums)) &&
            !dependsOnState(made.expr))
          made.way = addWays(read[0].way, read[1].way);
      }
      if (!kernel.conditions.empty()) {
        Expr runs = kernel.conditions[row];
        // The old number stays where the kernel does not run.
        made.error = std::max(made.error, old.error);
        made.losses = std::max(made.losses, old.losses);
        made.expr = algebra.operation("select", {runs, made.expr, old.expr});
        // Another kernel may have run where this one does not.
        if (old.ran && old.ran != runs) {
          made.narrowAs(old);
          made.way = combineWays(made.getWayFrom(), old.getWayFrom());
        }
        made.skipped = old.skipped;
        made.skippedWay = old.getWayIfSkipped();
        made.ran = old.ran && old.ran != runs
                       ? algebra.symmetric("ori", old.ran, runs)
                       : runs;
      }
      return made;
    };
    made.written.emplace_back(choose((*ofElement)[result], elements),
                              choose((*ofPad)[result], pads));
    ++result;
  }
  if (kernel.op.getSums()) {
    auto choose = [&](Number made) {
      if (!kernel.conditions.empty())
        made.expr = algebra.operation(
            "select", {kernel.conditions[row], made.expr, algebra.integer(0)});
      return made;
    };
    made.addend = {choose((*ofElement)[result]), choose((*ofPad)[result])};
  }
  return made;
}

/// Runs |kernel| for all elements, on their owners or on the other ranks. The
/// new elements of operand i go to written[i], and addends of the sum to
/// |addends|.
bool Calls::launchOver(LaunchedKernel &kernel, bool onOwner,
                       std::vector<Pieces> &written, Pieces &addends) {
  written.assign(kernel.op.getNumArrays(), {});
  SmallVector<const Piece *> cursors;
  for (Contents *contents : kernel.operands)
    cursors.push_back(
        (onOwner || !contents->hasOther ? contents->own : contents->other)
            .begin());
  // Parameters of two groups may alternate, and their elements be alike.
  struct Last {
    SmallVector<const Piece *> operands;
    LaunchedElements made;
  };
  llvm::SmallDenseMap<size_t, Last> lastOfRow;
  int64_t begin = 0;
  for (auto [segment, end] : llvm::enumerate(kernel.segments.getEnds())) {
    size_t row = kernel.segments.getRows().empty()
                     ? 0
                     : kernel.segments.getRows()[segment];
    for (bool isDone = end == begin; !isDone;) {
      int64_t partEnd = end;
      for (const Piece *piece : cursors)
        partEnd = std::min(partEnd, piece->end);
      auto [it, isNew] = lastOfRow.try_emplace(row);
      if (isNew || it->second.operands != cursors) {
        auto made = launchOn(kernel, cursors, row);
        if (failed(made))
          return false;
        it->second = {cursors, std::move(*made)};
      }
      const LaunchedElements &made = it->second.made;
      const auto *next = made.written.begin();
      for (unsigned a = 0; a < kernel.op.getNumArrays(); ++a) {
        if (kernel.op.getArrayAccess(a) == zrt::Access::read)
          continue;
        append(written[a], {partEnd, next->first, next->second});
        ++next;
      }
      if (kernel.op.getSums())
        append(addends, {partEnd, made.addend.first, made.addend.second});
      for (const Piece *&piece : cursors)
        if (piece->end == partEnd)
          ++piece;
      isDone = partEnd == end;
    }
    begin = end;
  }
  return true;
}

Number Calls::sumOverBucket(StringAttr bucketName, const Pieces &addends,
                            AxisSet owners) {
  BucketOp bucket = buckets.lookup(bucketName).op;
  Roundings roundings;
  SmallVector<Expr> terms;
  if (!bucket) {
    if (addends.empty())
      return {algebra.integer(0)};
    Expr unknown = addends.front().element.expr;
    return {unknown->isUndefined()
                ? unknown
                : algebra.undefined("a sum over nobody's elements")};
  }
  // A rank adds the elements of its row, and of these its own.
  AxisSet over = owners | semantics.axes.getSet(bucket.getValueType().getAxes(
                              PlacementKind::Sharded));
  const Piece *piece = addends.begin();
  for (auto [member, offset] :
       llvm::zip_equal(bucket.getMembers().getAsRange<FlatSymbolRefAttr>(),
                       bucket.getOffsets())) {
    ParameterSemantics &parameter = semantics.parameters[member.getAttr()];
    int64_t length = parameter.elements;
    if (length == 0)
      continue;
    while (piece->end <= offset)
      ++piece;
    const Number &addend = piece->element;
    Precision computedIn =
        addend.nonlinear.limitedBy(getAddendType(addend, parameter.kept));
    terms.push_back(piece->end < offset + length
                        ? algebra.undefined("a sum over parts of '" +
                                            member.getValue().str() + "'")
                        : sumOverElements(algebra, addend.expr,
                                          member.getValue(), over, computedIn,
                                          computedIn == addend.nonlinear));
    roundings = roundings.limitedBy(addend.roundings);
    parameter.summedReduceDtype =
        parameter.summedReduceDtype.limitedBy(addend.reduceDtype);
  }
  for (const Piece &piece : addends)
    if (!piece.pad.expr->isZero())
      terms.push_back(algebra.undefined("pads of @" + bucketName.str() +
                                        ", which are not zero"));
  Number sum = makeSum(algebra, algebra.sum(terms), roundings);
  for (const Piece &piece : addends) {
    sum.error = std::max(sum.error, piece.element.error);
    sum.way = combineWays(sum.way, piece.element.getWayFrom());
  }
  return sum;
}

bool Calls::isZeroElsewhere(zrt::LaunchOp op) {
  ValueType place = zrt::getPlace(places, op);
  // On several stages the number would be there several times.
  if (place.getPresent().size() > place.getFirstStage().size())
    return false;
  auto slots = symbols.lookup<zrt::SlotsOp>(op.getSumAttr().getAttr());
  return slots.getInitial()[op.getSumIndex()] == 0 &&
         llvm::all_of(writers[{op.getSumAttr().getAttr(), op.getSumIndex()}],
                      [&](Operation *writer) {
                        ValueType other = zrt::getPlace(places, writer);
                        return isa<zrt::LaunchOp>(writer) && other &&
                               other.getPresent() == place.getPresent();
                      });
}

bool Calls::findOwners(zrt::LaunchOp op, ArrayRef<Contents *> operands,
                       AxisSet &owners) {
  AxisSet set = op.getOwn() ? semantics.axes.getSet(*op.getOwn()) : 0;
  owners = set;
  for (auto [i, contents] : llvm::enumerate(operands)) {
    auto kernel = symbols.lookup<zrt::KernelOp>(op.getKernelAttr().getAttr());
    bool isOnlyWritten = kernel.getArrayAccess(i) == zrt::Access::write &&
                         !kernel.getPredicated();
    if (isOnlyWritten || contents->isAlike())
      continue;
    // Without 'own' the owners of all operands must be the same ones.
    if (set == 0 && owners == 0)
      owners = contents->owners;
    if (!requireOwners(op, *contents, owners))
      return false;
  }
  return true;
}

template <> void Calls::runOp(zrt::LaunchOp op) {
  LaunchedKernel kernel;
  kernel.op = symbols.lookup<zrt::KernelOp>(op.getKernelAttr().getAttr());
  kernel.segments =
      symbols.lookup<zrt::SegmentsOp>(op.getSegmentsAttr().getAttr());
  bool isOnHost =
      !op.getBuffers().empty() &&
      memory->get(cast<FlatSymbolRefAttr>(op.getBuffers()[0])).op.getSpace() ==
          zrt::Space::host;
  if (kernel.op.getNumScalars() > 0)
    for (auto slots :
         kernel.segments.getScalars().getAsRange<FlatSymbolRefAttr>()) {
      auto &row = kernel.rows.emplace_back();
      for (uint64_t i = 0; i < kernel.op.getNumScalars(); ++i)
        row.push_back(getScalar(isOnHost, slots, i));
      if (!kernel.op.getPredicated())
        continue;
      kernel.conditions.push_back(
          algebra.symmetric("cmpf oeq", row.front().expr, algebra.integer(0)));
      Number condition = row.front();
      condition.expr = kernel.conditions.back();
      addCondition(conditions, condition);
    }

  // All operands must be of one bucket, since positions are those of a bucket.
  StringAttr bucket;
  for (auto [i, symbol] :
       llvm::enumerate(op.getBuffers().getAsRange<FlatSymbolRefAttr>())) {
    bool reads = kernel.op.getArrayAccess(i) != zrt::Access::write;
    Contents &contents = reads || kernel.op.getPredicated()
                             ? read(op, symbol)
                             : require(op, symbol);
    kernel.operands.push_back(&contents);
    // If a step is not applied, an operand that is only written does not
    // change.
    if ((!reads && !kernel.op.getPredicated()) || !contents.bucket)
      continue;
    if (bucket && bucket != contents.bucket)
      proof.report.error(op)
          << symbol << " holds elements of @" << contents.bucket.getValue()
          << ", the operands before those of @" << bucket.getValue();
    bucket = contents.bucket;
  }

  if (const ParameterSemantics *member = findMember(bucket)) {
    kernel.hasSums = member->arrivesOver != 0;
    kernel.kept = member->kept;
  }

  // An element of one is not where the same element of the other is.
  for (auto [i, a] : llvm::enumerate(kernel.operands))
    for (Contents *b : kernel.operands)
      if (a != b && kernel.op.getArrayAccess(i) != zrt::Access::read &&
          a->op.getMemory() == b->op.getMemory())
        proof.report.opError(op)
            << "writes memory that " << FlatSymbolRefAttr::get(a->op) << " and "
            << FlatSymbolRefAttr::get(b->op) << " share";

  AxisSet owners = 0;
  if (!findOwners(op, kernel.operands, owners))
    return;
  std::vector<Pieces> own, other;
  Pieces addends, otherAddends;
  AxisSet set = op.getOwn() ? semantics.axes.getSet(*op.getOwn()) : 0;
  bool everywhere =
      set == 0 && llvm::any_of(kernel.operands, [](Contents *contents) {
        return contents->hasOther;
      });
  if (!launchOver(kernel, /*onOwner=*/true, own, addends) ||
      (everywhere &&
       !launchOver(kernel, /*onOwner=*/false, other, otherAddends))) {
    proof.report.count();
    return;
  }
  for (auto [i, symbol] :
       llvm::enumerate(op.getBuffers().getAsRange<FlatSymbolRefAttr>())) {
    if (kernel.op.getArrayAccess(i) == zrt::Access::read)
      continue;
    Contents &contents =
        set ? writeOwned(op, symbol, bucket, set) : write(op, symbol, bucket);
    contents.own = std::move(own[i]);
    if (!everywhere || !contents.hasOther)
      continue;
    contents.other = std::move(other[i]);
    contents.owners = owners;
  }
  if (!op.getSumAttr())
    return;
  Number &slot = writeSlot(op, op.getSumAttr(), op.getSumIndex());
  AxisSet stages =
      kernel.operands.empty()
          ? 0
          : semantics.axes.getSet(
                kernel.operands[0]->op.getValueType().getStageAxes());
  if (stages && !isZeroElsewhere(op))
    slot = {algebra.undefined("a number that some pipeline stages only write")};
  else if (everywhere && !(addends == otherAddends))
    slot = {algebra.undefined("a sum of different numbers on each rank")};
  else
    slot = sumOverBucket(bucket, addends, set | stages);
}
