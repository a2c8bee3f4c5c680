//===- Sample.h - A reference for some elements of a large step -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_SAMPLE_H
#define ZERO_TOOLS_ZERO_RUN_SAMPLE_H

#include "tools/zero-run/Engine.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

namespace zero {

/// The logical step in f64 on some elements of each parameter. Elements of a
/// step meet in its norms only: a few more of each parameter stand for all that
/// are left out, with gradients that have the same norm.
class SampledReference : public Engine {
public:
  /// Takes |count| elements of each parameter of |logical|. Null where the step
  /// is no data-parallel one of whole parameters: there elements that are left
  /// out cannot be told from their norm.
  static std::unique_ptr<SampledReference>
  create(mlir::ModuleOp logical, llvm::ArrayRef<ParameterInfo> parameters,
         int64_t count, uint64_t seed);

  mlir::LogicalResult bind(const ParameterInfo &parameter,
                           llvm::ArrayRef<double> values) override;
  mlir::FailureOr<StepResult> apply(llvm::ArrayRef<RankInputs> ranks) override;
  mlir::FailureOr<std::vector<Number>>
  getParameter(int64_t rank, const ParameterInfo &parameter) override;
  double getLossScale() override { return inner->getLossScale(); }
  mlir::FailureOr<std::vector<Number>>
  getState(llvm::StringRef role, const ParameterInfo &parameter) override;

  /// The position in the parameter of element |index| that this engine has.
  int64_t getPosition(const ParameterInfo &parameter, int64_t index) const;
  /// What this engine has of |all|, the elements of |parameter|.
  std::vector<Number> pick(const ParameterInfo &parameter,
                           std::vector<Number> all) const;
  /// The elements of all parameters that this engine has.
  int64_t getNumElements() const { return numElements; }

private:
  /// What is taken of a parameter.
  struct Taken {
    std::vector<int64_t> positions;
    mlir::Type arrivalType;
  };

  /// The positions that are taken of a parameter; null: all are.
  const std::vector<int64_t> *find(llvm::StringRef name) const;
  std::vector<Number> withoutRest(const ParameterInfo &parameter,
                                  std::vector<Number> numbers) const;

  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<Engine> inner; // on |module|
  llvm::StringMap<Taken> taken;
  int64_t numElements = 0;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_SAMPLE_H
