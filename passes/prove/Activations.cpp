//===- Activations.cpp - Do pipeline stages send the same? ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No call of a step names an activation: the caller sends them. They are part
// of the interface, as parameters are, and callers know them by their numbers.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/StepSemantics.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// The first activation of |a| whose name none of |b| has; null if there is
/// none.
static ActivationOp findOther(ArrayRef<ActivationOp> a,
                              ArrayRef<ActivationOp> b) {
  for (ActivationOp op : a)
    if (llvm::none_of(b, [&](ActivationOp other) {
          return ActivationOp(op).getSymName() == other.getSymName();
        }))
      return op;
  return {};
}

static void pointTo(InFlightDiagnostic &diagnostic, ActivationOp op) {
  diagnostic.attachNote(op.getLoc())
      << "@" << op.getSymName() << " is declared here";
}

static std::string describeEnds(ActivationOp op) {
  return ("over '" + op.getAxis() + "' from " + llvm::Twine(op.getFrom()) +
          " to " + llvm::Twine(op.getTo()))
      .str();
}

void prove::compareActivations(Proof &proof, const StepSemantics &first,
                               const StepSemantics &second) {
  ArrayRef<ActivationOp> expected = first.activations;
  ArrayRef<ActivationOp> found = second.activations;
  if (expected.size() != found.size()) {
    InFlightDiagnostic diagnostic = proof.report.error(second.step);
    diagnostic << "the step has " << found.size() << " activations, expected "
               << expected.size();
    for (ActivationOp op :
         {findOther(expected, found), findOther(found, expected)})
      if (op)
        pointTo(diagnostic, op);
    return;
  }
  for (auto [i, a, b] : llvm::enumerate(expected, found)) {
    ActivationOp one = a, two = b;
    StringRef name = two.getSymName();
    auto differ = [&](const llvm::Twine &subject, const auto &now,
                      const auto &wanted) {
      InFlightDiagnostic diagnostic = proof.report.error(two);
      diagnostic << "activation " << subject << now << ", expected " << wanted;
      pointTo(diagnostic, one);
    };
    if (name != one.getSymName())
      differ(llvm::Twine(i) + " of the step is ", "@" + name,
             "@" + one.getSymName());
    else if (two.getTensorType() != one.getTensorType())
      differ("@" + name + " is ", two.getTensorType(), one.getTensorType());
    else if (describeEnds(two) != describeEnds(one))
      differ("@" + name + " goes ", describeEnds(two), describeEnds(one));
  }
}
