//===- Contract.cpp - What a caller knows of a parameter ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Example.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

void prove::compareContract(Proof &proof, const StepSemantics &first,
                            const StepSemantics &second,
                            const ParameterSemantics &a,
                            const ParameterSemantics &b) {
  ParameterOp one = a.op, two = b.op;
  StringRef name = one.getSymName();
  auto differ = [&](StringRef what, const llvm::Twine &x, const llvm::Twine &y,
                    const std::string &example = "") {
    InFlightDiagnostic diagnostic = proof.report.error(two);
    diagnostic << what << " of '" << name << "' is " << y << ", expected " << x;
    Report::attach(diagnostic, two->getLoc(), example);
  };
  auto shapeOf = [](ParameterOp op) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave(op.getShape(), os, "x");
    return text;
  };
  auto toText = [](auto value) {
    std::string text;
    llvm::raw_string_ostream(text) << value;
    return text;
  };
  if (one.getShape() != two.getShape())
    differ("shape", shapeOf(one), shapeOf(two));
  if (one.getValueType().getPlacements() !=
          two.getValueType().getPlacements() ||
      one.getValueType().getPresent() != two.getValueType().getPresent())
    differ("placement", toText(one.getValueType()), toText(two.getValueType()));
  if (a.arrivesOver != b.arrivesOver)
    differ("set of axes over which ranks have shares of the gradient",
           first.axes.describe(a.arrivesOver),
           second.axes.describe(b.arrivesOver));
  if (one.getDtype() != two.getDtype())
    differ("storage type", toText(one.getDtype()), toText(two.getDtype()));
  if (one.getOptional() != two.getOptional())
    differ("optional flag", one.getOptional() ? "set" : "not set",
           two.getOptional() ? "set" : "not set");
  if (one.getUses() != two.getUses())
    differ("number of uses", llvm::Twine(one.getUses()),
           llvm::Twine(two.getUses()));
  if (a.arrival != b.arrival)
    differ("type of arriving gradients", toText(a.arrival), toText(b.arrival));
  if (a.normalization != b.normalization)
    differ("normalization of an arriving gradient", toString(a.normalization),
           toString(b.normalization));
  if (!b.summedReduceDtype.holds(a.summedReduceDtype))
    differ("reduce dtype of sums over elements", a.summedReduceDtype.describe(),
           b.summedReduceDtype.describe());
  // Of a role that one step does not have, compareElements() tells.
  for (auto [role, type] : a.types)
    if (Type other = b.types.lookup(role);
        other && other != type && a.elements > 0)
      differ("type of '" + role.getValue().str() + "'", toText(type),
             toText(other));
  if (!b.kept.holds(a.kept))
    differ("type of kept gradients", a.kept.describe(), b.kept.describe(),
           findRounding(b.kept, a.kept));
}
