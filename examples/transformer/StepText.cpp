//===- StepText.cpp - The logical step as MLIR text -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "examples/transformer/StepText.h"

namespace transformer {

static const char *const adamWText =
#include "AdamW.inc"
    ;

static const char *const lossScaleText =
#include "LossScale.inc"
    ;

namespace {

/// Writes lists over some of the parameters.
struct Writer {
  const std::vector<Parameter> &parameters;
  bool isPipeline;

  using Members = std::vector<size_t>;

  template <typename Item>
  static std::string join(const Members &members, Item &&item) {
    std::string text;
    for (size_t i : members)
      text += (text.empty() ? "" : ", ") + item(i);
    return text;
  }
  std::string names(const Members &members) const {
    return join(members, [&](size_t i) { return "@" + parameters[i].name; });
  }
  std::string values(const char *name, const Members &members) const {
    return join(members, [&](size_t i) {
      return "%" + std::string(name) + "#" + std::to_string(i);
    });
  }
  std::string shape(size_t i) const {
    const Parameter &parameter = parameters[i];
    std::string text = std::to_string(parameter.rows) + "x";
    if (parameter.columns)
      text += std::to_string(parameter.columns) + "x";
    return text;
  }
  std::string types(const std::string &element, const std::string &arrival,
                    const std::string &scale, const Members &members) const {
    return join(members, [&](size_t i) {
      return "!zero.value<" + shape(i) + element + arrival + stage(i) + scale +
             ">";
    });
  }
  std::string types(const Members &members) const {
    return types("f32", "", "", members);
  }
  /// Where a parameter is, if that is not everywhere.
  std::string stage(size_t i) const {
    return isPipeline
               ? ", on = [pp : " + std::to_string(parameters[i].stage) + "]"
               : "";
  }
};

} // namespace

std::string activationName(int64_t stage) {
  return "residual" + std::to_string(stage);
}

/// The mesh, and what each stage sends to the next.
static std::string meshText(const ModelShape &shape, const Mesh &mesh) {
  std::string dp = "\"dp\" = " + std::to_string(mesh.copies) + "]>\n";
  if (mesh.stages == 1)
    return "zero.mesh @cluster <[" + dp;
  std::string text =
      "zero.mesh @cluster <[\"pp\" = " + std::to_string(mesh.stages) + ", " +
      dp;
  for (int64_t s = 0; s + 1 < mesh.stages; ++s)
    text += "zero.activation @" + activationName(s) + " : tensor<?x" +
            std::to_string(shape.context) + "x" + std::to_string(shape.width) +
            "xf32> over pp from " + std::to_string(s) + " to " +
            std::to_string(s + 1) + "\n";
  return text;
}

/// A unit for each layer.
static std::string unitsText(const ModelShape &shape, const Writer &w) {
  std::string text;
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    Writer::Members members;
    for (size_t i = 0; i < BlockParameters; ++i)
      members.push_back(FirstBlock + size_t(layer) * BlockParameters + i);
    text += "zero.unit @block" + std::to_string(layer) + " [" +
            w.names(members) + "]\n";
  }
  return text;
}

std::string stepText(const ModelShape &shape, const Mesh &mesh,
                     Precision precision, bool units) {
  std::vector<Parameter> parameters = listParameters(shape, mesh.stages);
  Writer w{parameters, mesh.stages > 1};
  Writer::Members all, decay, noDecay;
  for (size_t i = 0; i < parameters.size(); ++i) {
    all.push_back(i);
    (parameters[i].decay ? decay : noDecay).push_back(i);
  }
  std::string count = std::to_string(parameters.size());
  const bool isScaled = hasLossScale(precision);
  const std::string scale =
      isScaled ? ", scaled = [dp : 1, loss_scale : 1]" : ", scaled = [dp : 1]";
  std::string arriving =
      w.types(typeName(precision), ", partial = [dp, micro]", scale, all);
  std::string summed = w.types("f32", ", partial = [dp]", scale, all);
  std::string reduced = w.types(all);
  const std::string scalar = "!zero.value<f64>";

  std::string text = "// Written by char_model --emit-step.\n";
  text += meshText(shape, mesh);
  for (size_t i : all)
    text += "zero.parameter @" + parameters[i].name + " : " + w.shape(i) +
            "f32" + w.stage(i) + "\n";
  if (units)
    text += unitsText(shape, w);
  text += "zero.group @decay [" + w.names(decay) + "]\n";
  text += "zero.group @no_decay [" + w.names(noDecay) + "]\n";
  text += adamWText;
  if (isScaled)
    text += lossScaleText;
  // The caller divides its loss by the number of backward passes; the division
  // by the ranks is the compiler's.
  text += "zero.step @train on @cluster normalize(accumulation : -1, dp : -1) ";
  text += isScaled ? "loss_scale @loss_scale " : "";
  text += "(%lr: " + scalar + ") {\n";
  text += "  %g:" + count + " = zero.micro_batches in f32 {\n";
  text += "    %d:" + count + " = zero.backward(" + w.names(all) +
          ") prescaled(" + (isScaled ? "loss_scale : 1, " : "") +
          "accumulation : -1) : " + arriving + "\n";
  text += "    zero.yield " + w.values("d", all) + " : " + arriving + "\n  }\n";
  text += "  %r:" + count + " = zero.reduce " + w.values("g", all) + " : " +
          summed + "\n";
  text += "  %norm = zero.norm " + w.values("r", all) + " : " + reduced + "\n";
  text += "  %c:" + count + " = zero.clip " + w.values("r", all) +
          " by %norm max 1.0 : " + reduced + " by " + scalar + "\n";
  text += "  zero.update @decay with @adamw(" + w.values("c", decay) +
          ") hyper(lr = %lr, wd = 0.1) : (" + w.types(decay) + "), (" + scalar +
          ")\n";
  text += "  zero.update @no_decay with @adamw(" + w.values("c", noDecay) +
          ") hyper(lr = %lr, wd = 0.0) : (" + w.types(noDecay) + "), (" +
          scalar + ")\n";
  text += "  zero.return [norm] %norm : " + scalar + "\n}\n";
  return text;
}

} // namespace transformer
