//===- Ways.cpp - Numbers that must have equal bits -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers that are equal over the reals, and went through the same types, may
// differ in their last bits: a product and a sum round twice, and `math.fma`
// once. Where a program relies on equal bits, both must have been computed by
// the same operations.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/IdleState.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Whether |isSame| is true of each part on which pieces of both are whole.
static bool
areAlike(const Pieces &a, const Pieces &b,
         llvm::function_ref<bool(const Number &, const Number &)> isSame) {
  const Piece *x = a.begin(), *y = b.begin();
  while (x != a.end() && y != b.end()) {
    if (!isSame(x->element, y->element))
      return false;
    int64_t end = std::min(x->end, y->end);
    x += x->end == end;
    y += y->end == end;
  }
  return true;
}

static bool haveOneWay(const Number &a, const Number &b) {
  return joinWays(a.way, b.way) != kSeveralWays;
}

bool IdleState::hasReplicas(zrt::BufferOp buffer) {
  ValueType type = buffer.getValueType();
  AxisSet alone = axes.getSet(type.getAxes(PlacementKind::Sharded));
  for (StringAttr axis : type.getStageAxes())
    if (type.getCoordinates(axis).size() == 1)
      alone |= axes.getSet(axis);
  return (axes.getAll() & ~alone) != 0;
}

void IdleState::checkWays(Operation *transition, const Memory &memory,
                          const Memory &known) {
  auto find = [](const Memory &in, StringAttr name) -> const Contents & {
    return in.buffers.find(name)->second;
  };
  auto getType = [](zrt::BufferOp buffer) {
    return buffer.getValueType().getElementType();
  };
  constexpr StringLiteral dependsOnPath =
      " is computed by other operations on this path to apply than on another "
      "one";
  auto refuse = [&](const Contents &contents, const Twine &text) {
    proof.report.addLast(contents.writer ? contents.writer : transition,
                         (text + ", so bits may differ").str());
  };
  for (auto &[name, entry] : lasting) {
    if (!hasElements(entry.bucket))
      continue;
    const Contents &contents = find(memory, name);
    std::string buffer = ("@" + name.getValue()).str();
    if (contents.hasOther && !areAlike(contents.own, contents.other,
                                       [](const Number &a, const Number &b) {
                                         return a.way == b.way;
                                       }))
      refuse(contents, buffer + " is computed by other operations on the owner "
                                "of an element than on the other ranks");
    if (hasReplicas(contents.op) &&
        !areAlike(contents.own, find(known, name).own, haveOneWay))
      refuse(contents, buffer + dependsOnPath);
  }
  // Counters and the like, which all ranks keep.
  for (auto state : program.getOps<zrt::ScalarStateOp>()) {
    std::pair<StringAttr, int64_t> slot{state.getSlotsAttr().getAttr(),
                                        state.getIndex()};
    if (axes.getAll() != 0 &&
        !haveOneWay(memory.slots.lookup(slot), known.slots.lookup(slot)))
      proof.report.addLast(transition, ("'" + state.getRole() + "'" +
                                        dependsOnPath + ", so bits may differ")
                                           .str());
  }
  for (auto op : program.getOps<zrt::BucketTableOp>()) {
    if (!hasElements(op.getBucketAttr().getAttr()))
      continue;
    const Contents &parameters = find(memory, op.getParametersAttr().getAttr());
    Type type = getType(parameters.op);
    for (FlatSymbolRefAttr symbol : {op.getMasterAttr(), op.getStagingAttr()}) {
      if (!symbol)
        continue;
      const Contents &source = find(memory, symbol.getAttr());
      if (!areAlike(source.own, source.own, haveOneWay)) {
        if (!hasReplicas(source.op)) // else it was refused above
          refuse(source, "@" + symbol.getValue() + dependsOnPath);
        continue;
      }
      bool isRounded = !Precision(type).holds(Precision(getType(source.op)));
      bool isSame =
          areAlike(source.own, parameters.own,
                   [&](const Number &from, const Number &to) {
                     return to.way == from.way ||
                            (isRounded && to.way == from.getWayTo(type));
                   });
      if (!isSame)
        refuse(parameters,
               ("@" + op.getParameters() + " is not @" + symbol.getValue() +
                (isRounded ? ", rounded once" : "")));
    }
  }
}
